//! Statements that are queries in DuckDB, where the parser expects a SELECT.
//!
//! ```text
//! PIVOT t ON year USING sum(n) GROUP BY city ORDER BY city      FROM $query($pivot t ON … GROUP BY city) ORDER BY city
//! FROM (SUMMARIZE t)                                            FROM (FROM $query($summarize t))
//! ```
//!
//! `words` writes the right side, whose names cannot be typed; the parser calls this module for the content of the
//! parentheses, and gets a query in parentheses.

use datafusion::sql::sqlparser::ast::{
    Expr, ExprWithAlias, FunctionArg, FunctionArgExpr, Ident, NullInclusion, ObjectName,
    PivotValueSource, Query, SetExpr, TableFactor,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

use crate::dialect::relations::percent;
use crate::dialect::tree;

pub(in crate::dialect) const QUERY: &str = "$query";
pub(in crate::dialect) const PIVOT: &str = "$pivot";
pub(in crate::dialect) const UNPIVOT: &str = "$unpivot";
pub(in crate::dialect) const SUMMARIZE: &str = "$summarize";
pub(in crate::dialect) const DESCRIBE: &str = "$describe";
/// DESCRIBE of a table, which has more properties than a query.
pub(in crate::dialect) const DESCRIBE_TABLE: &str = "$describe_table";
pub(in crate::dialect) const SAMPLE: &str = "$sample";

/// Parses a form.
pub(crate) fn prefix(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let Token::Word(Word { value, quote_style: None, .. }) = &parser.peek_token_ref().token else {
        return None;
    };
    if !value.starts_with('$') || value == percent::CALL {
        return None;
    }
    let name = value.clone();
    Some(form(&name, parser))
}

fn form(name: &str, parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.next_token();
    let factor = match name {
        PIVOT => pivot(parser)?,
        UNPIVOT => unpivot(parser)?,
        SAMPLE => parser.parse_table_factor()?,
        SUMMARIZE => tree::relation_of(name, vec![source(parser)?.0]),
        DESCRIBE => {
            let (query, is_table) = source(parser)?;
            tree::relation_of(if is_table { DESCRIBE_TABLE } else { DESCRIBE }, vec![query])
        }
        _ => return Err(ParserError::ParserError(format!("{name} is not an expression"))),
    };
    let query = tree::query(SetExpr::Select(Box::new(tree::all_of(factor))));
    Ok(Expr::Subquery(Box::new(query)))
}

/// Replaces a placeholder by its query.
pub(in crate::dialect) fn rewrite(factor: &mut TableFactor) {
    let TableFactor::Table { name, args: Some(args), alias, .. } = factor else { return };
    if name.to_string() != QUERY {
        return;
    }
    if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query)))] = &args.args[..] {
        *factor = tree::derived(query.as_ref().clone(), alias.take());
    }
}

/// The query for DESCRIBE of a table.
pub fn described(table: &ObjectName) -> Query {
    let table = tree::query(SetExpr::Select(Box::new(tree::all_of(tree::table(table.clone())))));
    let rows = tree::relation_of(DESCRIBE_TABLE, vec![table]);
    tree::query(SetExpr::Select(Box::new(tree::all_of(rows))))
}

/// A query, or a table as one, and whether it is a table.
fn source(parser: &mut Parser) -> Result<(Query, bool), ParserError> {
    let starts_query = match &parser.peek_token_ref().token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::FROM
        ),
        _ => false,
    };
    if starts_query {
        return parser.parse_query().map(|query| (*query, false));
    }
    let factor = parser.parse_table_factor()?;
    Ok((tree::query(SetExpr::Select(Box::new(tree::all_of(factor)))), true))
}

fn table(parser: &mut Parser) -> Result<Box<TableFactor>, ParserError> {
    let table = parser.parse_table_and_joins()?;
    Ok(Box::new(match table.joins.is_empty() {
        true => table.relation,
        false => TableFactor::NestedJoin { table_with_joins: Box::new(table), alias: None },
    }))
}

/// `t ON a [IN (…)], b USING sum(x) GROUP BY c`. The columns to group by are kept as a tuple where the tree
/// has a default for NULL.
fn pivot(parser: &mut Parser) -> Result<TableFactor, ParserError> {
    let table = table(parser)?;
    let mut value_column = Vec::new();
    if parser.parse_keyword(Keyword::ON) {
        value_column = parser.parse_comma_separated(Parser::parse_expr)?;
    }
    let mut aggregate_functions = Vec::new();
    if parser.parse_keyword(Keyword::USING) {
        aggregate_functions = parser.parse_comma_separated(Parser::parse_expr_with_alias)?;
    }
    let mut groups = None;
    if parser.parse_keywords(&[Keyword::GROUP, Keyword::BY]) {
        groups = Some(Expr::Tuple(parser.parse_comma_separated(Parser::parse_expr)?));
    }
    Ok(TableFactor::Pivot {
        table,
        aggregate_functions,
        value_column,
        value_source: PivotValueSource::List(vec![]),
        default_on_null: groups,
        alias: None,
    })
}

/// `t ON a, b INTO NAME n VALUE v`
fn unpivot(parser: &mut Parser) -> Result<TableFactor, ParserError> {
    let table = table(parser)?;
    parser.expect_keyword(Keyword::ON)?;
    let columns = parser.parse_comma_separated(|parser| {
        let expr = parser.parse_wildcard_expr()?;
        let alias = match parser.parse_keyword(Keyword::AS) {
            true => Some(parser.parse_identifier()?),
            false => None,
        };
        Ok(ExprWithAlias { expr, alias })
    })?;
    let (mut name, mut value) = (Ident::new("name"), Ident::new("value"));
    if parser.parse_keyword(Keyword::INTO) {
        parser.expect_keyword(Keyword::NAME)?;
        name = parser.parse_identifier()?;
        parser.expect_keyword(Keyword::VALUE)?;
        value = parser.parse_identifier()?;
    }
    Ok(TableFactor::Unpivot {
        table,
        value: Expr::Identifier(value),
        null_inclusion: Some(NullInclusion::ExcludeNulls),
        name,
        columns,
        alias: None,
    })
}
