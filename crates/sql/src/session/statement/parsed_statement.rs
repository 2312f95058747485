//! A parsed statement with the placement in its WITH.

use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    CreateTableOptions, Expr, SqlOption, Statement as Ast, Value,
};

use crate::session::Session;
use crate::session::statement::routine_call::HiddenRelation;
use atoll_sql_common::error::stated_err;

/// A parsed statement, and the placement in its WITH.
#[derive(Clone)]
pub(crate) struct ParsedStatement {
    pub(crate) statement: Parsed,
    pub(crate) placement: Option<String>,
    /// The results of functions that ran before it.
    pub(crate) relations: Arc<[HiddenRelation]>,
}

impl Session {
    /// Parses one statement and takes out the placement.
    pub(in crate::session) fn parse(&self, sql: &str) -> Result<ParsedStatement> {
        // A copy of the state would take longer than the statement.
        let state = self.context.state_ref();
        let state = state.read();
        parse(sql, &state)
    }
}

/// Parses one statement and takes out the placement.
pub(crate) fn parse(sql: &str, state: &SessionState) -> Result<ParsedStatement> {
    let mut statement = atoll_sql_parse::parse::parse(sql, state)?;
    let placement = take_placement(&mut statement)?;
    Ok(ParsedStatement { statement, placement, relations: Arc::default() })
}

/// Whether an option is about the pages of a PostgreSQL table.
fn is_page_option(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "fillfactor" || name == "parallel_workers" || name.starts_with("autovacuum_")
}

fn take_placement(statement: &mut Parsed) -> Result<Option<String>> {
    let ast = match statement {
        Parsed::Statement(ast) => ast.as_mut(),
        Parsed::Explain(explain) => return take_placement(&mut explain.statement),
        _ => return Ok(None),
    };
    let Ast::CreateTable(create) = ast else { return Ok(None) };
    let CreateTableOptions::With(options) = &create.table_options else { return Ok(None) };
    let mut placement = None;
    for option in options {
        match option {
            SqlOption::KeyValue { key, value } if key.value.eq_ignore_ascii_case("placement") => {
                placement = Some(text_of(value)?);
            }
            // Tables here have no such pages.
            SqlOption::KeyValue { key, .. } if is_page_option(&key.value) => {}
            other => {
                return stated_err!(
                    INVALID_PARAMETER,
                    "unknown table option '{other}'; expected placement"
                );
            }
        }
    }
    create.table_options = CreateTableOptions::None;
    Ok(placement)
}

fn text_of(value: &Expr) -> Result<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Ok(text.clone()),
            other => Err(DataFusionError::Plan(format!(
                "invalid value {other} for placement; expected a quoted name such as 'aligned'"
            ))),
        },
        other => Ok(other.to_string()),
    }
}
