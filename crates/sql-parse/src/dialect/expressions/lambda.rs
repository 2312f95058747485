//! Lambdas: `x -> x + 1`, `(x, i) -> x * i` and `lambda x: x + 1`, as arguments of the functions that take them.
//!
//! Everywhere else `->` takes a value out of JSON, so `j -> 'a'` is not a lambda.
//!
//! DataFusion 55.2 looks for the columns of `[x]` and of `x.a` outside of the lambda: within its body they become
//! `make_array(x)` and `get_field(x, 'a')`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Array, Expr, Ident, LambdaFunction, LambdaFunctionParameter, LambdaSyntax, OneOrManyWithParens,
    Value,
};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::dialect::tree::call;
use crate::syntax::{read_tokens, walk_expressions_mut};

/// The functions that take a lambda.
const FUNCTIONS: [&str; 15] = [
    "apply",
    "array_any_match",
    "array_apply",
    "array_filter",
    "array_reduce",
    "array_transform",
    "filter",
    "list_any_match",
    "list_apply",
    "list_filter",
    "list_reduce",
    "list_transform",
    "reduce",
    "any_match",
    "transform",
];

/// Replaces expressions that the planner would resolve outside of a lambda by calls.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    let Expr::Lambda(lambda) = expr else { return };
    let names: Vec<String> = match &lambda.params {
        OneOrManyWithParens::One(param) => vec![param.name.value.to_lowercase()],
        OneOrManyWithParens::Many(params) => {
            params.iter().map(|param| param.name.value.to_lowercase()).collect()
        }
    };
    let _ = walk_expressions_mut(lambda.body.as_mut(), &mut |expr| {
        match expr {
            Expr::Array(Array { elem, .. }) => *expr = call("make_array", std::mem::take(elem)),
            Expr::CompoundIdentifier(parts)
                if parts.len() > 1 && names.contains(&parts[0].value.to_lowercase()) =>
            {
                let root = Expr::Identifier(parts[0].clone());
                let field = |root, name: &Ident| {
                    let name = Expr::value(Value::SingleQuotedString(name.value.clone()));
                    call("get_field", vec![root, name])
                };
                *expr = parts[1..].iter().fold(root, field);
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
}

/// The lambda that begins here, if one does.
pub(in crate::dialect) fn parse(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let (skipped, end) = match &parser.peek_token_ref().token {
        Token::Word(word) if word.value.eq_ignore_ascii_case("lambda") && is_word(parser, 1) => {
            (1, Token::Colon)
        }
        Token::Word(_) if parser.peek_nth_token_ref(1).token == Token::Arrow => (0, Token::Arrow),
        Token::LParen if is_word(parser, 1) => (1, Token::Arrow),
        _ => return None,
    };
    let count = parameters(parser, skipped, &end)?;
    if !is_argument(parser) {
        return None;
    }
    Some(lambda(parser, skipped, count, &end))
}

fn is_word(parser: &Parser, at: usize) -> bool {
    matches!(parser.peek_nth_token_ref(at).token, Token::Word(_))
}

/// The number of names from a position to the end of the parameters.
fn parameters(parser: &Parser, first: usize, end: &Token) -> Option<usize> {
    let mut count = 0;
    loop {
        if !is_word(parser, first + 2 * count) {
            return None;
        }
        count += 1;
        let behind = first + 2 * count - 1;
        match &parser.peek_nth_token_ref(behind).token {
            Token::Comma => {}
            Token::RParen if parser.peek_nth_token_ref(behind + 1).token == *end => {
                return Some(count);
            }
            token if token == end => return Some(count),
            _ => return None,
        }
    }
}

/// Whether an argument of one of the functions begins here.
fn is_argument(parser: &Parser) -> bool {
    let mut before = read_tokens(parser);
    let mut depth = 0;
    let mut is_first = true;
    while let Some(token) = before.next() {
        if is_first && !matches!(token, Token::LParen | Token::Comma) {
            return false;
        }
        is_first = false;
        match token {
            Token::RParen | Token::RBracket | Token::RBrace => depth += 1,
            Token::LParen if depth == 0 => {
                let Some(Token::Word(name)) = before.next() else { return false };
                return FUNCTIONS.iter().any(|known| name.value.eq_ignore_ascii_case(known));
            }
            Token::LParen | Token::LBracket | Token::LBrace if depth == 0 => return false,
            Token::LParen | Token::LBracket | Token::LBrace => depth -= 1,
            _ => {}
        }
    }
    false
}

fn lambda(
    parser: &mut Parser,
    skipped: usize,
    count: usize,
    end: &Token,
) -> Result<Expr, ParserError> {
    if skipped > 0 {
        parser.next_token();
    }
    let mut params = Vec::with_capacity(count);
    for at in 0..count {
        if at > 0 {
            parser.next_token();
        }
        let name = parser.parse_identifier()?;
        params.push(LambdaFunctionParameter { name, data_type: None });
    }
    let _closed = parser.consume_token(&Token::RParen);
    parser.expect_token(end)?;
    Ok(Expr::Lambda(LambdaFunction {
        params: OneOrManyWithParens::Many(params),
        body: Box::new(parser.parse_expr()?),
        syntax: LambdaSyntax::Arrow,
    }))
}
