//! Keeps rows of files in the order of the files if no other order is required.
//!
//! ```text
//! file 1 ─ scan 0 ─ filter ─┐
//! file 2 ─ scan 1 ─ filter ─┴─ FilesInOrder ─▶ rows of scan 0, then those of scan 1
//! ```
//!
//! DataFusion gathers partitions as they come. Those of a scan of files are parts of the files from the first
//! to the last, so that reading one after the other keeps the order. They are computed at the same time, as
//! far ahead as a few batches; under a LIMIT one after the other, because the first may be enough.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, replace_children_if_necessary,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::streaming::StreamingTableExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::{ArrowScanExec, JsonScanExec, WholeFilesExec};
use atoll_sql_common::operator::{PassThrough, PassThroughExec};
use atoll_sql_exec::rules::MeteredExec;

/// Gathers scans of files in their order; see the module.
#[derive(Debug)]
pub(crate) struct FileOrder;

impl PhysicalOptimizerRule for FileOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match in_order(&plan)? {
            Some(rows) => Ok(gathered(rows, None)),
            None => below(plan),
        }
    }

    fn name(&self) -> &str {
        "FileOrder"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Replaces operators that gather partitions below operators that keep the order of their input.
fn below(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(gather) = plan.downcast_ref::<CoalescePartitionsExec>() {
        return Ok(match in_order(gather.input())? {
            Some(rows) => gathered(rows, gather.fetch()),
            None => plan,
        });
    }
    let hands_on = plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<datafusion::datasource::sink::DataSinkExec>()
        || plan.is::<WholeFilesExec>()
        || plan.is::<MeteredExec>();
    let children = plan.children();
    match children.as_slice() {
        [child] if hands_on => {
            let child = below(Arc::clone(child))?;
            replace_children_if_necessary(plan, vec![child])
        }
        _ => Ok(plan),
    }
}

/// The plan without exchanges, if its partitions are the rows of files in their order.
fn in_order(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else {
            return Ok(None);
        };
        // Otherwise partitions take files from one another.
        let config = FileScanConfigBuilder::from(config.clone()).with_preserve_order(true).build();
        return Ok(Some(DataSourceExec::from_data_source(config)));
    }
    if plan.is::<StreamingTableExec>() {
        return Ok(Some(Arc::clone(plan)));
    }
    if let Some(exchange) = plan.downcast_ref::<RepartitionExec>() {
        return match exchange.partitioning() {
            Partitioning::RoundRobinBatch(_) => in_order(exchange.input()),
            _ => Ok(None),
        };
    }
    let keeps = plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<JsonScanExec>()
        || plan.is::<ArrowScanExec>()
        || plan.is::<MeteredExec>()
        || plan.is::<UnionExec>();
    if !keeps {
        return Ok(None);
    }
    let children: Result<Option<Vec<_>>> = plan.children().into_iter().map(in_order).collect();
    match children? {
        Some(children) => replace_children_if_necessary(Arc::clone(plan), children).map(Some),
        None => Ok(None),
    }
}

fn gathered(rows: Arc<dyn ExecutionPlan>, fetch: Option<usize>) -> Arc<dyn ExecutionPlan> {
    if rows.output_partitioning().partition_count() == 1 && fetch.is_none() {
        return rows;
    }
    PassThroughExec::plan(&rows, FilesInOrder { fetch })
}

/// Batches that are made ahead of each partition.
const AHEAD: usize = 16;

/// One partition: the input's partitions, one after the other.
#[derive(Clone, Debug)]
struct FilesInOrder {
    fetch: Option<usize>,
}

impl PassThrough for FilesInOrder {
    const NAME: &'static str = "FilesInOrder";
    const EVERY_ROW: bool = false;
    const KEEPS_ORDER: bool = false;

    fn properties(&self, input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        Arc::new(PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ))
    }

    fn details(&self, _: &Arc<dyn ExecutionPlan>) -> String {
        self.fetch.map_or(String::new(), |fetch| format!("fetch={fetch}"))
    }

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        _: usize,
        context: Arc<TaskContext>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = input.output_partitioning().partition_count();
        let schema = input.schema();
        let rows = match self.fetch {
            Some(fetch) => {
                let input = Arc::clone(input);
                let run = move |partition| input.execute(partition, Arc::clone(&context));
                first(stream::iter((0..partitions).map(run)).try_flatten().boxed(), fetch)
            }
            None => {
                let run = |partition| ahead(input, partition, &context);
                let parts: Vec<_> = (0..partitions).map(run).collect();
                stream::iter(parts).flatten().boxed()
            }
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

type Rows = stream::BoxStream<'static, Result<datafusion::arrow::array::RecordBatch>>;

/// The first rows.
fn first(rows: Rows, fetch: usize) -> Rows {
    let batches = rows.scan(fetch, |left, batch| {
        let cut = match batch {
            _ if *left == 0 => None,
            Ok(batch) => {
                let kept = batch.slice(0, batch.num_rows().min(*left));
                *left -= kept.num_rows();
                Some(Ok(kept))
            }
            Err(error) => Some(Err(error)),
        };
        futures::future::ready(cut)
    });
    batches.boxed()
}

/// A partition that runs ahead until some batches wait.
fn ahead(
    input: &Arc<dyn ExecutionPlan>,
    partition: usize,
    context: &Arc<TaskContext>,
) -> SendableRecordBatchStream {
    let mut builder = RecordBatchReceiverStream::builder(input.schema(), AHEAD);
    let (sender, input, context) = (builder.tx(), Arc::clone(input), Arc::clone(context));
    builder.spawn(async move {
        let mut rows = input.execute(partition, context)?;
        while let Some(batch) = rows.next().await {
            let failed = batch.is_err();
            if sender.send(batch).await.is_err() || failed {
                break;
            }
        }
        Ok(())
    });
    builder.build()
}
