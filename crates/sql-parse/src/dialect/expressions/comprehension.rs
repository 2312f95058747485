//! List comprehensions.
//!
//! ```text
//! [x + 1 FOR x IN l]               list_transform(l, x -> x + 1)
//! [x + 1 FOR x IN l IF x > 0]      list_transform(list_filter(l, x -> x > 0), x -> x + 1)
//! ```

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, LambdaFunction, LambdaFunctionParameter, LambdaSyntax, OneOrManyWithParens,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::dialect::tree::call;

/// Parses a comprehension that begins here.
pub(in crate::dialect) fn prefix(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let begins = parser.peek_token_ref().token == Token::LBracket;
    (begins && is_comprehension(parser)).then(|| comprehension(parser))
}

/// Whether the bracket that opens here has FOR before a comma, which no expression has.
fn is_comprehension(parser: &Parser) -> bool {
    let mut depth = 0_usize;
    for at in 0.. {
        match parser.peek_nth_token_no_skip(at).token {
            Token::Whitespace(_) => continue,
            Token::LBracket | Token::LParen | Token::LBrace => depth += 1,
            Token::RBracket | Token::RParen | Token::RBrace => depth = depth.saturating_sub(1),
            Token::Word(word) if depth == 1 && word.keyword == Keyword::FOR => return true,
            Token::Comma if depth == 1 => return false,
            Token::EOF => return false,
            _ => {}
        }
        if depth == 0 {
            return false;
        }
    }
    false
}

fn comprehension(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LBracket)?;
    let result = parser.parse_expr()?;
    parser.expect_keyword(Keyword::FOR)?;
    let names = parser.parse_comma_separated(Parser::parse_identifier)?;
    parser.expect_keyword(Keyword::IN)?;
    let mut list = parser.parse_expr()?;
    if parser.parse_keyword(Keyword::IF) {
        if names.len() > 1 {
            return Err(ParserError::ParserError(
                "a list comprehension cannot have both IF and the number of an element".to_owned(),
            ));
        }
        let condition = parser.parse_expr()?;
        list = call("list_filter", vec![list, lambda(&names, condition)]);
    }
    parser.expect_token(&Token::RBracket)?;
    Ok(call("list_transform", vec![list, lambda(&names, result)]))
}

fn lambda(names: &[Ident], body: Expr) -> Expr {
    let params =
        names.iter().map(|name| LambdaFunctionParameter { name: name.clone(), data_type: None });
    Expr::Lambda(LambdaFunction {
        params: OneOrManyWithParens::Many(params.collect()),
        body: Box::new(body),
        syntax: LambdaSyntax::Arrow,
    })
}
