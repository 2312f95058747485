//! Hides the properties of a plan's rows.

use std::sync::Arc;

use datafusion::physical_expr::{EquivalenceProperties, Partitioning};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};

use atoll_sql_common::operator::{PassThrough, PassThroughExec};

/// The plan without declared order, constants and partitions.
pub(super) fn untold(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    PassThroughExec::plan(plan, Untold)
}

#[derive(Clone, Copy, Debug)]
struct Untold;

impl PassThrough for Untold {
    const NAME: &'static str = "UntoldExec";
    const KEEPS_ORDER: bool = false;

    fn properties(&self, input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::clone(input.properties())
            .with_eq_properties(EquivalenceProperties::new(input.schema()))
            .with_partitioning(Partitioning::UnknownPartitioning(partitions));
        Arc::new(properties)
    }
}
