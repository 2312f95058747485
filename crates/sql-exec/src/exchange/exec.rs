//! The exchange: from N input partitions to M output partitions, each at its home.

use std::fmt;
use std::sync::Arc;

use atoll_runtime::Runtime;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    ReplaceChildrenOptions,
};
use parking_lot::Mutex;

use super::homes::PartitionHomes;
use super::progress::{ExchangeOutput, ExchangeProgress};
use super::run::RunPlan;
use atoll_sql_common::operator::delegate_to;

/// Maps N input partitions to M output partitions, on a machine with several nodes.
///
/// ```text
///          node 0                    │          node 1
///   output 0     output 1            │   output 2     output 3      polled by the consumer,
///      ▲            ▲                │      ▲            ▲           at home(output)
///   [queue]      [queue]        one gate    [queue]      [queue]     charged to the query, or
///      ▲▲           ▲▲               │      ▲▲           ▲▲          spilled
///      │└───────────┼┼───────────────┼──────┼┼───────────┼┼─┐        whole batches: the only
///      │    ┌───────┼┼───────────────┼──────┘│           ││ │        bytes that cross
///   ┌──┴────┴───────┘│               │   ┌───┴───────────┘│ │
///   │ gather by output (node 0)      │   │ gather by output (node 1)
///   └───▲─────────▲                  │   └───▲─────────▲
///     split     split                │     split     split           the same hash as
///       ▲         ▲                  │       ▲         ▲             DataFusion's
///    input 0   input 1               │    input 2   input 3          polled at home(input)
/// ```
///
/// It replaces a [`RepartitionExec`] that does not preserve order, and all that the plan
/// sees of it (partitioning, orderings, statistics, pushed filters) is the RepartitionExec's. What
/// differs is where work is done: the loop over an input partition, splitting included, runs on the
/// workers of that partition's home. The loops are spawned when the first output is polled, not
/// before: scans below read dynamic filters that a join's build side has yet to fill. They end when
/// the last output is dropped. An error or a panic in one input fails all outputs.
///
/// Like a RepartitionExec it runs once: each output can be taken once. To run it again (a recursive
/// query does), reset it or give it new children.
#[derive(Debug)]
pub(crate) struct ExchangeExec {
    /// The operator that it replaces; never executed.
    repartition: RepartitionExec,
    runtime: Runtime,
    metrics: ExecutionPlanMetricsSet,
    progress: Arc<Mutex<ExchangeProgress>>,
}

impl ExchangeExec {
    /// The exchange that replaces a RepartitionExec. `None` if it preserves order, because it then merges
    /// its inputs per output, or if it does not say how it splits.
    pub(crate) fn in_place_of(repartition: &RepartitionExec, runtime: &Runtime) -> Option<Self> {
        let splits = !matches!(repartition.partitioning(), Partitioning::UnknownPartitioning(_));
        (splits && !repartition.preserve_order())
            .then(|| Self::standing_for(repartition.clone(), runtime.clone()))
    }

    fn standing_for(repartition: RepartitionExec, runtime: Runtime) -> Self {
        Self {
            repartition,
            runtime,
            metrics: ExecutionPlanMetricsSet::new(),
            progress: Arc::default(),
        }
    }

    /// The homes of the output partitions.
    pub(crate) fn homes(&self) -> PartitionHomes {
        PartitionHomes::for_partitions(
            &self.runtime,
            self.repartition.partitioning().partition_count(),
        )
    }

    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        self.repartition.input()
    }

    fn run_plan(&self, context: Arc<TaskContext>) -> RunPlan {
        RunPlan {
            runtime: self.runtime.clone(),
            partitioning: self.repartition.partitioning().clone(),
            schema: self.schema(),
            bounded: !self.input().boundedness().is_unbounded(),
            metrics: self.metrics.clone(),
            context,
        }
    }
}

impl DisplayAs for ExchangeExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partitioning = self.repartition.partitioning();
        let inputs = self.input().output_partitioning().partition_count();
        let homes = self.homes();
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(
                f,
                "ExchangeExec: partitioning={partitioning}, input_partitions={inputs}, \
                 homes={homes}"
            ),
            DisplayFormatType::TreeRender => {
                writeln!(f, "partitioning={partitioning}")?;
                writeln!(f, "input_partitions={inputs}")?;
                writeln!(f, "homes={homes}")
            }
        }
    }
}

impl ExecutionPlan for ExchangeExec {
    fn name(&self) -> &'static str {
        "ExchangeExec"
    }

    delegate_to!(
        repartition: properties,
        children,
        benefits_from_input_partitioning,
        maintains_input_order,
        apply_expressions,
        with_new_children,
        statistics,
        cardinality_effect,
        gather_filters_for_pushdown,
    );

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let replaced = Arc::new(self.repartition.clone()).replace_children(children, options)?;
        let Some(repartition) = replaced.downcast_ref::<RepartitionExec>() else {
            return internal_err!("a RepartitionExec became a {}", replaced.name());
        };
        Ok(Arc::new(Self::standing_for(repartition.clone(), self.runtime.clone())))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.progress.lock().prepare(self.input(), partition, &context)?;
        let output = ExchangeOutput::new(partition, self.run_plan(context), self.progress.clone());
        Ok(Box::pin(cooperative(output)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        self.repartition.handle_child_pushdown_result(phase, child_pushdown_result, config)
    }
}
