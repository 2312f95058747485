//! From text to statements, with the line on which each begins.

use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::sql::parser::{DFParser, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTableOptions, Expr, Insert, ObjectName, SqlOption,
    Statement as Ast, TableObject, Value,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::{Place, SqlError};

/// One statement of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its text, without the semicolon.
    pub text: String,
    /// The line of the script on which it begins, from 1.
    pub line: u64,
    /// Whether a semicolon ends it.
    pub complete: bool,
}

/// Splits a script at its semicolons, those in quotes and comments aside.
///
/// # Errors
/// For text that cannot be cut into tokens, such as a quote that is never closed.
pub fn split_statements(script: &str) -> std::result::Result<Vec<Statement>, SqlError> {
    let tokens =
        Tokenizer::new(&GenericDialect {}, script).tokenize_with_location().map_err(|error| {
            SqlError::syntax(error.message.clone(), Place::of(error.location), script)
        })?;
    let lines = LineStarts::new(script);
    let mut statements = Vec::new();
    let mut first = None;
    for token in &tokens {
        let start = lines.offset(token.span.start.line, token.span.start.column, script);
        match token.token {
            Token::SemiColon => {
                if let Some((begin, line)) = first.take() {
                    let text = script[begin..start].trim_end().to_owned();
                    statements.push(Statement { text, line, complete: true });
                }
            }
            Token::Whitespace(_) | Token::EOF => {}
            _ => first = first.or(Some((start, token.span.start.line))),
        }
    }
    if let Some((begin, line)) = first {
        let text = script[begin..].trim_end().to_owned();
        statements.push(Statement { text, line, complete: false });
    }
    Ok(statements)
}

/// Byte offsets at which the lines of a text start.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn new(text: &str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(after).collect())
    }

    /// Byte offset of a line and column, both from 1, the column in characters.
    fn offset(&self, line: u64, column: u64, text: &str) -> usize {
        let start = self.0.get(line.saturating_sub(1) as usize).copied().unwrap_or(text.len());
        let within = text[start..].char_indices().nth(column.saturating_sub(1) as usize);
        within.map_or(text.len(), |(at, _)| start + at)
    }
}

/// A parsed statement, and the placement that its WITH names.
pub(crate) struct Placed {
    pub(crate) statement: Parsed,
    pub(crate) placement: Option<String>,
}

/// Parses one statement and takes out what DataFusion's planner does not know.
pub(crate) fn parse(sql: &str) -> Result<Placed> {
    let mut statements = DFParser::parse_sql_with_dialect(sql, &GenericDialect {})?;
    let (Some(mut statement), None) = (statements.pop_front(), statements.pop_front()) else {
        return plan_err!("one statement at a time is expected");
    };
    let placement = take_placement(&mut statement)?;
    Ok(Placed { statement, placement })
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
            other => {
                return plan_err!("'{other}' is not a table option; the one there is: placement");
            }
        }
    }
    create.table_options = CreateTableOptions::None;
    Ok(placement)
}

/// For each column that a CREATE TABLE declares, whether it is NOT NULL.
pub(crate) fn not_null(statement: &Ast) -> Vec<bool> {
    let Ast::CreateTable(create) = statement else { return Vec::new() };
    let is_not_null = |column: &ColumnDef| {
        column.options.iter().any(|option| option.option == ColumnOption::NotNull)
    };
    create.columns.iter().map(is_not_null).collect()
}

/// The table into which a statement inserts rows.
pub(crate) fn target(statement: &Parsed) -> Option<&ObjectName> {
    let mut ast = match statement {
        Parsed::Statement(ast) => ast.as_ref(),
        Parsed::Explain(explain) => return target(&explain.statement),
        _ => return None,
    };
    while let Ast::Prepare { statement, .. } | Ast::Explain { statement, .. } = ast {
        ast = statement;
    }
    match ast {
        Ast::Insert(Insert { table: TableObject::TableName(name), .. }) => Some(name),
        _ => None,
    }
}

fn text_of(value: &Expr) -> Result<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Ok(text.clone()),
            other => Err(DataFusionError::Plan(format!(
                "placement is a name in quotes such as 'aligned', not {other}"
            ))),
        },
        other => Ok(other.to_string()),
    }
}
