//! Preserves the types of other aggregates when DataFusion turns a DISTINCT aggregate into two groupings.

use std::sync::Arc;

use atoll_functions::temporal::measured_type;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection, cast};
use datafusion::optimizer::OptimizerConfig;

use super::around::Rule;

/// DataFusion's rule that groups twice for a single DISTINCT, with types preserved.
///
/// A sum next to `count(DISTINCT x)` becomes a sum of sums, which for decimals has ten digits more
/// than the query was planned with: comparing it then fails (DataFusion 55.2,
/// `single_distinct_to_groupby.rs`; apache/datafusion#17815). Aggregates whose type changed are cast back.
/// Intervals stay with the aggregate, because the groups would distinguish intervals by their parts.
pub(super) fn rewrite(
    grouping: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Aggregate(aggregate) = &plan
        && aggregate.aggr_expr.iter().any(|function| of_intervals(function, &aggregate.input))
    {
        return Ok(Transformed::no(plan));
    }
    let planned = Arc::clone(plan.schema());
    let grouped = grouping.rewrite(plan, config)?;
    if !grouped.transformed {
        return Ok(grouped);
    }
    grouped.map_data(|plan| match plan {
        LogicalPlan::Projection(columns) => with_types_of(&planned, columns),
        plan => Ok(plan),
    })
}

/// Whether an aggregate is DISTINCT over intervals, or over values that contain intervals.
fn of_intervals(function: &Expr, input: &LogicalPlan) -> bool {
    let has_intervals = |argument: &Expr| {
        argument.get_type(input.schema()).is_ok_and(|of| measured_type(&of).is_some())
    };
    match function {
        Expr::Alias(alias) => of_intervals(&alias.expr, input),
        Expr::AggregateFunction(function) => {
            function.params.distinct && function.params.args.iter().any(has_intervals)
        }
        _ => false,
    }
}

fn with_types_of(planned: &DFSchema, columns: Projection) -> Result<LogicalPlan> {
    let Projection { expr, input, .. } = columns;
    let mut kept = Vec::with_capacity(expr.len());
    for (expr, field) in expr.into_iter().zip(planned.fields()) {
        let same = expr.get_type(input.schema())? == *field.data_type();
        kept.push(match expr {
            Expr::Alias(named) if !same => cast(*named.expr, field.data_type().clone())
                .alias_qualified(named.relation, named.name),
            expr => expr,
        });
    }
    Projection::try_new(kept, input).map(LogicalPlan::Projection)
}
