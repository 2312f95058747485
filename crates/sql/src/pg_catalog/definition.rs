//! The statements that create objects: constraints, indexes, views.

use std::sync::Arc;

use atoll_store::database::RelationName;
use datafusion::common::utils::quote_identifier;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::objects::{ConstraintKind, PgConstraint, PgObjects, PgRelation, RelationOf};
use crate::table_text::{create_index_text, foreign_key_text};

/// `PRIMARY KEY (a, b)`, `CHECK (a > 0)`, `FOREIGN KEY (a) REFERENCES p(b)`
pub(super) fn constraint(
    objects: &PgObjects,
    constraint: &PgConstraint,
    table: &PgRelation,
) -> String {
    let word = match constraint.kind {
        ConstraintKind::Primary => "PRIMARY KEY",
        ConstraintKind::Unique => "UNIQUE",
        ConstraintKind::Check => {
            let check = constraint.check.as_deref().unwrap_or_default();
            return format!("CHECK (({check}))");
        }
        ConstraintKind::Foreign => {
            let (Some(reference), Some(own)) = (&constraint.references, table.table()) else {
                return String::new();
            };
            return foreign_key_text(&reference.key, own.definition(), &objects.version, false);
        }
    };
    format!("{word} ({})", columns(table, &constraint.columns))
}

/// `CREATE UNIQUE INDEX t_pkey ON public.t USING btree (a, b DESC)`, or one column of it, from 1.
pub(super) fn index(objects: &PgObjects, relation: &PgRelation, column: usize) -> Option<String> {
    let RelationOf::Index { table, index } = &relation.of else { return None };
    let table = objects.relation(*table)?;
    if let Some(at) = column.checked_sub(1) {
        return index.columns().nth(at).map(|at| columns(table, &[at]));
    }
    let definition = table.table()?.definition();
    let at = RelationName::new(Arc::clone(&table.schema_name), Arc::clone(&table.name));
    let columns = (&index.keys[..], &index.included[..]);
    Some(create_index_text(&relation.name, index.is_unique, &at, definition, columns))
}

fn columns(table: &PgRelation, columns: &[usize]) -> String {
    let Some(version) = table.table() else { return String::new() };
    let fields = version.definition().columns.fields();
    let names = columns.iter().filter_map(|at| fields.get(*at));
    names.map(|field| quote_identifier(field.name()).into_owned()).collect::<Vec<_>>().join(", ")
}

/// The query of a view.
pub(super) fn view(relation: &PgRelation) -> Option<String> {
    let RelationOf::View(view) = &relation.of else { return None };
    let parsed = Parser::parse_sql(&GenericDialect {}, &view.sql).ok();
    let query = parsed.and_then(|statements| match statements.into_iter().next()? {
        Statement::CreateView(create) => Some(create.query.to_string()),
        _ => None,
    });
    // A text that is more than the parser's SQL is shown as it was typed.
    Some(format!("{};", query.unwrap_or_else(|| view.sql.to_string())))
}
