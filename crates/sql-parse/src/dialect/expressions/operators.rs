//! Operators of DuckDB and PostgreSQL that DataFusion has as functions.
//!
//! ```text
//! 2 ** 3             power(2, 3)
//! 'abc' ^@ 'ab'      starts_with('abc', 'ab')
//! 'abc' GLOB 'a*'    text_glob('abc', 'a*')
//! ~5                 5 # -1
//! @ -5               abs(-5)
//! -INTERVAL '1 day'  -(INTERVAL '1 day')
//! (s).a, l[2:]       s['a'], l[2:-1]
//! $1 || $2           $1::TEXT || $2::TEXT
//! j ? 'a', j ?| l    jsonb_exists(j, 'a'), jsonb_exists_any(j, l)
//! a <<= b, a >>= b   inet_within_or_equal(a, b), inet_within_or_equal(b, a)
//! ```

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, Subscript, UnaryOperator, Value,
};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::dialect::tree::{self, binary, call, cast};

/// The operator `-|-` of ranges.
pub(crate) const ADJACENT: [Token; 3] = [Token::Minus, Token::Pipe, Token::Minus];

/// Reads `**`, which binds as `^`, `#`, `<<=` and `>>=` of addresses, `&<`, `&>` and `-|-` of ranges, and `?`, `?|` and `?&` of JSON: between operands a question mark is not a parameter.
/// `left` is the operand before it.
pub(crate) fn infix(
    parser: &mut Parser,
    left: &Expr,
    precedence: u8,
) -> Option<Result<Expr, ParserError>> {
    let (op, count) = match parser.peek_tokens::<3>() {
        [Token::Mul, Token::Mul, _] => (BinaryOperator::PGExp, 2),
        [Token::Ampersand, Token::Lt, _] => (BinaryOperator::AndLt, 2),
        [Token::Ampersand, Token::Gt, _] => (BinaryOperator::AndGt, 2),
        tokens if tokens == ADJACENT => (BinaryOperator::Custom("-|-".to_owned()), 3),
        [Token::Sharp, ..] => (BinaryOperator::BitwiseXor, 1),
        [Token::ShiftLeft, Token::Eq, _] => (BinaryOperator::Custom("<<=".to_owned()), 2),
        [Token::ShiftRight, Token::Eq, _] => (BinaryOperator::Custom(">>=".to_owned()), 2),
        [Token::Placeholder(mark), next, _] if mark == "?" => match next {
            Token::Pipe => (BinaryOperator::QuestionPipe, 2),
            Token::Ampersand => (BinaryOperator::QuestionAnd, 2),
            _ => (BinaryOperator::Question, 1),
        },
        _ => return None,
    };
    for _ in 0..count {
        parser.next_token();
    }
    let right = parser.parse_subexpr(precedence);
    Some(right.map(|right| Expr::BinaryOp {
        left: Box::new(left.clone()),
        op,
        right: Box::new(right),
    }))
}

/// Replaces operators by functions.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::PGStartsWith, right } => {
            let (left, right) = (left.as_ref().clone(), right.as_ref().clone());
            *expr = call("starts_with", vec![left, right]);
        }
        Expr::BinaryOp { left, op: BinaryOperator::Custom(op), right }
            if op == "~~~" || op == "!~~~" =>
        {
            let matches = call("text_glob", vec![left.as_ref().clone(), right.as_ref().clone()]);
            *expr = match op.as_str() {
                "~~~" => matches,
                _ => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(matches) },
            };
        }
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right }
            if tree::is_parameter(left) && tree::is_parameter(right) =>
        {
            for side in [left, right] {
                **side = cast(side.as_ref().clone(), DataType::Text);
            }
        }
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: value } => {
            let ones = Expr::Value(Value::Number("-1".to_owned(), false).into());
            let value = Expr::Nested(value.clone());
            *expr = Expr::Nested(Box::new(binary(value, BinaryOperator::BitwiseXor, ones)));
        }
        Expr::UnaryOp { op: UnaryOperator::PGAbs, expr: value } => {
            *expr = call("abs", vec![value.as_ref().clone()]);
        }
        // DataFusion negates only the first part of a literal.
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: value }
            if matches!(value.as_ref(), Expr::Interval(_)) =>
        {
            **value = Expr::Nested(value.clone());
        }
        Expr::Function(function) => {
            if let Some(name) = variable(function) {
                *expr = Expr::Identifier(Ident::new(format!("@{name}")));
            }
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            // What follows a name is a column, a table or a schema, as far as dots go.
            let names = match root.as_ref() {
                Expr::Identifier(_) => {
                    access_chain.iter().take_while(|of| matches!(of, AccessExpr::Dot(_))).count()
                }
                _ => 0,
            };
            access_chain.iter_mut().skip(names).for_each(access);
        }
        _ => {}
    }
    Ok(())
}

/// The name of the variable that a call reads.
fn variable(function: &Function) -> Option<String> {
    if !function.name.to_string().eq_ignore_ascii_case("getvariable") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(name)))] = list.args.as_slice()
    else {
        return None;
    };
    match &name.value {
        Value::SingleQuotedString(name) => Some(name.to_lowercase()),
        _ => None,
    }
}

/// `(s).a` is `s['a']`, and a slice without bounds goes to the ends.
fn access(access: &mut AccessExpr) {
    let bound = |bound: &str| Some(Expr::Value(Value::Number(bound.to_owned(), false).into()));
    match access {
        AccessExpr::Dot(Expr::Identifier(name)) => {
            let name = match name.quote_style {
                Some(_) => name.value.clone(),
                None => name.value.to_lowercase(),
            };
            let index = Expr::Value(Value::SingleQuotedString(name).into());
            *access = AccessExpr::Subscript(Subscript::Index { index });
        }
        AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, .. }) => {
            if lower_bound.is_none() {
                *lower_bound = bound("1");
            }
            if upper_bound.is_none() {
                *upper_bound = bound("-1");
            }
        }
        _ => {}
    }
}
