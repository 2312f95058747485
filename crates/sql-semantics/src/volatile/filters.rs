//! The logical rule that keeps filters with volatile calls where they are written.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Result, not_impl_err};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, JoinType, LogicalPlan, Projection, col};
use datafusion::optimizer::AnalyzerRule;

use super::pairs::of_pair;
use super::shared::has_calls;

/// Name of that column.
const CALLED: &str = "__called";

/// Moves the volatile calls of a filter into a column below it: filters on such a column stay above
/// the projection that computes it, and the projection stays where it is.
///
/// ```text
///                             Projection: g
/// Filter: random() < 0.5        Filter: __called
///   Aggregate: g         ─▶       Projection: g, random() < 0.5 AS __called
///                                   Aggregate: g
/// ```
#[derive(Debug)]
pub struct VolatileFilters;

impl AnalyzerRule for VolatileFilters {
    fn name(&self) -> &str {
        "volatile_filters"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_calls(&plan)? {
            return Ok(plan);
        }
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

/// An inner join's conditions apply to pairs of rows, like a filter above the join. Those of an outer join stay.
fn of_join(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let (volatile, on): (Vec<_>, Vec<_>) = std::mem::take(&mut join.on)
        .into_iter()
        .partition(|(left, right)| left.is_volatile() || right.is_volatile());
    let mut predicates: Vec<Expr> =
        volatile.into_iter().map(|(left, right)| left.eq(right)).collect();
    let (volatile, stable): (Vec<_>, Vec<_>) = join
        .filter
        .take()
        .map_or(vec![], split_conjunction_owned)
        .into_iter()
        .partition(Expr::is_volatile);
    predicates.extend(volatile);
    join.on = on;
    if join.join_type == JoinType::Inner {
        join.filter = conjunction(stable);
        return Ok(Transformed::yes(filtered(predicates, Arc::new(LogicalPlan::Join(join)))?));
    }
    let predicate = conjunction(predicates).and_then(|predicate| of_pair(predicate, &join));
    if predicate.is_none() {
        return not_impl_err!(
            "a call of a volatile function such as random() in the condition of a {} JOIN with a \
             table without columns",
            join.join_type.to_string().to_uppercase()
        );
    }
    join.filter = conjunction(stable.into_iter().chain(predicate));
    Ok(Transformed::yes(LogicalPlan::Join(join)))
}

/// Whether every row of the plan comes from one row of any input that a filter could be pushed to.
fn is_row_by_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Limit(_) => true,
        // Two filters become one, in which equal calls become one call.
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

/// Filters `input` by all predicates; those without calls come first.
fn filtered(predicates: Vec<Expr>, mut input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let (volatile, stable): (Vec<_>, Vec<_>) = predicates.into_iter().partition(Expr::is_volatile);
    if let Some(stable) = conjunction(stable) {
        input = Arc::new(LogicalPlan::Filter(Filter::try_new(stable, input)?));
    }
    let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let Some(volatile) = conjunction(volatile) else { return Ok(Arc::unwrap_or_clone(input)) };
    // References to an outer query cannot move out of the filter.
    if volatile.contains_outer() {
        return Ok(LogicalPlan::Filter(Filter::try_new(volatile, input)?));
    }
    let passes = volatile.alias(CALLED);
    let with_calls = columns.iter().cloned().chain([passes]).collect();
    let called = LogicalPlan::Projection(Projection::try_new(with_calls, input)?);
    let kept = LogicalPlan::Filter(Filter::try_new(col(CALLED), Arc::new(called))?);
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(kept))?))
}
