//! AND and OR that evaluate a fallible right side only if it decides the result.
//!
//! DataFusion computes both sides for all rows unless the left one leaves at most a fifth of them, so
//! `v <> 0 AND 10 / v > 1` divides by zero (apache/datafusion#8927). As a CASE, the right side only sees the rows that
//! the left side leaves undecided. Conjuncts of filters, which DataFusion collects from several places, are ordered so
//! that fallible ones come last. The others stay conjuncts, so that they can still be moved.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, Cast, ScalarFunction};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};

use super::cast::CheckedCast;
use super::operation::Arithmetic;
use super::planner::DecimalDivision;

/// Other functions that fail for some arguments.
const FAILING: [&str; 16] = [
    "as_numeric",
    "exp",
    "ln",
    "log",
    "log10",
    "log2",
    "make_date",
    "power",
    "sqrt",
    "to_date",
    "to_time",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
];

/// Orders the filters of a scan, which evaluates them one by one.
pub(super) fn order_filters(plan: LogicalPlan, schema: &DFSchema) -> LogicalPlan {
    match plan {
        LogicalPlan::TableScan(mut scan) if scan.filters.len() > 1 => {
            let (last, mut first) = by_failure(scan.filters, schema);
            first.extend(last);
            scan.filters = first;
            LogicalPlan::TableScan(scan)
        }
        plan => plan,
    }
}

/// Guards a filter's predicate, for which NULL and false are the same.
pub(super) fn guard_filter(predicate: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if !may_fail(&predicate, schema) {
        return Ok(Transformed::no(predicate));
    }
    let conjuncts = split_conjunction_owned(predicate).into_iter();
    let conjuncts = conjuncts.map(|conjunct| guard(conjunct, schema).map(|guarded| guarded.data));
    let (last, mut first) = by_failure(conjuncts.collect::<Result<_>>()?, schema);
    let last = conjunction(last).map(|last| guard(last, schema)).transpose()?;
    let last = last.map(|last| match conjunction(first.clone()) {
        Some(safe) => when(safe, last.data),
        None => last.data,
    });
    first.extend(last);
    Ok(Transformed::yes(conjunction(first).unwrap_or_else(|| lit(true))))
}

/// `then` if the condition is true.
fn when(condition: Expr, then: Expr) -> Expr {
    if is_guarded(&then) {
        return then;
    }
    let branch = (Box::new(condition), Box::new(then));
    Expr::Case(Case::new(None, vec![branch], Some(Box::new(lit(false)))))
}

/// Whether an earlier pass made it.
fn is_guarded(expr: &Expr) -> bool {
    matches!(expr, Expr::Case(Case { expr: None, else_expr: Some(otherwise), .. }) if **otherwise == lit(false))
}

/// Splits into fallible predicates and others.
fn by_failure(conjuncts: Vec<Expr>, schema: &DFSchema) -> (Vec<Expr>, Vec<Expr>) {
    conjuncts.into_iter().partition(|conjunct| may_fail(conjunct, schema))
}

/// Rewrites every AND and OR with a fallible right side as a CASE.
pub(super) fn guard(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| guard_one(expr, schema))
}

/// Rewrites `left AND right` or `left OR right` as a CASE if the right side may fail or has side effects.
fn guard_one(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let decided = match op {
        Operator::And => false,
        Operator::Or => true,
        _ => return Ok(Transformed::no(expr)),
    };
    if !may_fail(right, schema) {
        return Ok(Transformed::no(expr));
    }
    let open = right.as_ref().clone();
    let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
    let unknown = Expr::BinaryExpr(BinaryExpr::new(Box::new(unknown), *op, right.clone()));
    let branches = vec![(lit(!decided), open), (lit(decided), lit(decided))];
    let branches = branches.into_iter().map(|(when, then)| (Box::new(when), Box::new(then)));
    let case = Case::new(Some(left.clone()), branches.collect(), Some(Box::new(unknown)));
    Ok(Transformed::yes(Expr::Case(case)))
}

/// Whether the expression must be evaluated only if it decides: it may fail, or it has side effects.
fn may_fail(expr: &Expr, schema: &DFSchema) -> bool {
    expr.is_volatile() || failure(expr, schema) != Failure::Never
}

/// The errors that evaluating an expression may raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Failure {
    Never,
    /// Overflows.
    Overflow,
    /// Division by zero, invalid text for a type, and so on.
    Any,
}

/// Returns the errors that evaluating the expression may raise.
pub(crate) fn failure(expr: &Expr, schema: &DFSchema) -> Failure {
    let mut worst = Failure::Never;
    let looked = expr.apply(|node| {
        worst = worst.max(failure_of_node(node, schema)?);
        Ok(match worst {
            Failure::Any => TreeNodeRecursion::Stop,
            _ => TreeNodeRecursion::Continue,
        })
    });
    looked.map_or(Failure::Any, |_| worst)
}

/// Without its arguments.
fn failure_of_node(node: &Expr, schema: &DFSchema) -> Result<Failure> {
    let is_text = |value: &Expr| Ok::<_, DataFusionError>(value.get_type(schema)?.is_string());
    Ok(match node {
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let inner = func.inner();
            if let Some(arithmetic) = inner.downcast_ref::<Arithmetic>() {
                return Ok(if arithmetic.divides() { Failure::Any } else { Failure::Overflow });
            }
            if let Some(cast) = inner.downcast_ref::<CheckedCast>() {
                return Ok(match args.first() {
                    Some(Expr::Literal(value, _)) if cast.holds(value) => Failure::Never,
                    Some(value) if !is_text(value)? => Failure::Overflow,
                    _ => Failure::Any,
                });
            }
            match inner.is::<DecimalDivision>() || FAILING.contains(&func.name()) {
                true => Failure::Any,
                false => Failure::Never,
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Modulo, .. }) => {
            match left.get_type(schema)?.is_floating() {
                true => Failure::Never,
                false => Failure::Any,
            }
        }
        Expr::Cast(Cast { expr, field }) if is_text(expr)? && !field.data_type().is_string() => {
            match expr.as_ref() {
                Expr::Literal(value, _) if value.cast_to(field.data_type()).is_ok() => {
                    Failure::Never
                }
                _ => Failure::Any,
            }
        }
        _ => Failure::Never,
    })
}
