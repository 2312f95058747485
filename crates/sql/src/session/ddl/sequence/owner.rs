//! The columns that own sequences: `OWNED BY`, and the name that an identity gives its sequence.

use std::sync::Arc;

use atoll_store::SequenceId;
use atoll_store::database::{CatalogChange, RelationName};
use atoll_store::table::{Identity, IdentityKind, TableDefinition};
use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, ObjectNamePart,
    SequenceOptions,
};

use crate::session::plan::planner::StatementPlanner;
use crate::table::PlacedTable;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::{plain, relation_name};
use atoll_sql_parse::parse::{ALTERED, NO_OWNER, SEQUENCE_NAME};

impl StatementPlanner {
    /// Makes a column the owner of a sequence, which is then dropped with it. Without a column no one owns it.
    pub(in crate::session) async fn own_sequence(
        &self,
        sequence: SequenceId,
        name: &RelationName,
        column: Option<&ObjectName>,
    ) -> Result<()> {
        let new = match column {
            Some(column) => Some(self.owning_column(name, column).await?),
            None => None,
        };
        let version = self.transaction.statement(true).await?;
        if let Some((table, at)) = version.sequence_owner(sequence)
            && let Some(found) = version.table(table)
        {
            let mut definition = found.definition().as_ref().clone();
            if definition.identity(at).is_some() {
                return stated_err!(
                    FEATURE_NOT_SUPPORTED,
                    "cannot change ownership of identity sequence '{}'",
                    name.name
                );
            }
            definition.identities[at] = None;
            let definition = Arc::new(definition);
            self.define(CatalogChange::SetDefinition { table, definition }).await?;
        }
        let Some((table, at)) = new else { return Ok(()) };
        let version = self.transaction.statement(true).await?;
        let Some(found) = version.table(table.id()) else { return Ok(()) };
        let mut definition = TableDefinition::clone(found.definition());
        if definition.identities[at].is_some() {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "column '{}' of table '{}' owns a sequence already, and owns no second one",
                definition.columns.field(at).name(),
                table.name()
            );
        }
        definition.identities[at] = Some(Identity { kind: IdentityKind::Serial, sequence });
        let (table, definition) = (table.id(), Arc::new(definition));
        self.define(CatalogChange::SetDefinition { table, definition }).await
    }

    /// The table and the number of the column after OWNED BY. Locks the table.
    async fn owning_column(
        &self,
        sequence: &RelationName,
        column: &ObjectName,
    ) -> Result<(PlacedTable, usize)> {
        let Some((last, [first, others @ ..])) = column.0.split_last() else {
            return stated_err!(
                SYNTAX_ERROR,
                "invalid OWNED BY option; specify OWNED BY table.column or OWNED BY NONE"
            );
        };
        let table = [first].into_iter().chain(others).cloned().collect();
        let at = self.resolve(self.name(&ObjectName(table))?);
        let Some(found) = self.names.table(&at)? else {
            return Err(SqlState::missing_table(&plain(&at)));
        };
        let Some(table) = found.downcast_ref::<PlacedTable>() else {
            return stated_err!(
                WRONG_OBJECT_TYPE,
                "sequence '{}' cannot be owned by '{}', which is not a table",
                sequence.name,
                plain(&at)
            );
        };
        if relation_name(&at).schema != sequence.schema {
            return stated_err!(
                NOT_IN_PREREQUISITE_STATE,
                "sequence must be in same schema as table it is linked to"
            );
        }
        self.lock_table(table).await?;
        let name = last.as_ident().map(|name| self.normalized(name)).unwrap_or_default();
        match table.definition().columns.index_of(&name) {
            Ok(column) => Ok((table.clone(), column)),
            Err(_) => stated_err!(
                UNDEFINED_COLUMN,
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name()
            ),
        }
    }

    /// The name that the options of an identity of a table give its sequence.
    pub(in crate::session) fn name_in_options(
        &self,
        options: &[SequenceOptions],
        table: &RelationName,
    ) -> Result<Option<RelationName>> {
        let named = options.iter().find_map(|option| match option {
            SequenceOptions::StartWith(value, _) => name_in(value),
            _ => None,
        });
        let name = match named.as_deref() {
            None => return Ok(None),
            Some([ObjectNamePart::Identifier(name)]) => {
                RelationName::new(Arc::clone(&table.schema), self.normalized(name))
            }
            Some(parts) => self.relation(&ObjectName(parts.to_vec()))?,
        };
        match name.schema == table.schema {
            true => Ok(Some(name)),
            false => stated_err!(
                NOT_IN_PREREQUISITE_STATE,
                "sequence must be in same schema as table it is linked to"
            ),
        }
    }
}

/// The owner in ALTER SEQUENCE … OWNED BY; `None` inside for NONE.
pub(super) fn new_owner(owner: &ObjectName) -> Option<Option<ObjectName>> {
    let (first, column) = owner.0.split_first()?;
    if first.as_ident()?.value != ALTERED || column.is_empty() {
        return None;
    }
    let column = ObjectName(column.to_vec());
    Some(Some(column).filter(|column| column.to_string() != NO_OWNER))
}

/// Whether the value of an option is the name of a sequence.
pub(super) fn is_name(value: &Expr) -> bool {
    name_in(value).is_some()
}

fn name_in(value: &Expr) -> Option<Vec<ObjectNamePart>> {
    let Expr::Function(call) = value else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    match list.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::CompoundIdentifier(parts)))
            if call.name.to_string() == SEQUENCE_NAME =>
        {
            Some(parts.iter().cloned().map(ObjectNamePart::Identifier).collect())
        }
        _ => None,
    }
}
