//! Sorts and the build sides of joins, which keep every batch that comes, get small batches gathered.
//!
//! DataFusion's sort (55.2, `sorts/sort.rs`) makes a sorted run of each batch, spawns a task for each run
//! and merges all of them at once; cut into batches again, each is charged with all strings of its run.
//! With `datafusion.execution.batch_size = 2` a hundred thousand rows are fifty thousand runs: gigabytes
//! of tasks and cursors that no budget knows of, and a merge that does not end. A build side keeps the
//! buffers of strings that came with each batch, and each batch that a join hands on refers to all of them
//! (`joins/hash_join/stream.rs`): two rows take 400 kB then.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, replace_children_if_necessary};
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, StatisticsArgs,
};
use futures::StreamExt;

/// Rows of a gathered batch: what is done once for each is little beside them.
const GATHERED_ROWS: usize = 8192;
/// Batches of this size are left as they are.
const BATCH_ROWS_MIN: usize = 1024;

/// Puts [`BatchesExec`]s below and above; see the module.
#[derive(Debug)]
pub(crate) struct GatheredBatches;

impl PhysicalOptimizerRule for GatheredBatches {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if config.execution.batch_size.get() >= BATCH_ROWS_MIN {
            return Ok(plan);
        }
        plan.transform_up(|plan| {
            if !keeps_first_input(&plan) {
                return Ok(Transformed::no(plan));
            }
            let mut inputs: Vec<_> = plan.children().into_iter().cloned().collect();
            if inputs[0].schema().fields().is_empty() {
                return Ok(Transformed::no(plan));
            }
            let sorts = plan.is::<SortExec>();
            let batch_rows = config.execution.batch_size.get();
            inputs[0] =
                Arc::new(BatchesExec { input: Arc::clone(&inputs[0]), batch_rows, gathers: true });
            let plan = replace_children_if_necessary(plan, inputs)?;
            Ok(Transformed::yes(match sorts {
                true => {
                    Arc::new(BatchesExec { input: plan, batch_rows: GATHERED_ROWS, gathers: false })
                }
                false => plan,
            }))
        })
        .data()
    }

    fn name(&self) -> &str {
        "GatheredBatches"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether the operator keeps all batches of its first input as they come. A sort that is after a few
/// rows only does not.
fn keeps_first_input(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_none())
        || plan.is::<HashJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
}

/// Has its input work in batches of another size than the operators above, and passes rows on.
#[derive(Debug)]
struct BatchesExec {
    input: Arc<dyn ExecutionPlan>,
    /// Rows of a batch below.
    batch_rows: usize,
    /// Whether rows are passed on in batches of [`GATHERED_ROWS`].
    gathers: bool,
}

/// A partition's input, and the rows that wait to be passed on.
struct Gathering {
    /// None after its last batch.
    input: Option<SendableRecordBatchStream>,
    waiting: BatchCoalescer,
}

impl Gathering {
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.waiting.next_completed_batch() {
                return compact(&batch).map(Some);
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            match input.next().await {
                Some(batch) => self.waiting.push_batch(batch?)?,
                None => {
                    self.input = None;
                    self.waiting.finish_buffered_batch()?;
                }
            }
        }
    }
}

/// The same context with another size of batches.
fn in_batches(context: &TaskContext, rows: usize) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        context.session_config().clone().with_batch_size(rows),
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        context.runtime_env(),
    ))
}

/// The batch with its strings in few buffers.
fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    let compact = |column: &ArrayRef| -> ArrayRef {
        match column.data_type() {
            DataType::Utf8View => Arc::new(column.as_string_view().gc()),
            DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
            _ => Arc::clone(column),
        }
    };
    let columns = batch.columns().iter().map(compact).collect();
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

impl DisplayAs for BatchesExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (kind, self.gathers) {
            (DisplayFormatType::TreeRender, _) => writeln!(f, "below={}", self.batch_rows),
            (_, true) => {
                write!(f, "BatchesExec: below={}, gathered={GATHERED_ROWS}", self.batch_rows)
            }
            (_, false) => write!(f, "BatchesExec: below={}", self.batch_rows),
        }
    }
}

impl ExecutionPlan for BatchesExec {
    fn name(&self) -> &'static str {
        "BatchesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match &children[..] {
            [input] => Ok(Arc::new(Self { input: Arc::clone(input), ..*self })),
            _ => internal_err!("BatchesExec has one child"),
        }
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, in_batches(&context, self.batch_rows))?;
        if !self.gathers {
            return Ok(input);
        }
        let waiting = BatchCoalescer::new(self.schema(), GATHERED_ROWS)
            .with_biggest_coalesce_batch_size(Some(BATCH_ROWS_MIN));
        let gathering = Gathering { input: Some(input), waiting };
        let batches = futures::stream::try_unfold(gathering, |mut gathering| async move {
            Ok(gathering.next_batch().await?.map(|batch| (batch, gathering)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match input_stats {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("BatchesExec has one child"),
        }
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(parent_filters, &self.children())
    }
}
