//! Operators that keep batches after a merge get batches with strings of their own.
//!
//! A batch out of a merge (DataFusion 55.2, `interleave` of arrow) refers to all string buffers of the merged runs, be it
//! for two rows. A window concatenates such batches, a top-k and a join keep them: each copies and counts the list of
//! all buffers once for each batch, which took 24 of 26 s for `row_number() OVER (ORDER BY text)` over 10 million rows.

use std::sync::Arc;

use atoll_store::table::compact_batch;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use futures::StreamExt;

use atoll_sql_common::operator::{OperatorRule, PassThrough, PassThroughExec};

/// Batches that refer to at most so many buffers for a column are passed on as they are.
const BUFFERS_MAX: usize = 4;

/// Puts [`CompactViewsExec`]s above merges; see the module.
#[derive(Debug)]
pub(crate) struct CompactedViews;

impl OperatorRule for CompactedViews {
    const NAME: &'static str = "CompactedViews";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if !keeps_batches(plan) || !plan.children().into_iter().any(needs_compaction) {
            return Ok(None);
        }
        let compacted = |child: &Arc<dyn ExecutionPlan>| match needs_compaction(child) {
            true => CompactViewsExec::plan(child, CompactViews),
            false => Arc::clone(child),
        };
        let children = plan.children().into_iter().map(compacted).collect();
        replace_children_if_necessary(Arc::clone(plan), children).map(Some)
    }
}

fn keeps_batches(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<BoundedWindowAggExec>()
        || plan.is::<WindowAggExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortMergeJoinExec>()
        || plan.is::<HashJoinExec>()
}

fn needs_compaction(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_view =
        |data_type: &DataType| matches!(data_type, DataType::Utf8View | DataType::BinaryView);
    plan.schema().fields().iter().any(|field| is_view(field.data_type())) && merges(plan)
}

fn merges(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let passes =
        plan.is::<ProjectionExec>() || plan.is::<FilterExec>() || plan.is::<CooperativeExec>();
    plan.is::<SortPreservingMergeExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortMergeJoinExec>()
        || (passes && plan.children().into_iter().any(merges))
}

/// Passes rows on in batches with strings of their own.
type CompactViewsExec = PassThroughExec<CompactViews>;

/// What a [`CompactViewsExec`] does with rows.
#[derive(Clone, Copy, Debug)]
struct CompactViews;

impl PassThrough for CompactViews {
    const NAME: &'static str = "CompactViewsExec";

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let batches = input.execute(partition, context)?;
        let batches = batches.map(|batch| compacted(batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(input.schema(), batches)))
    }
}

fn compacted(batch: RecordBatch) -> Result<RecordBatch> {
    let buffers = |column: &Arc<dyn Array>| match column.data_type() {
        DataType::Utf8View => column.as_string_view().data_buffers().len(),
        DataType::BinaryView => column.as_binary_view().data_buffers().len(),
        _ => 0,
    };
    match batch.columns().iter().any(|column| buffers(column) > BUFFERS_MAX) {
        true => Ok(compact_batch(&batch)?),
        false => Ok(batch),
    }
}
