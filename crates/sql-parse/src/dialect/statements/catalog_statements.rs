//! Rewrites statements about the catalog as queries; refuses those of other engines with the alternative here.
//!
//! ```text
//! SHOW TABLES                  SELECT table_name AS name FROM information_schema.tables WHERE …
//! PRAGMA table_info('t')       SELECT … FROM (DESCRIBE t)
//! KILL 7, KILL QUERY 7         SELECT pg_terminate_backend(7), SELECT pg_cancel_backend(7)
//! INSTALL httpfs               refused: there are no extensions
//! ```

use datafusion::common::{Result, not_impl_err, plan_datafusion_err, plan_err};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Ident, KillType, ObjectName, Query, SetExpr, Statement, Value, ValueWithSpan,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::dialect::statements::forms;
use crate::dialect::tree;

/// Rewrites a statement.
pub(in crate::dialect) fn rewrite(statement: &mut Statement, state: &SessionState) -> Result<()> {
    let query = match statement {
        Statement::ShowTables { full: false, extended: false, show_options, .. }
            if show_options.filter_position.is_none() && show_options.show_in.is_none() =>
        {
            parsed(&tables(state))?
        }
        Statement::ShowViews { show_options, .. } if show_options.filter_position.is_none() => {
            parsed(&tables(state).replace(" AND true", " AND table_type = 'VIEW'"))?
        }
        Statement::ShowVariable { variable } => match words(variable).as_str() {
            "all tables" => parsed(
                "SELECT table_catalog AS database, table_schema AS schema, table_name AS name, \
                 array_agg(column_name ORDER BY ordinal_position) AS column_names, \
                 array_agg(data_type ORDER BY ordinal_position) AS column_types, false AS temporary \
                 FROM information_schema.atoll_columns \
                 WHERE table_schema NOT IN ('information_schema', 'atoll') \
                 GROUP BY table_catalog, table_schema, table_name ORDER BY 1, 2, 3",
            )?,
            _ => return Ok(()),
        },
        Statement::ShowDatabases { .. } | Statement::ShowCatalogs { .. } => parsed(
            "SELECT DISTINCT catalog_name AS database_name FROM information_schema.schemata ORDER BY 1",
        )?,
        Statement::ShowSchemas { .. } => parsed(
            "SELECT catalog_name AS database_name, schema_name FROM information_schema.schemata ORDER BY 1, 2",
        )?,
        Statement::Kill { modifier: Some(KillType::Mutation), .. } => {
            return not_impl_err!("KILL MUTATION is not supported; expected KILL or KILL QUERY");
        }
        Statement::Kill { modifier: Some(KillType::Query), id } => {
            parsed(&format!("SELECT pg_cancel_backend({id})"))?
        }
        Statement::Kill { id, .. } => parsed(&format!("SELECT pg_terminate_backend({id})"))?,
        Statement::Pragma { name, value, .. } => pragma(name, value.as_ref(), state)?,
        Statement::Install { .. } | Statement::Load { .. } => {
            return plan_err!(
                "there are no extensions to install or load; Parquet, CSV, JSON and Arrow files are built in"
            );
        }
        Statement::AttachDatabase { .. } | Statement::AttachDuckDBDatabase { .. } => {
            return not_impl_err!(
                "ATTACH is not supported; a session has one database: atoll sql --data DIR"
            );
        }
        Statement::Use(_) => {
            return not_impl_err!(
                "USE is not supported; SET datafusion.catalog.default_schema = 'name' sets the schema of names without one"
            );
        }
        _ => return Ok(()),
    };
    *statement = Statement::Query(Box::new(query));
    Ok(())
}

fn words(idents: &[Ident]) -> String {
    let words: Vec<String> = idents.iter().map(|ident| ident.value.to_lowercase()).collect();
    words.join(" ")
}

fn tables(state: &SessionState) -> String {
    let schema = state.config_options().catalog.default_schema.replace('\'', "''");
    format!(
        "SELECT table_name AS name FROM information_schema.tables \
         WHERE table_schema = '{schema}' AND true ORDER BY 1"
    )
}

/// Parses a query of ours.
fn parsed(text: &str) -> Result<Query> {
    Ok(*Parser::new(&GenericDialect {}).try_with_sql(text)?.parse_query()?)
}

fn pragma(name: &ObjectName, value: Option<&ValueWithSpan>, state: &SessionState) -> Result<Query> {
    let name = name.to_string().to_lowercase();
    match (name.as_str(), value.map(|value| &value.value)) {
        ("show_tables", None) => parsed(&tables(state)),
        ("version", None) => {
            parsed(&format!("SELECT '{}' AS library_version", env!("CARGO_PKG_VERSION")))
        }
        ("database_list", None) => parsed(
            "SELECT DISTINCT catalog_name AS name FROM information_schema.schemata ORDER BY 1",
        ),
        (
            "table_info",
            Some(Value::SingleQuotedString(table) | Value::DoubleQuotedString(table)),
        ) => table_info(table),
        _ => not_impl_err!(
            "PRAGMA {name} is not supported; SET changes settings, SHOW ALL lists them, and atoll.tables, \
             atoll.columns and atoll.database describe what is stored"
        ),
    }
}

fn table_info(table: &str) -> Result<Query> {
    let described = parsed(&format!("SELECT * FROM {table}"))
        .map_err(|_| plan_datafusion_err!("PRAGMA table_info('{table}') does not name a table"))?;
    let rows = tree::relation_of(forms::DESCRIBE_TABLE, vec![described]);
    let mut query = parsed(
        "SELECT row_number() OVER () - 1 AS cid, column_name AS name, column_type AS type, \
         \"null\" = 'NO' AS notnull, \"default\" AS dflt_value, coalesce(\"key\" = 'PRI', false) AS pk",
    )?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![tree::alone(rows)];
    }
    Ok(query)
}
