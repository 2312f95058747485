//! Defaults, constraints and views that name a type or one of its labels. They are texts, which do not follow a change.

use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_store::database::{CatalogChange, RelationName};
use atoll_store::table::TableDefinition;
use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{DataType as Sql, Expr, ObjectName, Value};

use super::dependents::shown;
use crate::session::ddl::view_dependents::has_string;
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::table_text::computed;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::pg_type::{array_of_enum, enum_of};
use atoll_sql_common::user_type::EnumType;
use atoll_sql_parse::syntax::{parsed_expr, sql_text, walk_expressions};

impl StatementPlanner {
    /// Refuses to rename a label that a text names: the text would fail, or mean a label of the old name that comes later.
    pub(super) async fn check_label_is_unnamed(&self, of: &EnumType, label: &str) -> Result<()> {
        let version = self.transaction.statement(true).await?;
        let (mut lines, mut tables) = (Vec::new(), Vec::new());
        for (id, table) in version.tables() {
            let Some(name) = version.table_name(id) else { continue };
            let definition = table.definition();
            let is_typed =
                |column: usize| enum_of(definition.columns.field(column)) == Some(of.oid);
            if !(0..definition.columns.fields().len()).any(is_typed) {
                continue;
            }
            tables.push(name.clone());
            for text in texts(name, definition)? {
                // The default of another column is a text, unless it reads this one.
                let may_name = match text.column {
                    Some(column) => is_typed(column) || computed(&text.expr).is_some(),
                    None => true,
                };
                let is_array = text.column.is_some_and(|column| {
                    array_of_enum(definition.columns.field(column)).is_some()
                });
                let names = match is_array {
                    true => text.expr.to_string().contains(label),
                    false => has_string(&text.expr, label),
                };
                if may_name && names {
                    lines.push(format!("{} names it", text.shown));
                }
            }
        }
        for view in self.readers(&tables)? {
            if self.view_has_literal(&view, label) {
                lines.push(format!("view {} names it", view.shown()));
            }
        }
        match lines.is_empty() {
            true => Ok(()),
            false => Err(SqlState::DEPENDENT_OBJECTS_STILL_EXIST.detailed(
                format!(
                    "cannot rename label \"{label}\" of type {} because other objects name it",
                    of.name
                ),
                lines.join("\n"),
                "Drop the default, constraint or view, rename the label, and create it again.",
            )),
        }
    }

    /// Renames a label where it is the default of a column of the type.
    pub(super) async fn rename_label_in_defaults(
        &self,
        of: &EnumType,
        from: &str,
        to: &str,
    ) -> Result<()> {
        let version = self.transaction.statement(true).await?;
        for (table, found) in version.tables() {
            let mut definition = found.definition().as_ref().clone();
            let fields = definition.columns.fields().iter();
            let mut is_changed = false;
            for (default, field) in definition.defaults.iter_mut().zip(fields) {
                let Some(text) = default else { continue };
                if enum_of(field) != Some(of.oid) {
                    continue;
                }
                let mut expr = parsed_expr(text)?;
                if let Some(label) = label_in(&mut expr).filter(|label| *label == from) {
                    to.clone_into(label);
                    *default = Some(sql_text(&expr).into());
                    is_changed = true;
                }
            }
            if is_changed {
                let definition = Arc::new(definition);
                self.define_any(CatalogChange::SetDefinition { table, definition }).await?;
            }
        }
        Ok(())
    }

    /// The defaults and constraints that cast to a type, outside its own columns.
    pub(super) async fn texts_with_type(&self, of: &EnumType) -> Result<Vec<TypedText>> {
        let version = self.transaction.statement(true).await?;
        let mut found = Vec::new();
        for (id, table) in version.tables() {
            let Some(name) = version.table_name(id) else { continue };
            let definition = table.definition();
            for text in texts(name, definition)? {
                let is_own = text.column.is_some_and(|column| {
                    enum_of(definition.columns.field(column)) == Some(of.oid)
                });
                if !is_own && self.casts_to(&text.expr, of)? {
                    let constraint = text.constraint;
                    let column = text.column.map(|at| definition.columns.field(at).name().clone());
                    let is_computed = computed(&text.expr).is_some();
                    let part = match (column, constraint) {
                        (Some(column), _) if is_computed => {
                            format!("DROP COLUMN {} CASCADE", quoted(&column))
                        }
                        (Some(column), _) => {
                            format!("ALTER COLUMN {} DROP DEFAULT", quoted(&column))
                        }
                        (None, name) => {
                            format!("DROP CONSTRAINT {}", quoted(&name.unwrap_or_default()))
                        }
                    };
                    found.push(TypedText { table: name.clone(), removal: part, shown: text.shown });
                }
            }
        }
        Ok(found)
    }

    fn casts_to(&self, expr: &Expr, of: &EnumType) -> Result<bool> {
        let mut named: Vec<ObjectName> = Vec::new();
        let _ = walk_expressions(expr, &mut |expr| {
            if let Expr::Cast { data_type: Sql::Custom(name, _), .. } = expr {
                named.push(name.clone());
            }
            ControlFlow::<()>::Continue(())
        });
        for name in named {
            if self.user_type_named(&name)?.is_some_and(|found| found.oid == of.oid) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The label that a default is, or casts.
fn label_in(default: &mut Expr) -> Option<&mut String> {
    match default {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => label_in(expr),
        Expr::Value(value) => match &mut value.value {
            Value::SingleQuotedString(label) => Some(label),
            _ => None,
        },
        _ => None,
    }
}

/// A default or a constraint that casts to a type.
pub(super) struct TypedText {
    pub(super) table: RelationName,
    /// The part of ALTER TABLE that removes it.
    pub(super) removal: String,
    /// The name in messages.
    pub(super) shown: String,
}

/// A default, or the condition of a CHECK constraint.
struct StoredText {
    column: Option<usize>,
    constraint: Option<String>,
    expr: Expr,
    shown: String,
}

fn texts(name: &RelationName, definition: &TableDefinition) -> Result<Vec<StoredText>> {
    let mut found = Vec::new();
    for (column, default) in definition.defaults.iter().enumerate() {
        let Some(default) = default else { continue };
        let of = definition.columns.field(column).name();
        let shown = format!("default value for column {of} of table {}", shown(name));
        let expr = parsed_expr(default)?;
        found.push(StoredText { column: Some(column), constraint: None, expr, shown });
    }
    for check in &definition.checks {
        let shown = format!("constraint {} on table {}", check.name, shown(name));
        let (expr, constraint) = (parsed_expr(&check.sql)?, Some(check.name.to_string()));
        found.push(StoredText { column: None, constraint, expr, shown });
    }
    Ok(found)
}
