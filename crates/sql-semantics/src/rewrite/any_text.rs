//! Regular expressions after `~` in the syntax of DataFusion.
//!
//! ```text
//! s ~ '\m[a&&b].'     PostgreSQL's words as those of the crate `regex` ([`regex_of`]): s ~ '(?s)\b{start}[a\&\&b].'
//! s ~ t, s ~ 'a\\b'  regexp_like(s, t)
//! s ~ '.*'           s LIKE '%', as any text matches
//! ```
//!
//! DataFusion 55.2 turns the last one into `s IS NOT NULL` (`simplify_expressions/regex.rs`, apache/datafusion#24379),
//! so `NOT (s ~ '.*')` is true if s is NULL; and it rewrites an expression of plain letters to a LIKE pattern, in
//! which a backslash is an escape.

use atoll_functions::{regex_of, regexp_like};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{BinaryExpr, Expr, Like, LogicalPlan, Operator, lit};
use datafusion::optimizer::OptimizerConfig;

use atoll_sql_common::logical::map_named;

/// Rewrites the expression that matches any text as a LIKE pattern; see the module.
pub(super) fn any_text(
    plan: LogicalPlan,
    _: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let mut has_any = false;
    plan.apply_expressions(|expr| {
        let is_one = |expr: &Expr| Ok(negated_of(expr).is_some());
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

/// Whether a regular expression match is negated; None for other expressions.
fn negated_of(expr: &Expr) -> Option<bool> {
    let Expr::BinaryExpr(BinaryExpr { op, .. }) = expr else { return None };
    match op {
        Operator::RegexMatch | Operator::RegexIMatch => Some(false),
        Operator::RegexNotMatch | Operator::RegexNotIMatch => Some(true),
        _ => None,
    }
}

/// Translates the pattern to the crate's syntax; returns whether it changed.
fn in_words(expr: Expr) -> Transformed<Expr> {
    if negated_of(&expr).is_none() {
        return Transformed::no(expr);
    }
    if let Some(call) = as_call(&expr) {
        return Transformed::yes(call);
    }
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return Transformed::no(expr);
    };
    match words_of(&right) {
        Some(words) => {
            let right = Box::new(words);
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
}

/// Rewrites the match as a call if the pattern is not constant or contains a literal backslash.
fn as_call(expr: &Expr) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    let stays = match constant(right) {
        Some(text) => !regex_of(text).contains(r"\\"),
        None => is_similar(right),
    };
    if stays {
        return None;
    }
    let text = |expr: &Expr| Expr::Cast(Cast::new(Box::new(expr.clone()), DataType::Utf8));
    let mut arguments = vec![text(left), text(right)];
    if matches!(op, Operator::RegexIMatch | Operator::RegexNotIMatch) {
        arguments.push(lit("i"));
    }
    let call = regexp_like()?.call(arguments);
    Some(if negated_of(expr)? { !call } else { call })
}

/// Whether a pattern came from SIMILAR TO, and so is in the crate's syntax already.
fn is_similar(pattern: &Expr) -> bool {
    match pattern {
        Expr::Cast(cast) => is_similar(&cast.expr),
        Expr::ScalarFunction(call) => call.func.name() == "similar_to_escape",
        _ => false,
    }
}

/// Returns the text of a constant.
fn constant(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Cast(cast) => constant(&cast.expr),
        Expr::Literal(value, _) => value.try_as_str()?,
        _ => None,
    }
}

/// Translates a constant to the crate's syntax, if it differs.
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

/// Replaces the expression that matches any text by LIKE's pattern, with the same type.
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
