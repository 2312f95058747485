//! The logical rule that keeps filters with volatile calls where they are written.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, not_impl_err};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, JoinType, LogicalPlan, Projection, col};
use datafusion::optimizer::AnalyzerRule;

/// Puts the volatile calls of a filter into a column below it: filters on such a column stay above
/// the projection that makes it, and the projection stays where it is.
///
/// ```text
///                             Projection: g
/// Filter: random() < 0.5        Filter: __call_0 < 0.5
///   Aggregate: g         ─▶       Projection: g, random() AS __call_0
///                                   Aggregate: g
/// ```
#[derive(Debug)]
pub(crate) struct VolatileFilters;

impl AnalyzerRule for VolatileFilters {
    fn name(&self) -> &str {
        "volatile_filters"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Filter(filter) if filter.predicate.is_volatile() => of_filter(filter),
            LogicalPlan::Join(join) if is_volatile(&join) => of_join(join),
            plan => Ok(Transformed::no(plan)),
        })
        .data()
    }
}

fn is_volatile(join: &Join) -> bool {
    join.filter.as_ref().is_some_and(Expr::is_volatile)
        || join.on.iter().any(|(left, right)| left.is_volatile() || right.is_volatile())
}

fn of_filter(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    if is_row_by_row(&filter.input) {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let Filter { predicate, input, .. } = filter;
    Ok(Transformed::yes(filtered(split_conjunction_owned(predicate), input)?))
}

/// An inner join's conditions hold for pairs of rows, as those of a filter over the join do.
fn of_join(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    if join.join_type != JoinType::Inner {
        return not_impl_err!(
            "a call of a volatile function such as random() in the condition of a {} JOIN; call it \
             in a sub-query, and join with that",
            join.join_type.to_string().to_uppercase()
        );
    }
    let (volatile, on): (Vec<_>, Vec<_>) = std::mem::take(&mut join.on)
        .into_iter()
        .partition(|(left, right)| left.is_volatile() || right.is_volatile());
    let mut predicates: Vec<Expr> =
        volatile.into_iter().map(|(left, right)| left.eq(right)).collect();
    if let Some(filter) = join.filter.take() {
        let (volatile, stable): (Vec<_>, Vec<_>) =
            split_conjunction_owned(filter).into_iter().partition(Expr::is_volatile);
        predicates.extend(volatile);
        join.filter = conjunction(stable);
    }
    join.on = on;
    Ok(Transformed::yes(filtered(predicates, Arc::new(LogicalPlan::Join(join)))?))
}

/// Whether every row of the plan belongs to one row of what a filter on it could sink to.
fn is_row_by_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Limit(_) => true,
        // Two filters become one, in which equal calls are one call.
        LogicalPlan::Filter(filter) => {
            !filter.predicate.is_volatile() && is_row_by_row(&filter.input)
        }
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Union(_) => plan.inputs().into_iter().all(is_row_by_row),
        _ => false,
    }
}

/// The rows of `input` that pass all predicates, those without calls first.
fn filtered(predicates: Vec<Expr>, mut input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let (volatile, stable): (Vec<_>, Vec<_>) = predicates.into_iter().partition(Expr::is_volatile);
    if let Some(stable) = conjunction(stable) {
        input = Arc::new(LogicalPlan::Filter(Filter::try_new(stable, input)?));
    }
    let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut calls = Vec::new();
    let volatile = volatile
        .into_iter()
        .map(|predicate| without_calls(predicate, &mut calls))
        .collect::<Result<Vec<_>>>()?;
    let Some(volatile) = conjunction(volatile) else { return Ok(Arc::unwrap_or_clone(input)) };
    let with_calls = columns.iter().cloned().chain(calls).collect();
    let called = LogicalPlan::Projection(Projection::try_new(with_calls, input)?);
    let kept = LogicalPlan::Filter(Filter::try_new(volatile, Arc::new(called))?);
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(kept))?))
}

/// Takes the volatile calls out of an expression; columns stand in their place.
fn without_calls(expr: Expr, calls: &mut Vec<Expr>) -> Result<Expr> {
    expr.transform_down(|expr| {
        // A call on a value of an outer query cannot move out of the filter.
        if !expr.is_volatile_node() || expr.contains_outer() {
            return Ok(Transformed::no(expr));
        }
        let name = format!("__call_{}", calls.len());
        calls.push(expr.alias(name.as_str()));
        Ok(Transformed::new(col(name), true, TreeNodeRecursion::Jump))
    })
    .data()
}
