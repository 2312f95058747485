//! The sort-merge join.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::joins::SortMergeJoinExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ReplaceChildrenOptions,
};

use crate::operator::delegate_to;

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

    // It says nothing of the orders that the join maintains: for an operator that it does not know,
    // the rule that moves sorts counts columns as if both sides were returned.
    delegate_to!(
        join: properties,
        children,
        input_distribution_requirements,
        required_input_ordering,
        apply_expressions,
        with_new_children,
        statistics,
    );

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
}
