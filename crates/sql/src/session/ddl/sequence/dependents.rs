//! DROP SEQUENCE, TRUNCATE … RESTART IDENTITY, and the sequences that defaults of columns use.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_store::database::{CatalogChange, RelationName, is_temporary_schema};
use atoll_store::{SequenceId, TableId};
use datafusion::common::Result;
use datafusion::common::utils::quote_identifier;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectType, Statement as Ast,
    Truncate, TruncateIdentityOption, Value,
};

use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::command_tag::{missing, with_notices};
use crate::session_functions::sequence_named;
use crate::table::PlacedTable;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_parse::syntax::{parsed_expr, sql_text, walk_expressions_mut};

/// A column that takes its numbers from a sequence, or owns it.
struct Dependent {
    table: TableId,
    column: usize,
    is_identity: bool,
    /// Whether its default names the sequence.
    uses: bool,
    name: String,
}

impl StatementPlanner {
    /// Runs DROP SEQUENCE; `None` for DROP of anything else.
    pub(in crate::session) async fn drop_sequences(
        &self,
        ast: &Ast,
    ) -> Result<Option<Cow<'static, str>>> {
        let Ast::Drop { object_type: ObjectType::Sequence, if_exists, names, cascade, .. } = ast
        else {
            return Ok(None);
        };
        let mut passed = Vec::new();
        for name in names {
            let relation = self.relation(name)?;
            let Some(sequence) = self.names.sequence(&relation) else {
                match if_exists {
                    true => {
                        passed.push(missing("sequence", &relation.name));
                        continue;
                    }
                    false => {
                        return stated_err!(UNDEFINED_TABLE, "sequence \"{name}\" does not exist");
                    }
                }
            };
            for dependent in self.dependents(sequence).await? {
                let needs = match (dependent.is_identity, dependent.uses && !*cascade) {
                    (true, _) => "drop the column instead",
                    (false, true) => "use DROP SEQUENCE … CASCADE to drop the default too",
                    (false, false) => {
                        self.release(&dependent, sequence).await?;
                        continue;
                    }
                };
                return Err(SqlState::DEPENDENT_OBJECTS_STILL_EXIST.error(format!(
                    "cannot drop sequence '{name}' because the default of {} needs it; {needs}",
                    dependent.name
                )));
            }
            self.define(CatalogChange::Drop { name: relation }).await?;
        }
        Ok(Some(with_notices("DROP SEQUENCE", &passed)))
    }

    /// Whether columns of other tables than its owner take numbers from a sequence.
    pub(in crate::session) async fn is_used_by_others(
        &self,
        sequence: &RelationName,
        owner: &RelationName,
    ) -> Result<bool> {
        let Some(sequence) = self.names.sequence(sequence) else { return Ok(false) };
        let dependents = self.dependents(sequence).await?;
        let owner = self.names.stored_version().table_named(owner).map(|(id, _)| id);
        Ok(dependents.iter().any(|dependent| dependent.uses && Some(dependent.table) != owner))
    }

    /// The columns that use a sequence.
    async fn dependents(&self, sequence: SequenceId) -> Result<Vec<Dependent>> {
        let version = self.transaction.statement(true).await?;
        let mut found = Vec::new();
        for (table, of_table) in version.tables() {
            let definition = of_table.definition();
            for (column, default) in definition.defaults.iter().enumerate() {
                let owns = definition.identities[column].is_some_and(|of| of.sequence == sequence);
                let is_identity = owns && definition.identity(column).is_some();
                let named = match default {
                    Some(default) if !is_identity => named_sequences(&parsed_expr(default)?),
                    _ => Vec::new(),
                };
                let uses = named.iter().any(|text| self.sequence_named(text) == Some(sequence));
                if owns || uses {
                    let of = version.table_name(table).map_or("", |name| &name.name);
                    let name = format!(
                        "column '{}' of table '{of}'",
                        definition.columns.field(column).name()
                    );
                    found.push(Dependent { table, column, is_identity, uses, name });
                }
            }
        }
        Ok(found)
    }

    /// Renames a sequence, also in the defaults of columns.
    pub(in crate::session) async fn rename_sequence(
        &self,
        sequence: SequenceId,
        from: RelationName,
        to: RelationName,
    ) -> Result<()> {
        let dependents = self.dependents(sequence).await?;
        let text = full_name(&to);
        for dependent in dependents.iter().filter(|dependent| dependent.uses) {
            let version = self.transaction.statement(true).await?;
            let Some(table) = version.table(dependent.table) else { continue };
            let mut definition = table.definition().as_ref().clone();
            let default = &mut definition.defaults[dependent.column];
            let Some(mut expr) = default.as_deref().map(parsed_expr).transpose()? else { continue };
            let _ = walk_expressions_mut(&mut expr, &mut |expr| {
                if let Expr::Function(function) = expr
                    && let Some(name) = named_sequence(function)
                    && self.sequence_named(name) == Some(sequence)
                {
                    name.clone_from(&text);
                }
                ControlFlow::<()>::Continue(())
            });
            *default = Some(sql_text(&expr).into());
            let (table, definition) = (dependent.table, Arc::new(definition));
            self.define(CatalogChange::SetDefinition { table, definition }).await?;
        }
        self.define(CatalogChange::Rename { from, to }).await
    }

    /// The sequence with the name in a text.
    fn sequence_named(&self, text: &str) -> Option<SequenceId> {
        self.names.sequence(&self.name_of_sequence(text)?)
    }

    /// The full name of the sequence in a text.
    fn name_of_sequence(&self, text: &str) -> Option<RelationName> {
        sequence_named(&self.names.stored_version(), text, self.names.path())
    }

    /// A default with the full names of its sequences: it keeps its meaning when others, temporary ones too, take their
    /// names, and in any search path.
    ///
    /// # Errors
    /// If a permanent table would use a temporary sequence.
    pub(in crate::session) fn with_full_names(
        &self,
        default: &Expr,
        is_temporary: bool,
    ) -> Result<Expr> {
        let mut named = default.clone();
        let walked = walk_expressions_mut(&mut named, &mut |expr| {
            if let Expr::Function(function) = expr
                && let Some(text) = named_sequence(function)
                && let Some(name) = self.name_of_sequence(text)
                && self.names.sequence(&name).is_some()
            {
                if is_temporary_schema(&name.schema) && !is_temporary {
                    return ControlFlow::Break(text.clone());
                }
                *text = full_name(&name);
            }
            ControlFlow::Continue(())
        });
        match walked {
            ControlFlow::Continue(()) => Ok(named),
            ControlFlow::Break(text) => stated_err!(
                INVALID_TABLE_DEFINITION,
                "sequence '{text}' is temporary and ends with the session; a DEFAULT of a table that lasts needs one \
                 made by CREATE SEQUENCE"
            ),
        }
    }

    /// Frees a column from a sequence that is dropped.
    async fn release(&self, dependent: &Dependent, sequence: SequenceId) -> Result<()> {
        let version = self.transaction.statement(true).await?;
        let Some(table) = version.table(dependent.table) else { return Ok(()) };
        let mut definition = table.definition().as_ref().clone();
        if dependent.uses {
            definition.defaults[dependent.column] = None;
        }
        let owned = &mut definition.identities[dependent.column];
        *owned = owned.filter(|owned| owned.sequence != sequence);
        let (table, definition) = (dependent.table, Arc::new(definition));
        self.define(CatalogChange::SetDefinition { table, definition }).await
    }

    /// Restarts the sequences that a table's columns own, for TRUNCATE … RESTART IDENTITY.
    pub(in crate::session) async fn restart_identities(&self, truncate: &Truncate) -> Result<()> {
        let (Some(TruncateIdentityOption::Restart), [table]) =
            (&truncate.identity, truncate.table_names.as_slice())
        else {
            return Ok(());
        };
        let at = self.resolve(self.name(&table.name)?);
        let Some(found) = self.names.table(&at)? else { return Ok(()) };
        let Some(table) = found.downcast_ref::<PlacedTable>() else { return Ok(()) };
        // A transaction that fails restores them.
        let version = self.transaction.statement(true).await?;
        for identity in table.definition().identities.iter().flatten() {
            let Some(state) = version.sequence(identity.sequence) else { continue };
            let (sequence, definition) = (identity.sequence, Arc::clone(&state.definition));
            self.define(CatalogChange::SetSequence { sequence, definition, last: None }).await?;
        }
        Ok(())
    }

    /// Refuses an expression that names a missing sequence.
    pub(in crate::session) fn check_sequences(&self, default: &Expr) -> Result<()> {
        for text in named_sequences(default) {
            if self.sequence_named(&text).is_none() {
                return Err(SqlState::UNDEFINED_TABLE.error(format!(
                    "sequence \"{text}\" does not exist; create it with CREATE SEQUENCE {text}"
                )));
            }
        }
        Ok(())
    }
}

/// A qualified name, as `nextval` reads it.
pub(in crate::session) fn full_name(name: &RelationName) -> String {
    format!("{}.{}", quote_identifier(&name.schema), quote_identifier(&name.name))
}

/// The names in calls of `nextval` and similar functions.
fn named_sequences(expr: &Expr) -> Vec<String> {
    let mut names = Vec::new();
    let _ = walk_expressions_mut(&mut expr.clone(), &mut |expr| {
        if let Expr::Function(function) = expr {
            names.extend(named_sequence(function).map(|name| name.clone()));
        }
        ControlFlow::<()>::Continue(())
    });
    names
}

fn named_sequence(function: &mut Function) -> Option<&mut String> {
    let name = function.name.to_string().to_ascii_lowercase();
    if !matches!(name.as_str(), "nextval" | "currval" | "setval") {
        return None;
    }
    let FunctionArguments::List(list) = &mut function.args else { return None };
    match list.args.first_mut()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => text_in(value),
        _ => None,
    }
}

/// The string that an expression is, or casts: `nextval('s'::regclass)`, as PostgreSQL writes it.
fn text_in(value: &mut Expr) -> Option<&mut String> {
    match value {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => text_in(expr),
        Expr::Value(text) => match &mut text.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
