//! The sort of all rows: the run of a window operator without functions.

use std::fmt;
use std::sync::Arc;

use atoll_runtime::Runtime;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, LexOrdering, PhysicalExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, EmissionType,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions,
    Statistics,
};

use super::fallback::{Completes, OldPlan};
use super::plan::{OutputColumns, WindowPlan};
use super::run::WindowRun;
use crate::exchange::PartitionHomes;

/// All rows of its inputs in one order.
///
/// It replaces DataFusion's sort of each input and the merge of their results. Each input is collected at its home,
/// each worker sorts the rows between two cuts of the order, and the workers gather the columns of one output
/// batch after the other.
#[derive(Clone, Debug)]
pub struct GatheredSortExec {
    input: Arc<dyn ExecutionPlan>,
    plan: Arc<WindowPlan>,
    old: Arc<OldPlan>,
    ordering: LexOrdering,
    runtime: Runtime,
    /// Workers that sort.
    workers: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl GatheredSortExec {
    /// The operator for an order of the rows of an input; `None` for keys that have no order.
    pub(super) fn new(
        input: &Arc<dyn ExecutionPlan>,
        ordering: &LexOrdering,
        completes: Completes,
        runtime: Runtime,
        workers: usize,
    ) -> Option<Result<Self>> {
        let plan = Arc::new(WindowPlan::sort(ordering, &input.schema())?);
        let old = OldPlan { exprs: vec![], ordering: Some(ordering.clone()), completes };
        let properties = properties(input, ordering);
        Some(properties.map(|properties| Self {
            input: Arc::clone(input),
            plan,
            old: Arc::new(old),
            ordering: ordering.clone(),
            runtime,
            workers,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

fn properties(input: &Arc<dyn ExecutionPlan>, ordering: &LexOrdering) -> Result<PlanProperties> {
    let mut equivalences = input.equivalence_properties().clone();
    equivalences.reorder(ordering.clone())?;
    let partitioning = Partitioning::UnknownPartitioning(1);
    Ok(PlanProperties::new(equivalences, partitioning, EmissionType::Final, input.boundedness()))
}

impl DisplayAs for GatheredSortExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                let homes = PartitionHomes::for_partitions(&self.runtime, self.workers);
                write!(f, "GatheredSortExec: expr=[{}], homes={homes}", self.ordering)
            }
            DisplayFormatType::TreeRender => writeln!(f, "{}", self.ordering),
        }
    }
}

impl ExecutionPlan for GatheredSortExec {
    fn name(&self) -> &'static str {
        "GatheredSortExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::UnspecifiedDistribution])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for key in &self.ordering {
            recursion = f(&key.expr)?;
            if recursion != TreeNodeRecursion::Continue {
                break;
            }
        }
        Ok(recursion)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = &children[..] else {
            return internal_err!("GatheredSortExec has one input, not {}", children.len());
        };
        Ok(Arc::new(Self {
            properties: Arc::new(properties(input, &self.ordering)?),
            input: Arc::clone(input),
            metrics: ExecutionPlanMetricsSet::new(),
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

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let inputs = self.input.output_partitioning().partition_count();
        let streams = (0..inputs).map(|at| self.input.execute(at, Arc::clone(&context)));
        let streams = streams.collect::<Result<Vec<_>>>()?;
        let run = WindowRun {
            plan: Arc::clone(&self.plan),
            old: Arc::clone(&self.old),
            top: None,
            output: Arc::new(OutputColumns::all(&self.input.schema())),
            input: self.input.schema(),
            inputs: inputs.max(1),
            runtime: self.runtime.clone(),
            context,
            metrics: self.metrics.clone(),
        };
        let all = run.clone().arrange_all(streams, self.workers);
        Ok(make_cooperative(run.in_order(all)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(None)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let unknown = || Arc::new(Statistics::new_unknown(&self.schema()));
        Ok(inputs.first().cloned().unwrap_or_else(unknown))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
