//! AND and OR whose right side may fail compute it only where it decides.
//!
//! DataFusion computes both sides for all rows unless the left one leaves at most a fifth of them, so
//! that `v <> 0 AND 10 / v > 1` divides by zero (apache/datafusion#8927). As a CASE the right side sees the rows that
//! the left one leaves open. Conjuncts of filters, which DataFusion joins out of several places, are ordered so
//! that those that may fail come last. The others stay conjuncts, so that they can still be moved.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, Cast, ScalarFunction};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};

use super::cast::CheckedCast;
use super::operation::Arithmetic;
use super::planner::DecimalDivision;

/// Other functions that fail on some of their arguments.
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

/// Puts the filters of a scan, which takes them one by one, in order.
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

/// A filter's predicate, of which only what is true matters.
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

/// `then` where the condition is true.
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

/// Those that may fail, and the others.
fn by_failure(conjuncts: Vec<Expr>, schema: &DFSchema) -> (Vec<Expr>, Vec<Expr>) {
    conjuncts.into_iter().partition(|conjunct| may_fail(conjunct, schema))
}

/// Every AND and OR of an expression whose right side may fail as a CASE.
pub(super) fn guard(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| guard_one(expr, schema))
}

/// `left AND right` or `left OR right` as a CASE where the right side may fail or calls what has effects.
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

/// Whether the expression must be computed only where it decides: it may fail, or its calls have effects.
fn may_fail(expr: &Expr, schema: &DFSchema) -> bool {
    expr.is_volatile() || failure(expr, schema) != Failure::Never
}

/// What errors computing an expression may end in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Failure {
    Never,
    /// Numbers that are too large for their type.
    Overflow,
    /// A division by zero, a text that is not a number, and so on.
    Any,
}

/// What errors computing the expression may end in.
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
