//! `SHOW CREATE TABLE` and `SHOW table`, as queries.
//!
//! ```text
//! SHOW CREATE TABLE t     SELECT …, 'CREATE TABLE t (a INTEGER, …)' AS definition
//! SHOW t                  DESCRIBE t, where t is a table and no setting
//! ```

use atoll_store::table::TableDefinition;
use datafusion::common::utils::quote_identifier;
use datafusion::common::{ResolvedTableReference, Result};
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{ObjectName, Query, ShowCreateObject, Statement as Ast};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::catalog::{MaterializedView, UnplannedView};
use crate::session::dml::change::innermost;
use crate::session::plan::planner::StatementPlanner;
use crate::table::PlacedTable;
use crate::table_text::{
    belongs_to_type, foreign_key_text, generated_sql, identity_words, unique_text,
};
use atoll_sql_common::names::{CATALOG, SCHEMA, relation_name};
use atoll_sql_common::pg_type::type_of_check;
use atoll_sql_parse::dialect::{column_type, described};
use atoll_sql_parse::syntax::parsed_expr;

impl StatementPlanner {
    /// Replaces a statement that shows a table with a query.
    pub(in crate::session) fn take_shown(
        &self,
        state: &SessionState,
        statement: &mut Parsed,
    ) -> Result<()> {
        let Some(ast) = innermost(statement) else { return Ok(()) };
        let query = match ast {
            Ast::ShowCreate {
                obj_type: kind @ (ShowCreateObject::Table | ShowCreateObject::View),
                obj_name,
            } => {
                // The error for a missing table is the same for tables and views.
                *kind = ShowCreateObject::Table;
                let at = self.resolve_in(state, obj_name)?;
                match self.definition_of(&at)? {
                    Some(definition) => literals(&[
                        ("table_catalog", &*at.catalog),
                        ("table_schema", &*at.schema),
                        ("table_name", &*at.table),
                        ("definition", definition.as_str()),
                    ])?,
                    None => return Ok(()),
                }
            }
            Ast::ShowVariable { variable } => {
                let name = ObjectName::from(variable.clone());
                let Ok(at) = self.resolve_in(state, &name) else { return Ok(()) };
                match self.names.table(&at)? {
                    Some(_) => described(&name),
                    None => return Ok(()),
                }
            }
            _ => return Ok(()),
        };
        *ast = Ast::Query(Box::new(query));
        Ok(())
    }

    /// The statement that creates a table or view; `None` for those that no statement creates.
    fn definition_of(&self, at: &ResolvedTableReference) -> Result<Option<String>> {
        let Some(table) = self.names.table(at)? else { return Ok(None) };
        if let Some(view) = table.downcast_ref::<UnplannedView>() {
            return Ok(Some(view.sql.clone()));
        }
        let Some(table) = table.downcast_ref::<PlacedTable>() else { return Ok(None) };
        let made = MaterializedView::find(&self.names.stored_version(), &relation_name(at))?;
        Ok(Some(match made.filter(|_| table.is_materialized()) {
            Some(made) => made.create_text(&plain_name(at), table.columns()),
            None => self.create_table_text(at, table.definition()),
        }))
    }

    fn create_table_text(
        &self,
        at: &ResolvedTableReference,
        definition: &TableDefinition,
    ) -> String {
        let columns = 0..definition.columns.fields().len();
        let columns = columns.map(|column| self.column_text(definition, column));
        let version = self.names.stored_version();
        let foreign_keys = definition.foreign_keys.iter().map(|key| {
            let text = foreign_key_text(key, definition, &version, false);
            format!("CONSTRAINT {} {text}", quote_identifier(&key.name))
        });
        let parts: Vec<String> =
            columns.chain(constraints(definition)).chain(foreign_keys).collect();
        let placement = match definition.placement {
            placement if placement == self.database.options().placement => String::new(),
            placement => format!(" WITH (placement = '{placement}')"),
        };
        format!("CREATE TABLE {} ({}){placement}", plain_name(at), parts.join(", "))
    }

    fn column_text(&self, definition: &TableDefinition, column: usize) -> String {
        let field = definition.columns.field(column);
        let of = self.declared_type_text(field);
        let mut checks = definition.checks.iter();
        let length = checks.find_map(|check| {
            let checked = type_of_check(&check.sql, field.name()).filter(|it| it.is_length());
            let list = if field.data_type().is_nested() { "[]" } else { "" };
            checked.map(|checked| format!("{checked}{list}"))
        });
        let of = of.or(length).unwrap_or_else(|| column_type(field.data_type()));
        let mut text = format!("{} {of}", quote_identifier(field.name()));
        let is_key = |unique: &atoll_store::table::Unique| {
            unique.is_primary && unique.columns.contains(&column)
        };
        if !field.is_nullable() && !definition.uniques.iter().any(is_key) {
            text.push_str(" NOT NULL");
        }
        if let Some(identity) = definition.identity(column) {
            let kind = identity_words(identity.kind);
            text.push_str(&format!(" GENERATED {kind} AS IDENTITY"));
            let sequence = self.names.stored_version();
            if let Some(sequence) = sequence.sequence(identity.sequence) {
                let (start, increment) = (sequence.definition.start, sequence.definition.increment);
                if (start, increment) != (1, 1) {
                    text.push_str(&format!(" (START WITH {start} INCREMENT BY {increment})"));
                }
            }
        } else if let Some(default) = &definition.defaults[column] {
            match generated_sql(default) {
                Some(of) => text.push_str(&format!(" GENERATED ALWAYS AS ({of})")),
                None => text.push_str(&format!(" DEFAULT {default}")),
            }
        }
        text
    }
}

fn constraints(definition: &TableDefinition) -> impl Iterator<Item = String> {
    let keys = definition.uniques.iter().filter(|unique| !unique.is_index);
    let keys = keys.map(move |unique| {
        let name = quote_identifier(&unique.name);
        format!("CONSTRAINT {name} {}", unique_text(unique, definition))
    });
    let checks =
        definition.checks.iter().filter(|check| !is_hidden(&check.sql)).map(|check| {
            format!("CONSTRAINT {} CHECK ({})", quote_identifier(&check.name), check.sql)
        });
    keys.chain(checks)
}

/// Whether a CHECK constraint belongs to the type of a column, which the declaration shows.
fn is_hidden(check: &str) -> bool {
    parsed_expr(check).is_ok_and(|check| belongs_to_type(&check))
}

/// A name in a statement, without parts that are the defaults.
fn plain_name(at: &ResolvedTableReference) -> String {
    let table = quote_identifier(&at.table);
    match (&*at.catalog, &*at.schema) {
        (CATALOG, SCHEMA) => table.into_owned(),
        (_, schema) => format!("{}.{table}", quote_identifier(schema)),
    }
}

/// A query of one row of strings.
fn literals(columns: &[(&str, &str)]) -> Result<Query> {
    let column = |(name, text): &(&str, &str)| format!("'{}' AS {name}", text.replace('\'', "''"));
    let columns: Vec<String> = columns.iter().map(column).collect();
    let text = format!("SELECT {}", columns.join(", "));
    Ok(*Parser::new(&GenericDialect {}).try_with_sql(&text)?.parse_query()?)
}
