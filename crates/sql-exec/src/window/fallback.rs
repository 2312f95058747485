//! DataFusion's operators over rows of which some have been read: they spill where memory is short.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, InputOrderMode,
    Partitioning, PlanProperties,
};
use futures::StreamExt;
use parking_lot::Mutex;

use super::collect::Collected;
use atoll_sql_common::operator::leaf;

/// Rows that have been read, and those that follow.
pub(super) struct RemainingRows {
    inputs: Mutex<Vec<Option<SendableRecordBatchStream>>>,
    properties: Arc<PlanProperties>,
}

impl RemainingRows {
    pub(super) fn new(inputs: Vec<Collected>, schema: &SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(schema)),
            Partitioning::UnknownPartitioning(inputs.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let inputs = inputs.into_iter().map(|input| Some(remaining(input, schema))).collect();
        Self { inputs: Mutex::new(inputs), properties: Arc::new(properties) }
    }
}

/// Rows of an input; what they took is for others to reserve.
fn remaining(input: Collected, schema: &SchemaRef) -> SendableRecordBatchStream {
    drop(input.reserved);
    let batches = input.batches.into_iter().map(|kept| Ok(kept.batch));
    let rest = futures::stream::iter(input.rest).flatten();
    let all = futures::stream::iter(batches).chain(rest);
    Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), all))
}

impl fmt::Debug for RemainingRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemainingRows")
    }
}

impl DisplayAs for RemainingRows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemainingRows")
    }
}

impl ExecutionPlan for RemainingRows {
    leaf!("RemainingRows", properties, no expressions);

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.inputs.lock().get_mut(partition).and_then(Option::take);
        input
            .ok_or_else(|| internal_datafusion_err!("rows of partition {partition} are read twice"))
    }
}

/// Adds what DataFusion's operators need where Atoll plans them.
pub(crate) type Completes =
    fn(&Arc<dyn ExecutionPlan>, &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>>;

/// DataFusion's operators for the same results.
#[derive(Debug)]
pub(super) struct OldPlan {
    pub(super) exprs: Vec<Arc<dyn WindowExpr>>,
    pub(super) ordering: Option<LexOrdering>,
    pub(super) completes: Completes,
}

impl OldPlan {
    /// The window operator over sorted partitions.
    pub(super) fn sorted(&self, input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let exprs = self.exprs.clone();
        let bounded = exprs.iter().all(|expr| expr.uses_bounded_memory());
        Ok(match bounded {
            true => {
                Arc::new(BoundedWindowAggExec::try_new(exprs, input, InputOrderMode::Sorted, true)?)
            }
            false => Arc::new(WindowAggExec::try_new(exprs, input, true)?),
        })
    }

    /// Partitions sorted, where they are.
    pub(super) fn sort(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        match &self.ordering {
            Some(ordering) => {
                let sort = SortExec::new(ordering.clone(), input);
                Arc::new(sort.with_preserve_partitioning(true))
            }
            None => input,
        }
    }

    /// The operators over unsorted rows.
    pub(super) fn over(
        &self,
        input: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = input.output_partitioning().partition_count();
        let sorted = self.sort(input);
        let gathered = match &self.ordering {
            _ if partitions == 1 => sorted,
            Some(ordering) => Arc::new(SortPreservingMergeExec::new(ordering.clone(), sorted)),
            None => Arc::new(CoalescePartitionsExec::new(sorted)),
        };
        (self.completes)(&self.sorted(gathered)?, config)
    }
}
