//! A nested-loop join that does not spill.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
    InputDistributionRequirements, PlanProperties, ReplaceChildrenOptions,
};

/// A nested-loop join whose build side stays in memory, or the query fails.
///
/// When memory runs out a `NestedLoopJoinExec` runs its build side again and joins it piece by piece
/// from disk (DataFusion 55.2, `joins/nested_loop_join.rs`). Where the last piece ends with the build
/// side, unmatched rows of the other side are lost; every partition reports unmatched rows of the
/// build side for itself; and a build side with an exchange below panics when it is run again. The
/// join gets a context without a disk, and the operators below it the one of the query.
#[derive(Debug)]
pub(crate) struct UnspilledLoopExec {
    join: Arc<dyn ExecutionPlan>,
    /// The join that runs, over children that keep the context of the query.
    running: OnceLock<Arc<dyn ExecutionPlan>>,
}

impl UnspilledLoopExec {
    pub(crate) fn new(join: Arc<dyn ExecutionPlan>) -> Self {
        Self { join, running: OnceLock::new() }
    }

    fn running(&self, context: &Arc<TaskContext>) -> Result<&Arc<dyn ExecutionPlan>> {
        if let Some(running) = self.running.get() {
            return Ok(running);
        }
        let children = self.join.children().into_iter().map(|child| {
            Arc::new(InContext { plan: Arc::clone(child), context: Arc::clone(context) }) as _
        });
        let running = Arc::clone(&self.join).replace_children(
            children.collect(),
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep),
        )?;
        // Partitions share the build side: whoever comes second takes the first one's.
        Ok(self.running.get_or_init(|| running))
    }
}

fn without_disk(context: &TaskContext) -> Result<Arc<TaskContext>> {
    let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let runtime = RuntimeEnvBuilder::from_runtime_env(&context.runtime_env())
        .with_disk_manager_builder(disk)
        .build_arc()?;
    Ok(Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        context.session_config().clone(),
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        runtime,
    )))
}

impl DisplayAs for UnspilledLoopExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.join.fmt_as(format, f)
    }
}

impl ExecutionPlan for UnspilledLoopExec {
    fn name(&self) -> &'static str {
        "NestedLoopJoinExec"
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

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.join.required_input_ordering()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.join.maintains_input_order()
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
        let join = Arc::clone(&self.join).replace_children(children, options)?;
        Ok(Arc::new(Self::new(join)))
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
        self.running(&context)?.execute(partition, without_disk(&context)?)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.running.get().unwrap_or(&self.join).metrics()
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

/// A plan that runs in a context of its own, whatever it is given.
#[derive(Debug)]
struct InContext {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
}

impl DisplayAs for InContext {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt_as(format, f)
    }
}

impl ExecutionPlan for InContext {
    fn name(&self) -> &'static str {
        "InContext"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plan]
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
        let plan = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.plan));
        Ok(Arc::new(Self { plan, context: Arc::clone(&self.context) }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(recompute))
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.plan.execute(partition, Arc::clone(&self.context))
    }
}
