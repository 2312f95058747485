//! The statements that create objects: constraints, indexes, views.

use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_sql_common::names::quote_identifier;
use atoll_sql_parse::syntax::{parsed_expr, sql_text, walk_mut, without_parentheses};
use atoll_store::database::RelationName;
use datafusion::common::TableReference;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::planner::IdentNormalizer;
use datafusion::sql::resolve::resolve_table_references;
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectNamePart, Query, Statement, TableFactor, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::objects::{ConstraintKind, PgConstraint, PgObjects, PgRelation, RelationOf};
use crate::table_text::{foreign_key_text, unique_text};

/// `PRIMARY KEY (a, b)`, `CHECK (a > 0)`, `FOREIGN KEY (a) REFERENCES p(b)`
pub(super) fn constraint(
    objects: &PgObjects,
    constraint: &PgConstraint,
    table: &PgRelation,
) -> String {
    let Some(definition) = table.table().map(|version| version.definition()) else {
        return String::new();
    };
    match constraint.kind {
        ConstraintKind::Primary | ConstraintKind::Unique => {
            let mut uniques = definition.uniques.iter();
            let unique = uniques.find(|unique| unique.name == constraint.name);
            unique.map_or_else(String::new, |unique| unique_text(unique, definition))
        }
        ConstraintKind::Check => {
            let check = constraint.check.as_deref().unwrap_or_default();
            match parsed_expr(check) {
                Ok(condition) => format!("CHECK (({}))", sql_text(&without_parentheses(condition))),
                Err(_) => format!("CHECK (({check}))"),
            }
        }
        ConstraintKind::Foreign => {
            let Some(reference) = &constraint.references else { return String::new() };
            let is_found = objects.finds(&objects.relations[reference.parent]);
            foreign_key_text(&reference.key, definition, &objects.version, !is_found)
        }
    }
}

/// `CREATE UNIQUE INDEX t_pkey ON public.t USING btree (a, b DESC)`, or one column of it, from 1; if it `is_pretty`, with
/// few parentheses.
pub(super) fn index(
    objects: &PgObjects,
    relation: &PgRelation,
    column: usize,
    is_pretty: bool,
) -> Option<String> {
    let RelationOf::Index { table, index } = &relation.of else { return None };
    let table = objects.relation(*table)?;
    let definition = table.table()?.definition();
    if let Some(place) = column.checked_sub(1) {
        return match index.columns().nth(place)? {
            Some(at) => Some(columns(table, &[at])),
            None => Some(index.parts.key_text(place, definition)),
        };
    }
    let at = RelationName::new(Arc::clone(&table.schema_name), Arc::clone(&table.name));
    let pretty = is_pretty.then(|| index.parts.with_few_parentheses());
    let parts = pretty.as_ref().unwrap_or(&index.parts);
    Some(parts.create_text(&relation.name, &at, definition))
}

fn columns(table: &PgRelation, columns: &[usize]) -> String {
    let Some(version) = table.table() else { return String::new() };
    let fields = version.definition().columns.fields();
    let names = columns.iter().filter_map(|at| fields.get(*at));
    names.map(|field| quote_identifier(field.name()).into_owned()).collect::<Vec<_>>().join(", ")
}

/// The query of a view, whose unqualified names get their schemas where the search path does not find them.
pub(super) fn view(objects: &PgObjects, relation: &PgRelation) -> Option<String> {
    let (sql, schema) = view_text(relation)?;
    // A text that is more than the parser's SQL is shown as it was typed.
    let Some((mut query, _, ctes)) = query_of(sql) else { return Some(format!("{sql};")) };
    let _ = walk_mut(&mut query, &mut Qualifier { objects, schema, ctes });
    Some(format!("{};", sql_text(&query)))
}

/// The text of a view, and the schema of its unqualified names.
fn view_text(relation: &PgRelation) -> Option<(&str, &str)> {
    match &relation.of {
        RelationOf::View(view) => Some((&view.sql, &view.schema)),
        RelationOf::Materialized { made, .. } => Some((&made.view.sql, made.view.default_schema())),
        _ => None,
    }
}

/// The query of a view's text, with the tables that it reads and those of its WITH.
fn query_of(sql: &str) -> Option<(Box<Query>, Vec<TableReference>, Vec<TableReference>)> {
    let statements = Parser::parse_sql(&GenericDialect {}, sql).ok()?;
    let Statement::CreateView(create) = statements.into_iter().next()? else { return None };
    let parsed = Parsed::Statement(Box::new(Statement::Query(create.query.clone())));
    let (tables, ctes) = resolve_table_references(&parsed, true).ok()?;
    Some((create.query, tables, ctes))
}

/// The relations that a view reads.
pub(super) fn relations_of_view<'a>(
    objects: &'a PgObjects,
    relation: &PgRelation,
) -> Vec<&'a PgRelation> {
    let Some((sql, view_schema)) = view_text(relation) else { return Vec::new() };
    let Some((_, tables, _)) = query_of(sql) else { return Vec::new() };
    let found = tables.iter().filter_map(|table| {
        let schema = table.schema().unwrap_or(view_schema);
        objects.relation_named(&full_name(schema, table.table()))
    });
    found.collect()
}

fn full_name(schema: &str, name: &str) -> String {
    format!("{}.{}", quote_identifier(schema), quote_identifier(name))
}

/// Qualifies the names of relations in the query of a view.
struct Qualifier<'a> {
    objects: &'a PgObjects,
    /// The schema of the view's unqualified names.
    schema: &'a str,
    ctes: Vec<TableReference>,
}

impl VisitorMut for Qualifier<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, args: None, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
            return ControlFlow::Continue(());
        };
        let table = IdentNormalizer::new(true).normalize(ident.clone());
        let is_cte = self.ctes.iter().any(|cte| cte.table() == table);
        let meant = self.objects.relation_named(&full_name(self.schema, &table));
        let meant = meant.filter(|_| !is_cte);
        if meant.is_some_and(|meant| !self.objects.finds(meant)) {
            let schema = Ident::from(quote_identifier(self.schema).as_ref());
            name.0.insert(0, ObjectNamePart::Identifier(schema));
        }
        ControlFlow::Continue(())
    }
}
