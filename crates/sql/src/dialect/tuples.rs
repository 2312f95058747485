//! `(a, b) IN (…)`: pairs are compared part by part, and a NULL makes the answer NULL where it could be either.
//!
//! ```text
//! (a, b) IN ((1, 2), (3, 4))          (a = 1 AND b = 2) OR (a = 3 AND b = 4)
//! (a, b) IN (SELECT x, y FROM t)      CASE WHEN EXISTS (SELECT 1 FROM (…) q WHERE x = a AND y = b) THEN true
//!                                          WHEN EXISTS (SELECT 1 FROM (…) q WHERE (x = a AND y = b) IS NULL) THEN NULL
//!                                          ELSE false END
//! ```
//!
//! In the condition of a filter, where NULL is false, the first EXISTS is all.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Query, Select, SetExpr, UnaryOperator, Value,
};

use super::tree;

/// The conditions of a SELECT.
pub(super) fn rewrite_select(select: &mut Select) {
    if let Some(condition) = &mut select.selection {
        rewrite_condition(condition);
    }
}

/// Memberships that are a condition, or one of several that all have to hold.
fn rewrite_condition(condition: &mut Expr) {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            rewrite_condition(left);
            rewrite_condition(right);
        }
        Expr::Nested(inner) => rewrite_condition(inner),
        Expr::InSubquery { expr, subquery, negated: false } => {
            if let Some(values) = values(expr) {
                *condition = exists(subquery, values, |equal| equal);
            }
        }
        _ => {}
    }
}

/// Writes a membership of several values out.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::InList { expr: value, list, negated } => {
            let Some(values) = values(value) else { return Ok(()) };
            if list.len() * values.len() > 10_000 {
                return Ok(());
            }
            let mut any: Vec<Expr> = Vec::with_capacity(list.len());
            for item in list.iter() {
                let Some(others) = self::values(item) else { return Ok(()) };
                if others.len() != values.len() {
                    return plan_err!(
                        "{value} IN (…): the lists have {} and {} values",
                        values.len(),
                        others.len()
                    );
                }
                any.push(Expr::Nested(Box::new(all_equal(values.clone(), others))));
            }
            let Some(any) = balanced(any) else { return Ok(()) };
            *expr = negated_if(*negated, any);
        }
        Expr::InSubquery { expr: value, subquery, negated } => {
            let Some(values) = values(value) else { return Ok(()) };
            let found = exists(subquery, values.clone(), |equal| equal);
            let unknown = exists(subquery, values, |equal| {
                Expr::IsNull(Box::new(Expr::Nested(Box::new(equal))))
            });
            let case = Expr::Case {
                case_token: AttachedToken::empty(),
                end_token: AttachedToken::empty(),
                operand: None,
                conditions: vec![
                    CaseWhen { condition: found, result: boolean(Value::Boolean(true)) },
                    CaseWhen { condition: unknown, result: boolean(Value::Null) },
                ],
                else_result: Some(Box::new(boolean(Value::Boolean(false)))),
            };
            *expr = negated_if(*negated, case);
        }
        _ => {}
    }
    Ok(())
}

fn boolean(value: Value) -> Expr {
    Expr::Value(value.into())
}

fn negated_if(negated: bool, expr: Expr) -> Expr {
    match negated {
        true => {
            Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expr))) }
        }
        false => Expr::Nested(Box::new(expr)),
    }
}

/// The values of a list of several.
fn values(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(values) if values.len() > 1 => Some(values.clone()),
        Expr::Nested(inner) => values(inner),
        _ => None,
    }
}

fn all_equal(left: Vec<Expr>, right: Vec<Expr>) -> Expr {
    let pairs = left.into_iter().zip(right);
    let equal =
        pairs.map(|(left, right)| tree::binary(nested(left), BinaryOperator::Eq, nested(right)));
    equal.reduce(tree::and).unwrap_or_else(|| boolean(Value::Boolean(true)))
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

/// A disjunction that is not deep.
fn balanced(mut exprs: Vec<Expr>) -> Option<Expr> {
    while exprs.len() > 1 {
        let mut pairs = exprs.into_iter();
        let mut joined = Vec::new();
        while let Some(left) = pairs.next() {
            joined.push(match pairs.next() {
                Some(right) => tree::binary(left, BinaryOperator::Or, right),
                None => left,
            });
        }
        exprs = joined;
    }
    exprs.pop()
}

/// Whether there is a row for which something holds of its equality with the values.
fn exists(subquery: &Query, values: Vec<Expr>, asked: impl Fn(Expr) -> Expr) -> Expr {
    let names: Vec<String> = (0..values.len()).map(|at| format!("$part{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let columns = names.iter().map(|name| Expr::Identifier(tree::quoted(name))).collect();
    let rows = tree::derived(subquery.clone(), Some(tree::alias("$rows", &names)));
    let one = tree::item(Expr::Value(Value::Number("1".to_owned(), false).into()), "one");
    let mut select = tree::select(vec![one], vec![tree::alone(rows)]);
    select.selection = Some(asked(all_equal(columns, values)));
    let subquery = Box::new(tree::query(SetExpr::Select(Box::new(select))));
    Expr::Exists { subquery, negated: false }
}
