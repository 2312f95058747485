//! The sort-merge join.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::common::{JoinType, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::joins::SortMergeJoinExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};

use atoll_sql_common::operator::delegate_to;

/// DataFusion's sort-merge join, closed to rules that take it apart.
///
/// A projection above a `SortMergeJoinExec` is moved below it while its filter stays what it was, and
/// then reads other columns (apache/datafusion#24414); where the join returns one side only, columns are counted from
/// the wrong side (DataFusion 55.2, `joins/sort_merge_join/exec.rs`, `try_swapping_with_projection`, and
/// `sort_pushdown.rs`, `expr_source_side`). This operator has the join's requirements and runs it.
///
/// It also declares less about the order of its rows: an outer join with a filter returns another one than it declares
/// (apache/datafusion#24573), and no join sorts by columns of the other side what is equal in those of the side that it
/// goes through (apache/datafusion#25052).
#[derive(Debug)]
pub(crate) struct MergeJoinExec {
    join: Arc<SortMergeJoinExec>,
    properties: Arc<PlanProperties>,
}

impl MergeJoinExec {
    /// Closes a join to other rules.
    pub(crate) fn new(join: SortMergeJoinExec) -> Self {
        Self { properties: in_its_order(&join), join: Arc::new(join) }
    }
}

/// The properties of a join, with the orders that its rows really have.
fn in_its_order(join: &SortMergeJoinExec) -> Arc<PlanProperties> {
    let mut told = join.properties().equivalence_properties().clone();
    let orders: Vec<LexOrdering> = told.oeq_class().iter().cloned().collect();
    told.clear_orderings();
    let streamed = streamed_columns(join);
    for order in orders {
        let is_streamed = |key: &PhysicalSortExpr| {
            collect_columns(&key.expr).iter().all(|column| streamed.contains(&column.index()))
        };
        told.add_ordering(order.into_iter().take_while(is_streamed));
    }
    Arc::new(PlanProperties::clone(join.properties()).with_eq_properties(told))
}

/// The columns of the side whose order a join keeps.
fn streamed_columns(join: &SortMergeJoinExec) -> Range<usize> {
    let all = join.schema().fields().len();
    let of_left = join.left().schema().fields().len();
    match join.join_type() {
        JoinType::Left | JoinType::Right | JoinType::Full if join.filter().is_some() => 0..0,
        JoinType::Full => 0..0,
        JoinType::Inner | JoinType::Left => 0..of_left,
        JoinType::Right => of_left..all,
        _ => 0..all,
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
        &self.properties
    }

    // It does not declare the orders that the join maintains: for an operator that it does not know,
    // the rule that moves sorts counts columns as if both sides were returned.
    delegate_to!(
        join: children,
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
