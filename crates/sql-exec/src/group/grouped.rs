//! Input whose rows come grouped by the key, each group in one partition: groups go out while rows
//! come in, and nothing is collected.

use std::sync::Arc;

use atoll_primitives::Context as PrimitiveContext;
use atoll_primitives::aggregate::{Expected, SortedGroups};
use atoll_topology::NodeId;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use super::error::to_datafusion;
use super::query::{GroupQuery, named};

/// The context of a partition, without its input.
pub(super) struct GroupedPlan {
    pub(super) context: PrimitiveContext,
    pub(super) query: Arc<GroupQuery>,
    pub(super) expected: Arc<Expected>,
    pub(super) schema: SchemaRef,
}

impl GroupedPlan {
    fn runs(&self, home: Option<NodeId>) -> Result<Option<SortedGroups>> {
        let GroupQuery { query, input, .. } = self.query.as_ref();
        let context = self.context.clone();
        SortedGroups::new(context, query, input, &self.expected.keys, home).map_err(to_datafusion)
    }
}

/// Whether the keys are expected to fit 64 bits.
pub(super) fn fits(query: &GroupQuery, expected: &Expected) -> bool {
    let keys = query.query.keys.iter().map(|at| query.input.field(*at).data_type().clone());
    SortedGroups::fits(&keys.collect::<Vec<_>>(), &expected.keys)
}

/// The groups of one partition.
pub(super) fn stream(
    plan: &GroupedPlan,
    partition: usize,
    input: SendableRecordBatchStream,
    metrics: &ExecutionPlanMetricsSet,
) -> Result<SendableRecordBatchStream> {
    let home = crate::exchange::home_of(plan.context.runtime(), partition);
    let runs = plan.runs(Some(home))?;
    if runs.is_none() {
        return Err(internal_datafusion_err!("the keys of grouped rows no longer fit 64 bits"));
    }
    let partition = Partition {
        input,
        runs,
        query: Arc::clone(&plan.query),
        schema: Arc::clone(&plan.schema),
        metrics: BaselineMetrics::new(metrics, partition),
    };
    let batches = futures::stream::try_unfold(partition, |mut partition| async move {
        Ok(partition.next_batch().await?.map(|batch| (batch, partition)))
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&plan.schema), batches)))
}

struct Partition {
    input: SendableRecordBatchStream,
    /// `None` after the last row.
    runs: Option<SortedGroups>,
    query: Arc<GroupQuery>,
    schema: SchemaRef,
    metrics: BaselineMetrics,
}

impl Partition {
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let elapsed = self.metrics.elapsed_compute().clone();
        while let Some(runs) = &mut self.runs {
            let batch = self.input.next().await;
            let _timer = elapsed.timer();
            let groups = match batch {
                Some(batch) => runs.push(&self.query.evaluate(&batch?)?),
                None => self.runs.take().map_or(Ok(None), SortedGroups::finish),
            };
            let groups = groups.map_err(|error| self.query.error(error))?;
            if let Some(groups) = groups {
                self.metrics.record_output(groups.num_rows());
                return named(&groups, &self.schema).map(Some);
            }
        }
        Ok(None)
    }
}
