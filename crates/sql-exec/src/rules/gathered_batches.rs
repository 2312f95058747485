//! Sorts and the build sides of joins, which keep every batch that comes, get small batches gathered.
//!
//! DataFusion's sort (55.2, `sorts/sort.rs`) makes a sorted run of each batch (apache/datafusion#21543), spawns
//! a task for each run and merges all of them at once; cut into batches again, each is charged with all strings of its
//! run. With `datafusion.execution.batch_size = 2` a hundred thousand rows are fifty thousand runs: gigabytes
//! of tasks and cursors that no budget knows of, and a merge that does not end. A build side keeps the
//! buffers of strings that came with each batch, and each batch that a join hands on refers to all of them
//! (`joins/hash_join/stream.rs`): two rows take 400 kB then.

use std::sync::Arc;

use atoll_store::table::compact_batch;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use atoll_sql_common::operator::{OperatorRule, PassThrough, PassThroughExec, changed_context};

/// Rows of a gathered batch, enough to make the cost per batch negligible.
const GATHERED_ROWS: usize = 8192;
/// Batches of this size are left as they are.
const BATCH_ROWS_MIN: usize = 1024;

/// Puts [`BatchesExec`]s below and above; see the module.
#[derive(Debug)]
pub(crate) struct GatheredBatches;

impl OperatorRule for GatheredBatches {
    const NAME: &'static str = "GatheredBatches";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let batch_rows = config.execution.batch_size.get();
        if batch_rows >= BATCH_ROWS_MIN || !keeps_first_input(plan) {
            return Ok(None);
        }
        let mut inputs: Vec<_> = plan.children().into_iter().cloned().collect();
        if inputs[0].schema().fields().is_empty() {
            return Ok(None);
        }
        let below = Batches { rows: batch_rows, gathers: true };
        inputs[0] = BatchesExec::plan(&inputs[0], below);
        let sorts = plan.is::<SortExec>();
        let plan = replace_children_if_necessary(Arc::clone(plan), inputs)?;
        let above = Batches { rows: GATHERED_ROWS, gathers: false };
        Ok(Some(match sorts {
            true => BatchesExec::plan(&plan, above),
            false => plan,
        }))
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

/// Runs its input with another batch size than the operators above, and passes rows on.
type BatchesExec = PassThroughExec<Batches>;

/// The batches below a [`BatchesExec`].
#[derive(Clone, Copy, Debug)]
struct Batches {
    /// Rows of a batch.
    rows: usize,
    /// Whether rows are passed on in batches of [`GATHERED_ROWS`].
    gathers: bool,
}

impl PassThrough for Batches {
    const NAME: &'static str = "BatchesExec";

    fn details(&self, _: &Arc<dyn ExecutionPlan>) -> String {
        match self.gathers {
            true => format!("below={}, gathered={GATHERED_ROWS}", self.rows),
            false => format!("below={}", self.rows),
        }
    }

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let schema = input.schema();
        let config = context.session_config().clone().with_batch_size(self.rows);
        let context = changed_context(&context, config, context.runtime_env());
        let input = input.execute(partition, context)?;
        if !self.gathers {
            return Ok(input);
        }
        let waiting = BatchCoalescer::new(Arc::clone(&schema), GATHERED_ROWS)
            .with_biggest_coalesce_batch_size(Some(BATCH_ROWS_MIN));
        let gathering = BatchGatherer { input: Some(input), waiting };
        let batches = futures::stream::try_unfold(gathering, |mut gathering| async move {
            Ok(gathering.next_batch().await?.map(|batch| (batch, gathering)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// A partition's input, and the rows that wait to be passed on.
struct BatchGatherer {
    /// `None` after its last batch.
    input: Option<SendableRecordBatchStream>,
    waiting: BatchCoalescer,
}

impl BatchGatherer {
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.waiting.next_completed_batch() {
                return Ok(Some(compact_batch(&batch)?));
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
