//! A nested-loop join that does not spill.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::common::Result;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ReplaceChildrenOptions,
};

use atoll_sql_common::operator::{PassThrough, PassThroughExec, changed_context, delegate_to};

/// A nested-loop join whose build side stays in memory, or the query fails.
///
/// When memory runs out a `NestedLoopJoinExec` runs its build side again and joins it piece by piece
/// from disk (DataFusion 55.2, `joins/nested_loop_join.rs`). Where the last piece ends with the build
/// side, unmatched rows of the other side are lost (apache/datafusion#24745); every partition reports
/// unmatched rows of the build side for itself (apache/datafusion#22641); and a build side with an
/// exchange below panics when it is run again (apache/datafusion#24676). The join gets a context without a disk, and
/// the operators below it the one of the query.
#[derive(Debug)]
pub(crate) struct UnspilledLoopExec {
    join: Arc<dyn ExecutionPlan>,
    /// The join that runs, over children that keep the context of the query.
    running: OnceLock<Arc<dyn ExecutionPlan>>,
}

impl UnspilledLoopExec {
    /// A nested-loop join that stays in memory.
    pub(crate) fn new(join: Arc<dyn ExecutionPlan>) -> Self {
        Self { join, running: OnceLock::new() }
    }

    /// The join that does not spill.
    pub(crate) fn join(&self) -> &Arc<dyn ExecutionPlan> {
        &self.join
    }

    fn running(&self, context: &Arc<TaskContext>) -> Result<&Arc<dyn ExecutionPlan>> {
        if let Some(running) = self.running.get() {
            return Ok(running);
        }
        let inner = |child| InContextExec::plan(child, InContext(Arc::clone(context)));
        let children = self.join.children().into_iter().map(inner);
        let running = Arc::clone(&self.join).replace_children(
            children.collect(),
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep),
        )?;
        // Partitions share the build side: the second partition takes the first one's.
        Ok(self.running.get_or_init(|| running))
    }
}

fn without_disk(context: &TaskContext) -> Result<Arc<TaskContext>> {
    let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let runtime = RuntimeEnvBuilder::from_runtime_env(&context.runtime_env())
        .with_disk_manager_builder(disk)
        .build_arc()?;
    Ok(changed_context(context, context.session_config().clone(), runtime))
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

    delegate_to!(
        join: properties,
        children,
        input_distribution_requirements,
        required_input_ordering,
        maintains_input_order,
        apply_expressions,
        with_new_children,
        statistics,
    );

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let join = Arc::clone(&self.join).replace_children(children, options)?;
        Ok(Arc::new(Self::new(join)))
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
}

/// A plan that runs in its own context and ignores the one it is given.
type InContextExec = PassThroughExec<InContext>;

#[derive(Clone, Debug)]
struct InContext(Arc<TaskContext>);

impl PassThrough for InContext {
    const NAME: &'static str = "InContextExec";

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        _: Arc<TaskContext>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        input.execute(partition, Arc::clone(&self.0))
    }
}
