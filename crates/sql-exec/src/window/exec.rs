//! The operator.

use std::fmt;
use std::sync::Arc;

use atoll_runtime::Runtime;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Result, internal_datafusion_err, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, EmissionType,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions,
    Statistics,
};
use parking_lot::Mutex;

use super::fallback::{Completes, OldPlan, RemainingRows};
use super::plan::{OutputColumns, WindowPlan};
use super::run::{AllArranged, WindowRun};
use super::top::TopRows;
use crate::exchange::PartitionHomes;

/// Window functions over one order of rows, in one operator.
///
/// It replaces a sort and DataFusion's window operator, which computes row by row. With PARTITION BY each
/// partition of its input, by hash, is sorted and computed at its home. Without, each input is collected at its home,
/// each output sorts the rows between two cuts of the order, and the functions go over all of them.
#[derive(Clone, Debug)]
pub struct WindowExec {
    input: Arc<dyn ExecutionPlan>,
    plan: Arc<WindowPlan>,
    old: Arc<OldPlan>,
    top: Option<TopRows>,
    output: Arc<OutputColumns>,
    runtime: Runtime,
    /// Where the inputs are gathered; `None` where rows come partitioned by the keys.
    outputs: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    progress: Arc<Mutex<WindowProgress>>,
}

/// The one run of an operator that gathers its inputs, shared by its outputs.
#[derive(Default)]
struct WindowProgress {
    /// Set until every output has been requested.
    run: Option<(WindowRun, AllArranged)>,
    asked: Vec<bool>,
}

impl fmt::Debug for WindowProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowProgress").field("runs", &self.run.is_some()).finish_non_exhaustive()
    }
}

impl WindowExec {
    /// The operator for this plan over an input.
    pub(super) fn new(
        input: &Arc<dyn ExecutionPlan>,
        plan: WindowPlan,
        completes: Completes,
        runtime: Runtime,
        outputs: Option<usize>,
    ) -> Result<Self> {
        let (exprs, ordering) = (plan.exprs.clone(), plan.ordering());
        let old = OldPlan { exprs, ordering, completes };
        let (plan, old) = (Arc::new(plan), Arc::new(old));
        Ok(Self {
            properties: properties(input, &plan, &old, outputs)?,
            output: Arc::new(OutputColumns::all(&plan.schema)),
            input: Arc::clone(input),
            plan,
            old,
            top: None,
            runtime,
            outputs,
            metrics: ExecutionPlanMetricsSet::new(),
            progress: Arc::default(),
        })
    }

    /// The same with only the first rows of each partition, where that does not change the results of these.
    pub(super) fn with_top(&self, top: TopRows) -> Option<Self> {
        let looks_back = self.plan.functions.iter().all(|function| function.looks_back());
        (looks_back && self.top.is_none()).then(|| Self {
            top: Some(top),
            metrics: ExecutionPlanMetricsSet::new(),
            progress: Arc::default(),
            ..self.clone()
        })
    }

    pub(super) fn plan(&self) -> &WindowPlan {
        &self.plan
    }

    fn run(&self, context: &Arc<TaskContext>) -> WindowRun {
        WindowRun {
            plan: Arc::clone(&self.plan),
            old: Arc::clone(&self.old),
            top: self.top,
            output: Arc::clone(&self.output),
            input: self.input.schema(),
            inputs: self.input.output_partitioning().partition_count().max(1),
            runtime: self.runtime.clone(),
            context: Arc::clone(context),
            metrics: self.metrics.clone(),
        }
    }

    /// The inputs are made ready when the first output is asked for, and polled when it is polled: scans below
    /// may wait for filters until then.
    fn gathered(
        &self,
        output: usize,
        outputs: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut progress = self.progress.lock();
        if progress.run.is_none() {
            let inputs = 0..self.input.output_partitioning().partition_count();
            let streams: Result<Vec<_>> =
                inputs.map(|at| self.input.execute(at, Arc::clone(context))).collect();
            let run = self.run(context);
            progress.run = Some((run.clone(), run.arrange_all(streams?, outputs)));
            progress.asked = vec![false; outputs];
        }
        progress.asked[output] = true;
        let run = match progress.asked.iter().all(|asked| *asked) {
            true => progress.run.take(),
            false => progress.run.clone(),
        };
        let (run, all) = run.ok_or_else(|| internal_datafusion_err!("a run was made above"))?;
        Ok(run.output(output, all))
    }
}

fn properties(
    input: &Arc<dyn ExecutionPlan>,
    plan: &WindowPlan,
    old: &OldPlan,
    outputs: Option<usize>,
) -> Result<Arc<PlanProperties>> {
    let partitioning = match outputs {
        Some(outputs) => Partitioning::UnknownPartitioning(outputs),
        None => input.output_partitioning().clone(),
    };
    let order = match &old.ordering {
        Some(_) => {
            let leaf: Arc<dyn ExecutionPlan> =
                Arc::new(RemainingRows::new(vec![], &input.schema()));
            old.sorted(old.sort(leaf))?.equivalence_properties().clone()
        }
        None => EquivalenceProperties::new(Arc::clone(&plan.schema)),
    };
    Ok(Arc::new(PlanProperties::new(order, partitioning, EmissionType::Final, input.boundedness())))
}

impl DisplayAs for WindowExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions: Vec<&str> = self.plan.exprs.iter().map(|expr| expr.name()).collect();
        let functions = functions.join(", ");
        let partition: Vec<String> =
            self.plan.partition_keys().iter().map(ToString::to_string).collect();
        let order = self.plan.order_keys();
        let input = match self.outputs {
            Some(outputs) => {
                format!(
                    "gathered, homes={}",
                    PartitionHomes::for_partitions(&self.runtime, outputs)
                )
            }
            None => "partitioned".to_owned(),
        };
        let top = self.top.map(|top| format!(", {top}")).unwrap_or_default();
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(
                f,
                "WindowExec: wdw=[{functions}], partition=[{}], order=[{order}], input={input}{top}, \
                 columns=[{}]",
                partition.join(", "),
                self.output,
            ),
            DisplayFormatType::TreeRender => {
                writeln!(f, "wdw={functions}")?;
                writeln!(f, "order={order}{top}")
            }
        }
    }
}

impl ExecutionPlan for WindowExec {
    fn name(&self) -> &'static str {
        "WindowExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let keys = self.plan.partition_keys();
        InputDistributionRequirements::new(vec![match self.outputs {
            Some(_) => Distribution::UnspecifiedDistribution,
            None => Distribution::KeyPartitioned(keys.to_vec()),
        }])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let leaf = Arc::new(RemainingRows::new(vec![], &self.input.schema()));
        self.old.sorted(self.old.sort(leaf))?.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = &children[..] else {
            return internal_err!("WindowExec has one input, not {}", children.len());
        };
        let (now, before) = (input.output_partitioning(), self.input.output_partitioning());
        let partitioning = match self.outputs {
            None if now != before => Partitioning::UnknownPartitioning(now.partition_count()),
            _ => self.properties.output_partitioning().clone(),
        };
        let properties = PlanProperties::clone(&self.properties);
        Ok(Arc::new(Self {
            properties: Arc::new(properties.with_partitioning(partitioning)),
            input: Arc::clone(input),
            metrics: ExecutionPlanMetricsSet::new(),
            progress: Arc::default(),
            ..Self::clone(&self)
        }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(recompute))
    }

    /// Columns that are not wanted are not put in order.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(output) = self.output.projected(projection) else { return Ok(None) };
        let properties = PlanProperties::clone(&self.properties)
            .with_eq_properties(projection.properties().equivalence_properties().clone())
            .with_partitioning(projection.properties().output_partitioning().clone());
        Ok(Some(Arc::new(Self {
            output: Arc::new(output),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            progress: Arc::default(),
            ..self.clone()
        })))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        Ok(make_cooperative(match self.outputs {
            Some(outputs) => self.gathered(partition, outputs, &context)?,
            None => {
                let input = self.input.execute(partition, Arc::clone(&context))?;
                self.run(&context).alone(partition, input)
            }
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        match (self.outputs, partition) {
            (Some(_), Some(_)) => vec![ChildStats::Skip],
            (_, partition) => vec![ChildStats::At(partition)],
        }
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let [input] = inputs else { return Ok(Arc::new(Statistics::new_unknown(&self.schema()))) };
        if self.outputs.is_some() && args.partition().is_some() {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema())));
        }
        let mut statistics = input.as_ref().clone();
        if self.top.is_some() {
            statistics = statistics.to_inexact();
        }
        statistics.total_byte_size = Precision::Absent;
        let of_input = statistics.column_statistics;
        let of = |at: &usize| of_input.get(*at).cloned();
        let columns = self.output.columns.iter();
        let columns = columns.map(|at| of(at).unwrap_or_else(ColumnStatistics::new_unknown));
        statistics.column_statistics = columns.collect();
        Ok(Arc::new(statistics))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        match self.top {
            Some(_) => CardinalityEffect::LowerEqual,
            None => CardinalityEffect::Equal,
        }
    }
}
