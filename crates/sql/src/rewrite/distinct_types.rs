//! A DISTINCT aggregate made of two groupings keeps the types of what stands beside it.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection, cast};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// DataFusion's rule that groups twice for the one DISTINCT of an aggregation, with its types kept.
///
/// A sum beside `count(DISTINCT x)` becomes a sum of sums, and of decimals that has ten digits more
/// than the query was planned with: a comparison with it then ends in an error (DataFusion 55.2,
/// `single_distinct_to_groupby.rs`). What has another type than before is cast back to it.
#[derive(Debug)]
pub(super) struct DistinctTypes {
    grouping: Arc<dyn OptimizerRule + Send + Sync>,
}

impl DistinctTypes {
    /// Kept by that rule.
    pub(super) fn kept_by(grouping: Arc<dyn OptimizerRule + Send + Sync>) -> Self {
        Self { grouping }
    }
}

impl OptimizerRule for DistinctTypes {
    fn name(&self) -> &str {
        self.grouping.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.grouping.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let planned = Arc::clone(plan.schema());
        let grouped = self.grouping.rewrite(plan, config)?;
        if !grouped.transformed {
            return Ok(grouped);
        }
        grouped.map_data(|plan| match plan {
            LogicalPlan::Projection(columns) => with_types_of(&planned, columns),
            plan => Ok(plan),
        })
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
