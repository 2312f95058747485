//! Regular expressions as DataFusion takes them.
//!
//! PostgreSQL's words are written as those of the crate `regex` ([`regex_of`]): `s ~ '\m[a&&b]'`. And `s ~ '.*'`, which any
//! text matches, as `s LIKE '%'`.
//!
//! DataFusion 55.2 makes `s IS NOT NULL` of it (`simplify_expressions/regex.rs`), so that `NOT (s ~ '.*')` is true where
//! s is NULL.

use atoll_functions::regex_of;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{BinaryExpr, Expr, Like, LogicalPlan, Operator};
use datafusion::optimizer::OptimizerConfig;

use super::map_named;

/// Writes the expression that any text matches as a pattern; see the module.
pub(super) fn any_text(
    plan: LogicalPlan,
    _: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let mut has_any = false;
    plan.apply_expressions(|expr| {
        let is_one = |expr: &Expr| Ok(negated_of(expr).is_some() || is_call(expr));
        has_any = has_any || expr.exists(is_one)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !has_any {
        return Ok(Transformed::no(plan));
    }
    map_named(plan, |expr| {
        expr.transform_up(|expr| replaced(expr).transform_data(|expr| Ok(in_words(expr))))
    })
}

/// Whether a match with a regular expression is negated; none for other expressions.
fn negated_of(expr: &Expr) -> Option<bool> {
    let Expr::BinaryExpr(BinaryExpr { op, .. }) = expr else { return None };
    match op {
        Operator::RegexMatch | Operator::RegexIMatch => Some(false),
        Operator::RegexNotMatch | Operator::RegexNotIMatch => Some(true),
        _ => None,
    }
}

/// Functions of DataFusion whose second argument is a regular expression.
const CALLS: [&str; 5] =
    ["regexp_count", "regexp_instr", "regexp_like", "regexp_match", "regexp_replace"];

fn is_call(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if CALLS.contains(&call.func.name()))
}

/// The expression with its pattern in the words of the crate; whether they are others.
fn in_words(expr: Expr) -> Transformed<Expr> {
    let is_match = negated_of(&expr).is_some();
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_match => match words_of(&right) {
            Some(words) => {
                let right = Box::new(words);
                Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
            None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        },
        Expr::ScalarFunction(mut call) if CALLS.contains(&call.func.name()) => {
            let words = call.args.get(1).and_then(words_of);
            let has_words = words.is_some();
            if let (Some(words), Some(pattern)) = (words, call.args.get_mut(1)) {
                *pattern = words;
            }
            Transformed::new_transformed(Expr::ScalarFunction(call), has_words)
        }
        expr => Transformed::no(expr),
    }
}

/// A constant expression in the words of the crate, where these are others.
fn words_of(pattern: &Expr) -> Option<Expr> {
    match pattern {
        Expr::Cast(cast) => {
            let expr = Box::new(words_of(&cast.expr)?);
            Some(Expr::Cast(Cast { expr, ..cast.clone() }))
        }
        Expr::Literal(value, metadata) => {
            let text = value.try_as_str()??;
            let words = regex_of(text);
            let words = (words != text).then(|| words.into_owned());
            let words = ScalarValue::from(words?).cast_to(&value.data_type()).ok()?;
            Some(Expr::Literal(words, metadata.clone()))
        }
        _ => None,
    }
}

fn replaced(expr: Expr) -> Transformed<Expr> {
    let Some(negated) = negated_of(&expr) else { return Transformed::no(expr) };
    let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = &expr else {
        return Transformed::no(expr);
    };
    let Some(pattern) = anything(right) else { return Transformed::no(expr) };
    let pattern = Box::new(pattern);
    Transformed::yes(Expr::Like(Like::new(negated, left.clone(), pattern, None, false)))
}

/// LIKE's pattern in the place of the expression that any text matches, in its type.
fn anything(regex: &Expr) -> Option<Expr> {
    let every = || Some("%".to_owned());
    let is_any = |text: &String| text == ".*";
    let pattern = match regex {
        Expr::Cast(cast) => {
            let pattern = Box::new(anything(&cast.expr)?);
            return Some(Expr::Cast(Cast { expr: pattern, ..cast.clone() }));
        }
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) if is_any(text) => {
            ScalarValue::Utf8(every())
        }
        Expr::Literal(ScalarValue::LargeUtf8(Some(text)), _) if is_any(text) => {
            ScalarValue::LargeUtf8(every())
        }
        Expr::Literal(ScalarValue::Utf8View(Some(text)), _) if is_any(text) => {
            ScalarValue::Utf8View(every())
        }
        _ => return None,
    };
    Some(Expr::Literal(pattern, None))
}
