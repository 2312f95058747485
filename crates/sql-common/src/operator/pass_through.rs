//! Operators that pass on the rows of one input.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
};

/// What an operator does with the rows of its input. Partition p of the operator reads only partition p of the
/// input, unless `properties` declares a single partition, which reads them all.
pub trait PassThrough: Clone + fmt::Debug + Send + Sync + 'static {
    /// Returns the operator's name in plans.
    const NAME: &'static str;

    /// Whether the operator returns exactly its input rows. If so, the input's statistics apply to the
    /// operator, and limits may be pushed below it.
    const EVERY_ROW: bool = true;

    /// Whether the input's ordering holds for the operator's rows.
    const KEEPS_ORDER: bool = true;

    /// Returns the plan properties of the rows.
    fn properties(&self, input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        Arc::clone(input.properties())
    }

    /// Returns the required distribution of the input.
    fn distribution(&self) -> Distribution {
        Distribution::UnspecifiedDistribution
    }

    /// Returns what EXPLAIN shows after the name; may be empty.
    fn details(&self, _input: &Arc<dyn ExecutionPlan>) -> String {
        String::new()
    }

    /// Decides which parent filters may be pushed down. By default all, if every row passes.
    fn passed_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<FilterDescription> {
        match Self::EVERY_ROW {
            true => FilterDescription::from_children(filters, &[input]),
            false => Ok(FilterDescription::all_unsupported(&filters, &[input])),
        }
    }

    /// Derives the statistics from the input's, if every row passes.
    fn statistics(&self, input: &Arc<Statistics>) -> Arc<Statistics> {
        Arc::clone(input)
    }

    /// Executes a partition.
    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        _metrics: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        input.execute(partition, context)
    }
}

/// An operator that passes on the rows of its input.
#[derive(Debug)]
pub struct PassThroughExec<P> {
    input: Arc<dyn ExecutionPlan>,
    pass: P,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl<P: PassThrough> PassThroughExec<P> {
    /// Applies this to the rows of `input`.
    fn over(input: Arc<dyn ExecutionPlan>, pass: P) -> Self {
        let properties = pass.properties(&input);
        Self { input, pass, properties, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// Does the same, and returns an execution plan.
    pub fn plan(input: &Arc<dyn ExecutionPlan>, pass: P) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::over(Arc::clone(input), pass))
    }

    /// Returns the input operator.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// Returns what is done with the rows.
    pub fn pass(&self) -> &P {
        &self.pass
    }
}

impl<P: PassThrough> DisplayAs for PassThroughExec<P> {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = self.pass.details(&self.input);
        match format {
            DisplayFormatType::TreeRender if details.is_empty() => Ok(()),
            DisplayFormatType::TreeRender => writeln!(f, "{details}"),
            _ if details.is_empty() => f.write_str(P::NAME),
            _ => write!(f, "{}: {details}", P::NAME),
        }
    }
}

impl<P: PassThrough> ExecutionPlan for PassThroughExec<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
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

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match &children[..] {
            [input] => Ok(Self::plan(input, self.pass.clone())),
            _ => internal_err!("{} has one input, not {}", P::NAME, children.len()),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(recompute))
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![self.pass.distribution()])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![P::KEEPS_ORDER]
    }

    /// No repartitioning directly below: partitions stay as they are.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.pass.execute(&self.input, partition, context, &self.metrics)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        match P::EVERY_ROW {
            true => vec![ChildStats::At(partition)],
            false => vec![ChildStats::Skip],
        }
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] if P::EVERY_ROW => Ok(self.pass.statistics(input)),
            _ => Ok(Arc::new(Statistics::new_unknown(&self.schema()))),
        }
    }

    fn supports_limit_pushdown(&self) -> bool {
        P::EVERY_ROW
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        match P::EVERY_ROW {
            true => CardinalityEffect::Equal,
            false => CardinalityEffect::LowerEqual,
        }
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        self.pass.passed_filters(filters, &self.input)
    }
}
