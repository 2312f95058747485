//! `SELECT x: 1` is `SELECT 1 AS x`, as in DuckDB.

use datafusion::sql::sqlparser::ast::{Expr, Select, SelectItem};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::syntax::read_tokens;

/// Reads a name with a colon in front of an expression of the select list.
pub(crate) fn prefix(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let [Token::Word(_) | Token::DoubleQuotedString(_), Token::Colon] = parser.peek_tokens() else {
        return None;
    };
    let begins_item = match read_tokens(parser).next() {
        Some(Token::Word(word)) => {
            matches!(word.keyword, Keyword::SELECT | Keyword::DISTINCT | Keyword::ALL)
        }
        token => token == Some(&Token::Comma),
    };
    if !begins_item {
        return None;
    }
    Some(named(parser))
}

fn named(parser: &mut Parser) -> Result<Expr, ParserError> {
    let name = parser.parse_identifier()?;
    parser.expect_token(&Token::Colon)?;
    let expr = Box::new(parser.parse_expr()?);
    Ok(Expr::Named { expr, name })
}

/// Makes the names aliases.
pub(in crate::dialect) fn rewrite(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(Expr::Named { expr, name }) = item {
            let (expr, alias) = (expr.as_ref().clone(), name.clone());
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}
