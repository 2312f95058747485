//! The sort-merge join.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::joins::SortMergeJoinExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
    InputDistributionRequirements, PlanProperties, ReplaceChildrenOptions,
};

/// DataFusion's sort-merge join, closed to rules that take it apart.
///
/// A projection above a `SortMergeJoinExec` is moved below it while its filter stays what it was, and
/// then reads other columns; where the join returns one side only, columns are counted from the wrong
/// side (DataFusion 55.2, `joins/sort_merge_join/exec.rs`, `try_swapping_with_projection`, and
/// `sort_pushdown.rs`, `expr_source_side`). This operator asks for what the join asks for and runs it.
#[derive(Debug)]
pub(crate) struct MergeJoinExec {
    join: Arc<SortMergeJoinExec>,
}

impl MergeJoinExec {
    pub(crate) fn new(join: SortMergeJoinExec) -> Self {
        Self { join: Arc::new(join) }
    }
}

impl DisplayAs for MergeJoinExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.join.fmt_as(format, f)
    }
}

impl ExecutionPlan for MergeJoinExec {
    fn name(&self) -> &'static str {
        "SortMergeJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.join.children()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.join.input_distribution_requirements()
    }

    // It says nothing of the orders that the join maintains: for an operator that it does not know,
    // the rule that moves sorts counts columns as if both sides were returned.
    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.join.required_input_ordering()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.join.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let replaced = Arc::clone(&self.join).replace_children(children, options)?;
        match replaced.downcast_ref::<SortMergeJoinExec>() {
            Some(join) => Ok(Arc::new(Self::new(join.clone()))),
            None => internal_err!("a SortMergeJoinExec became a {}", replaced.name()),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(recompute))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.join.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.join.metrics()
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.join.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.join.statistics_from_inputs(input_stats, args)
    }
}
