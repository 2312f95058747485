//! COPY, in the forms of DuckDB, PostgreSQL and DataFusion.
//!
//! ```text
//! COPY t TO 'f.csv' (FORMAT csv, HEADER, DELIMITER ';')    DuckDB, PostgreSQL
//! COPY t (a, b) FROM 'f.csv' WITH CSV HEADER NULL '-'      PostgreSQL until 8.4
//! COPY t TO 'f' STORED AS PARQUET OPTIONS (…)              DataFusion
//! ```
//!
//! COPY TO becomes DataFusion's COPY. COPY FROM becomes INSERT INTO t SELECT … FROM copy_from('f'),
//! a function over files only for this purpose.

mod options;

use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, Insert, ObjectName, Query, SetExpr,
    Statement as Ast, TableFactor, Value,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use options::CopyOptions;
pub use options::{
    BETWEEN, DATE_FORMAT, EMPTY_FIRST, OWN, QUOTED_COLUMNS, SINGLE, TIMESTAMP_FORMAT,
};

use crate::syntax::{COPY_FROM, OptionValue};

/// Parses a COPY; `None` if the next statement is another.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Option<Parsed>> {
    if !parser.peek_keyword(Keyword::COPY) {
        return Ok(None);
    }
    parser.next_token();
    let (source, columns) = source(parser)?;
    let writes = parser.expect_one_of_keywords(&[Keyword::TO, Keyword::FROM])? == Keyword::TO;
    let target = target(parser, writes)?;
    let mut options = CopyOptions::default();
    clauses(parser, &mut options)?;
    let _ = parser.consume_token(&Token::SemiColon);
    if parser.peek_token_ref().token != Token::EOF {
        let found = parser.peek_token();
        return Ok(parser.expected("an option of COPY or the end of the statement", found)?);
    }
    match (writes, source) {
        (true, source) => options.to(with_columns(source, &columns)?, &target).map(Some),
        (false, CopyToSource::Relation(table)) => {
            from(&table, &columns, &target, options).map(Some)
        }
        (false, CopyToSource::Query(_)) => plan_err!("COPY … FROM needs a table to copy into"),
    }
}

fn source(parser: &mut Parser<'_>) -> Result<(CopyToSource, Vec<Ident>)> {
    if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        return Ok((CopyToSource::Query(query), Vec::new()));
    }
    let table = parser.parse_object_name(true)?;
    let mut columns = Vec::new();
    if parser.consume_token(&Token::LParen) {
        columns = parser.parse_comma_separated(Parser::parse_identifier)?;
        parser.expect_token(&Token::RParen)?;
    }
    Ok((CopyToSource::Relation(table), columns))
}

/// The columns of a table as a query.
fn with_columns(source: CopyToSource, columns: &[Ident]) -> Result<CopyToSource> {
    match source {
        CopyToSource::Relation(table) if !columns.is_empty() => {
            let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
            let query = query(&format!("SELECT {} FROM {table}", columns.join(", ")))?;
            Ok(CopyToSource::Query(query))
        }
        source => Ok(source),
    }
}

fn query(sql: &str) -> Result<Box<Query>> {
    let dialect = datafusion::sql::sqlparser::dialect::GenericDialect {};
    Ok(Parser::new(&dialect).try_with_sql(sql)?.parse_query()?)
}

fn target(parser: &mut Parser<'_>, writes: bool) -> Result<String> {
    if writes && parser.parse_keyword(Keyword::STDOUT) {
        return plan_err!(
            "COPY … TO STDOUT works only in the shell (atoll sql); run the query, or copy to a file"
        );
    }
    if !writes && parser.parse_keyword(Keyword::STDIN) {
        return Ok("/dev/stdin".to_owned());
    }
    if parser.parse_keyword(Keyword::PROGRAM) {
        return plan_err!(
            "COPY … PROGRAM is not supported; write to or read from a file, or a pipe"
        );
    }
    Ok(parser.parse_literal_string()?)
}

fn clauses(parser: &mut Parser<'_>, options: &mut CopyOptions) -> Result<()> {
    loop {
        if parser.parse_keyword(Keyword::WITH) {
            continue;
        }
        if parser.consume_token(&Token::LParen) {
            if parser.consume_token(&Token::RParen) {
                continue;
            }
            loop {
                let (name, value) = option(parser)?;
                options.add(&name, value)?;
                if !parser.consume_token(&Token::Comma) {
                    break;
                }
            }
            parser.expect_token(&Token::RParen)?;
        } else if parser.parse_keywords(&[Keyword::STORED, Keyword::AS]) {
            let format = word(parser)?;
            options.add("format", OptionValue::Text(format))?;
        } else if parser.parse_keywords(&[Keyword::PARTITIONED, Keyword::BY]) {
            options.add("partition_by", list(parser)?)?;
        } else if parser.parse_keyword(Keyword::OPTIONS) {
            datafusion_options(parser, options)?;
        } else if !old_option(parser, options)? {
            return Ok(());
        }
    }
}

fn word(parser: &mut Parser<'_>) -> Result<String> {
    match parser.next_token().token {
        Token::Word(word) => Ok(word.value),
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Ok(text),
        other => plan_err!("expected the name of an option of COPY, found {other}"),
    }
}

/// A name that may have periods.
fn option_name(parser: &mut Parser<'_>) -> Result<String> {
    let mut name = word(parser)?;
    while parser.consume_token(&Token::Period) {
        name = format!("{name}.{}", word(parser)?);
    }
    Ok(name)
}

/// `NAME`, `NAME value` or `NAME = value`.
fn option(parser: &mut Parser<'_>) -> Result<(String, OptionValue)> {
    let name = option_name(parser)?;
    let _ = parser.consume_token(&Token::Eq) || parser.consume_token(&Token::Assignment);
    let value = match parser.peek_token_ref().token {
        Token::Comma | Token::RParen => OptionValue::Bool(true),
        Token::Mul => {
            parser.next_token();
            OptionValue::Text("*".to_owned())
        }
        Token::LParen => list(parser)?,
        _ => OptionValue::from_expr(&parser.parse_expr()?)?,
    };
    Ok((name, value))
}

/// `(a, b)`
fn list(parser: &mut Parser<'_>) -> Result<OptionValue> {
    parser.expect_token(&Token::LParen)?;
    let values = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(OptionValue::List(values.iter().map(OptionValue::from_expr).collect::<Result<_>>()?))
}

/// `('name' 'value', …)`, whose names are DataFusion's.
fn datafusion_options(parser: &mut Parser<'_>, options: &mut CopyOptions) -> Result<()> {
    parser.expect_token(&Token::LParen)?;
    while !parser.consume_token(&Token::RParen) {
        let name = option_name(parser)?;
        let value: Value = match parser.parse_keyword(Keyword::TRUE) {
            true => Value::Boolean(true),
            false if parser.parse_keyword(Keyword::FALSE) => Value::Boolean(false),
            false => parser.parse_value()?.value,
        };
        options.datafusion.push((name, value));
        let _ = parser.consume_token(&Token::Comma);
    }
    Ok(())
}

/// Parses an option in PostgreSQL's syntax before version 9; false if there is none.
fn old_option(parser: &mut Parser<'_>, options: &mut CopyOptions) -> Result<bool> {
    let Token::Word(next) = &parser.peek_token_ref().token else { return Ok(false) };
    let name = next.value.to_ascii_lowercase();
    match name.as_str() {
        "csv" | "parquet" | "json" | "arrow" => {
            parser.next_token();
            options.add("format", OptionValue::Text(name))?;
        }
        "binary" => return plan_err!("COPY … BINARY is not supported; use FORMAT parquet"),
        "header" => {
            parser.next_token();
            options.add(&name, OptionValue::Bool(true))?;
        }
        "delimiter" | "delimiters" | "null" | "quote" | "escape" | "encoding" => {
            parser.next_token();
            let _ = parser.parse_keyword(Keyword::AS);
            let name = if name == "delimiters" { "delimiter" } else { &name };
            let value = parser.parse_value()?.value;
            options.add(name, OptionValue::from_expr(&Expr::value(value))?)?;
        }
        "force" => {
            parser.next_token();
            match word(parser)?.to_ascii_lowercase().as_str() {
                "quote" if parser.consume_token(&Token::Mul) => {
                    options.add("force_quote", OptionValue::Text("*".to_owned()))?;
                }
                "quote" => options.add("force_quote", words(parser)?)?,
                "null" => options.add("force_null", words(parser)?)?,
                "not" => {
                    parser.expect_keyword(Keyword::NULL)?;
                    options.add("force_not_null", words(parser)?)?;
                }
                other => return plan_err!("unknown option FORCE {other} of COPY"),
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn words(parser: &mut Parser<'_>) -> Result<OptionValue> {
    let words = parser.parse_comma_separated(Parser::parse_identifier)?;
    Ok(OptionValue::List(words.into_iter().map(|it| OptionValue::Text(it.value)).collect()))
}

/// `INSERT INTO table (columns) SELECT * FROM copy_from('target', options)`
fn from(
    table: &ObjectName,
    columns: &[Ident],
    target: &str,
    options: CopyOptions,
) -> Result<Parsed> {
    let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let into = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let file = target.replace('\'', "''");
    let sql = format!("INSERT INTO {table}{into} SELECT * FROM {COPY_FROM}('{file}')");
    let dialect = datafusion::sql::sqlparser::dialect::GenericDialect {};
    let mut insert = Parser::new(&dialect).try_with_sql(&sql)?.parse_statement()?;
    let lost = || plan_datafusion_err!("COPY … FROM cannot be rewritten as INSERT");
    let args = arguments(&mut insert).ok_or_else(lost)?;
    for (name, value) in options.into_reading(table, columns)? {
        let left = Box::new(Expr::Identifier(Ident::new(name)));
        let right = Box::new(value);
        let option = Expr::BinaryOp { left, op: BinaryOperator::Eq, right };
        args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(option)));
    }
    Ok(Parsed::Statement(Box::new(insert)))
}

/// Whether an INSERT was made from a COPY … FROM.
pub fn is_copy(insert: &Insert) -> bool {
    let Some(SetExpr::Select(select)) = insert.source.as_ref().map(|source| source.body.as_ref())
    else {
        return false;
    };
    let relation = select.from.first().map(|from| &from.relation);
    let Some(TableFactor::Table { name, args: Some(_), .. }) = relation else { return false };
    matches!(&name.0[..], [part] if part.to_string() == COPY_FROM)
}

/// The arguments of the function that an INSERT reads from.
fn arguments(insert: &mut Ast) -> Option<&mut Vec<FunctionArg>> {
    let Ast::Insert(insert) = insert else { return None };
    let SetExpr::Select(select) = insert.source.as_mut()?.body.as_mut() else { return None };
    match &mut select.from.first_mut()?.relation {
        TableFactor::Table { args: Some(args), .. } => Some(&mut args.args),
        _ => None,
    }
}
