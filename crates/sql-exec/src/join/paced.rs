//! A nested-loop join that yields to other tasks.
//!
//! A `NestedLoopJoinExec` compares a batch with all rows of its build side in one poll, minutes where these are many
//! and few pairs pass (DataFusion 55.2, `joins/nested_loop_join.rs`; apache/datafusion#19358). Here its filter takes a
//! unit of the task's budget each time it is computed, for a batch of pairs at most, and fails with [`TurnEnded`] when
//! the budget is used up. The join has changed nothing by then and goes on at the same place when it is polled again,
//! which [`PacedLoopExec`] does in the task's next turn.

use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::{Stream, StreamExt};
use tokio::task::coop::poll_proceed;

use atoll_sql_common::operator::{PassThrough, PassThroughExec};

/// The rows of a join whose filter is a [`PacedFilter`].
pub(crate) type PacedLoopExec = PassThroughExec<PacedLoop>;

/// Polls a join again in its task's next turn.
#[derive(Clone, Debug)]
pub(crate) struct PacedLoop;

impl PassThrough for PacedLoop {
    const NAME: &'static str = "PacedLoopExec";

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(PacedRows(input.execute(partition, context)?)))
    }
}

/// The join with a filter that yields; `None` if it has no filter.
pub(crate) fn with_paced_filter(
    join: &NestedLoopJoinExec,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = join.filter() else { return Ok(None) };
    let paced = Arc::new(PacedFilter(Arc::clone(filter.expression())));
    let (columns, schema) = (filter.column_indices().to_vec(), Arc::clone(filter.schema()));
    let filter = Some(JoinFilter::new(paced, columns, schema));
    let join = NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?;
    Ok(Some(Arc::new(join)))
}

struct PacedRows(SendableRecordBatchStream);

impl Stream for PacedRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match self.0.poll_next_unpin(context) {
                Poll::Ready(Some(Err(error))) if TurnEnded::is(&error) => {
                    if poll_proceed(context).is_pending() {
                        return Poll::Pending;
                    }
                }
                polled => return polled,
            }
        }
    }
}

impl RecordBatchStream for PacedRows {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}

/// The turn of a task has ended in the middle of a join, which goes on in the next one. Only
/// [`PacedLoopExec`] sees this.
#[derive(Debug)]
struct TurnEnded;

impl TurnEnded {
    fn is(error: &DataFusionError) -> bool {
        matches!(error, DataFusionError::External(error) if error.is::<Self>())
    }
}

impl fmt::Display for TurnEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the turn of the join's task has ended")
    }
}

impl Error for TurnEnded {}

/// A filter that is computed as long as the task's budget lasts.
#[derive(Debug)]
struct PacedFilter(Arc<dyn PhysicalExpr>);

impl fmt::Display for PacedFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for PacedFilter {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq(&other.0)
    }
}

impl Eq for PacedFilter {}

impl Hash for PacedFilter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PhysicalExpr for PacedFilter {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.0.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.0.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        match poll_proceed(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(budget) => budget.made_progress(),
            Poll::Pending => return Err(DataFusionError::External(Box::new(TurnEnded))),
        }
        self.0.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.0]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let filter = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.0));
        Ok(Arc::new(Self(filter)))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}
