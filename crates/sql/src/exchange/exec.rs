//! The exchange: from N input partitions to M output partitions, each at its home.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use atoll_runtime::Runtime;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, ReplaceChildrenOptions, StatisticsArgs,
};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use super::homes::Homes;
use super::run::{Receiver, RunPlan};

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
/// It takes the place of a [`RepartitionExec`] that does not preserve order, and all that the plan
/// sees of it (partitioning, orderings, statistics, pushed filters) is the RepartitionExec's. What
/// differs is where work is done: the loop over an input partition, splitting included, runs on the
/// workers of that partition's home. The loops are spawned when the first output is polled, not
/// before: scans below read dynamic filters that a join's build side has yet to fill. They end when
/// the last output is dropped. An error or a panic in one input fails all outputs.
///
/// Like a RepartitionExec it runs once: each output can be taken once. To run it again (a recursive
/// query does), reset it or give it new children.
#[derive(Debug)]
pub struct ExchangeExec {
    /// The operator it stands for; never executed.
    repartition: RepartitionExec,
    runtime: Arc<Runtime>,
    metrics: ExecutionPlanMetricsSet,
    progress: Arc<Mutex<Progress>>,
}

impl ExchangeExec {
    /// Splits `input` by hash, range or round-robin. The order of the input is kept only if it has
    /// one partition.
    pub fn try_new(
        input: Arc<dyn ExecutionPlan>,
        partitioning: Partitioning,
        runtime: Arc<Runtime>,
    ) -> Result<Self> {
        if matches!(partitioning, Partitioning::UnknownPartitioning(_)) {
            return internal_err!("an exchange cannot split by {partitioning}");
        }
        let repartition = RepartitionExec::try_new(input, partitioning)?;
        Ok(Self::standing_for(repartition, runtime))
    }

    /// The exchange that stands for a RepartitionExec, if one can: one that preserves order merges
    /// its inputs per output, and is left alone.
    pub fn in_place_of(repartition: &RepartitionExec, runtime: &Arc<Runtime>) -> Option<Self> {
        let splits = !matches!(repartition.partitioning(), Partitioning::UnknownPartitioning(_));
        (splits && !repartition.preserve_order())
            .then(|| Self::standing_for(repartition.clone(), runtime.clone()))
    }

    fn standing_for(repartition: RepartitionExec, runtime: Arc<Runtime>) -> Self {
        Self {
            repartition,
            runtime,
            metrics: ExecutionPlanMetricsSet::new(),
            progress: Arc::default(),
        }
    }

    /// The homes of the output partitions.
    pub fn homes(&self) -> Homes {
        Homes::of(&self.runtime, self.repartition.partitioning().partition_count())
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

    fn properties(&self) -> &Arc<PlanProperties> {
        self.repartition.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.repartition.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.repartition.apply_expressions(f)
    }

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

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(recompute))
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.repartition.benefits_from_input_partitioning()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.repartition.maintains_input_order()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.progress.lock().prepare(self.input(), partition, &context)?;
        Ok(Box::pin(cooperative(Output {
            partition,
            plan: self.run_plan(context),
            progress: self.progress.clone(),
            polled: false,
            receiver: None,
        })))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.repartition.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.repartition.statistics_from_inputs(input_stats, args)
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.repartition.cardinality_effect()
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        self.repartition.gather_filters_for_pushdown(phase, parent_filters, config)
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

/// How far an exchange has come.
#[derive(Default)]
struct Progress {
    stage: Stage,
    /// The outputs whose stream was dropped before it was polled.
    given_up: Vec<usize>,
}

#[derive(Default)]
enum Stage {
    /// No output has been asked for.
    #[default]
    Idle,
    /// Outputs have been asked for, none has been polled.
    Ready(Vec<SendableRecordBatchStream>),
    /// An output has been polled. Holds the receivers of those that have not.
    Running(Vec<Option<Receiver>>),
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            Stage::Idle => "Idle",
            Stage::Ready(_) => "Ready",
            Stage::Running(_) => "Running",
        })
    }
}

impl Progress {
    /// An output was asked for: the first time, makes the streams of the input.
    fn prepare(
        &mut self,
        input: &Arc<dyn ExecutionPlan>,
        output: usize,
        context: &Arc<TaskContext>,
    ) -> Result<()> {
        self.given_up.retain(|&given_up| given_up != output);
        if matches!(self.stage, Stage::Idle) {
            let inputs = 0..input.output_partitioning().partition_count();
            let streams = inputs.map(|at| input.execute(at, context.clone()));
            self.stage = Stage::Ready(streams.collect::<Result<_>>()?);
        }
        Ok(())
    }

    /// An output was polled: the first time, starts the loops over the input.
    fn take(&mut self, output: usize, plan: &RunPlan) -> Result<Receiver> {
        if let Stage::Ready(streams) = &mut self.stage {
            let receivers = plan.start(std::mem::take(streams));
            self.stage = Stage::Running(receivers.into_iter().map(Some).collect());
            for given_up in std::mem::take(&mut self.given_up) {
                self.give_up(given_up);
            }
        }
        let Stage::Running(receivers) = &mut self.stage else {
            return internal_err!("an exchange was polled before it was executed");
        };
        let receiver = receivers.get_mut(output).and_then(Option::take);
        receiver.ok_or_else(|| {
            internal_datafusion_err!("output {output} of an exchange was taken before or is none")
        })
    }

    /// Nobody will poll this output.
    fn give_up(&mut self, output: usize) {
        match &mut self.stage {
            Stage::Running(receivers) => drop(receivers.get_mut(output).and_then(Option::take)),
            _ => self.given_up.push(output),
        }
    }
}

/// The stream of one output.
struct Output {
    partition: usize,
    plan: RunPlan,
    progress: Arc<Mutex<Progress>>,
    polled: bool,
    /// The rows, from the first poll on; none if it failed.
    receiver: Option<Receiver>,
}

impl Stream for Output {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !self.polled {
            self.polled = true;
            let taken = self.progress.lock().take(self.partition, &self.plan);
            match taken {
                Ok(receiver) => self.receiver = Some(receiver),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        match &mut self.receiver {
            Some(receiver) => receiver.poll_next_unpin(context),
            None => Poll::Ready(None),
        }
    }
}

impl RecordBatchStream for Output {
    fn schema(&self) -> SchemaRef {
        self.plan.schema.clone()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.polled {
            self.progress.lock().give_up(self.partition);
        }
    }
}
