//! ANY and ALL over the elements of a list, as operators that [`PlanCalls`](atoll_functions::PlanCalls) plans: DataFusion
//! treats NULL in them differently.
//!
//! ```text
//! x = ANY (l), x <> ALL (l)      x "= ANY" l, x "<> ALL" l
//! x NOT LIKE ANY (l)             x "NOT LIKE ANY" l
//! ```

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value};

use crate::dialect::tree;

/// Rewrites an expression; subqueries stay unchanged.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    let (left, op, list) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } => (left, format!("{compare_op} ANY"), right),
        Expr::AllOp { left, compare_op, right } => (left, format!("{compare_op} ALL"), right),
        Expr::Like { negated, any: true, expr, pattern, escape_char: None } => {
            (expr, like("LIKE", *negated), pattern)
        }
        Expr::ILike { negated, any: true, expr, pattern, escape_char: None } => {
            (expr, like("ILIKE", *negated), pattern)
        }
        _ => return,
    };
    if matches!(list.as_ref(), Expr::Subquery(_) | Expr::Tuple(_)) {
        return;
    }
    let taken = |part: &mut Expr| std::mem::replace(part, Expr::value(Value::Null));
    let (left, list) = (taken(left), taken(list));
    let nested = |part: Expr| Expr::Nested(Box::new(part));
    *expr = nested(tree::binary(nested(left), BinaryOperator::Custom(op), nested(list)));
}

/// Whether an operator is one of those above.
pub fn is_quantified(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Custom(op) if op.ends_with(" ANY") || op.ends_with(" ALL"))
}

fn like(name: &str, negated: bool) -> String {
    format!("{}{name} ANY", if negated { "NOT " } else { "" })
}
