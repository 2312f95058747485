//! `current_schema` and `current_role`, functions that are called without parentheses; the parser knows others of them.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

use crate::dialect::tree::call;

const NAMES: [&str; 2] = ["current_schema", "current_role"];

/// Reads a call.
pub(in crate::dialect) fn prefix(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let Token::Word(Word { value, quote_style: None, .. }) = &parser.peek_token_ref().token else {
        return None;
    };
    let name = NAMES.into_iter().find(|name| value.eq_ignore_ascii_case(name))?;
    if matches!(parser.peek_nth_token_ref(1).token, Token::LParen | Token::Period) {
        return None;
    }
    parser.next_token();
    Some(Ok(call(name, Vec::new())))
}
