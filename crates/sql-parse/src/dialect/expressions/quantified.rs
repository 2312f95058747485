//! ANY and ALL over the elements of a list, as operators that [`PlanCalls`](atoll_functions::PlanCalls) plans: DataFusion
//! treats NULL in them differently.
//!
//! ```text
//! x = ANY (l), x <> ALL (l)      x "= ANY" l, x "<> ALL" l
//! x NOT LIKE ANY (l)             x "NOT LIKE ANY" l
//! x LIKE ALL (l)                 x "LIKE ALL" l, which sqlparser reads as the call of a function `ALL`
//! x = ANY ('{1,2}')              x "= ANY" ARRAY['1', '2']
//! x IN (VALUES (1), (2))         x IN (SELECT * FROM (VALUES (1), (2)) "$values")
//! ```

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SetExpr, Value,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::array_text;
use crate::dialect::tree;

/// Reads VALUES in parentheses as a subquery: sqlparser 0.62 does so only after EXISTS.
pub(in crate::dialect) fn prefix(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let [Token::Word(word), Token::LParen] = parser.peek_tokens::<2>() else { return None };
    let is_values = word.keyword == Keyword::VALUES && word.quote_style.is_none();
    if !is_values || parser.get_current_token().token != Token::LParen {
        return None;
    }
    Some(parser.parse_query().map(Expr::Subquery))
}

/// Makes a SELECT of VALUES as an operand: DataFusion 55.2 plans no other subquery there.
fn select_values(query: &mut Query) {
    if !matches!(*query.body, SetExpr::Values(_)) {
        return;
    }
    let nothing = tree::query(SetExpr::Select(Box::new(tree::select(vec![], vec![]))));
    let values = std::mem::replace(query, nothing);
    let rows = tree::derived(values, Some(tree::alias("$values", &[])));
    *query.body = SetExpr::Select(Box::new(tree::all_of(rows)));
}

/// Rewrites an expression; subqueries stay unchanged, except for VALUES.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    if let Expr::Subquery(query) | Expr::InSubquery { subquery: query, .. } = expr {
        return select_values(query);
    }
    let (left, op, list) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } => (left, format!("{compare_op} ANY"), right),
        Expr::AllOp { left, compare_op, right } => (left, format!("{compare_op} ALL"), right),
        Expr::Like { negated, any, expr, pattern, escape_char: None } => {
            let Some(quantifier) = quantifier(*any, pattern) else { return };
            (expr, like("LIKE", *negated, quantifier), pattern)
        }
        Expr::ILike { negated, any, expr, pattern, escape_char: None } => {
            let Some(quantifier) = quantifier(*any, pattern) else { return };
            (expr, like("ILIKE", *negated, quantifier), pattern)
        }
        _ => return,
    };
    if matches!(list.as_ref(), Expr::Subquery(_) | Expr::Tuple(_)) {
        return;
    }
    let taken = |part: &mut Expr| std::mem::replace(part, Expr::value(Value::Null));
    let (left, list) = (taken(left), taken(list));
    let list = array_text::array(&list).unwrap_or(list);
    let nested = |part: Expr| Expr::Nested(Box::new(part));
    *expr = nested(tree::binary(nested(left), BinaryOperator::Custom(op), nested(list)));
}

/// Whether an operator is one of those above.
pub fn is_quantified(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Custom(op) if op.ends_with(" ANY") || op.ends_with(" ALL"))
}

fn like(name: &str, negated: bool, quantifier: &str) -> String {
    format!("{}{name} {quantifier}", if negated { "NOT " } else { "" })
}

/// ANY or ALL before the list of a LIKE, without which `pattern` is left.
fn quantifier(any: bool, pattern: &mut Expr) -> Option<&'static str> {
    if any {
        return Some("ANY");
    }
    let Expr::Function(call) = pattern else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(patterns))] = list.args.as_slice() else {
        return None;
    };
    if !call.name.to_string().eq_ignore_ascii_case("all") {
        return None;
    }
    *pattern = patterns.clone();
    Some("ALL")
}
