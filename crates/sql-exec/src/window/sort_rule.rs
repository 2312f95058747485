//! The rule that replaces DataFusion's sorts of many rows.

use std::sync::Arc;

use atoll_runtime::Runtime;
use atoll_sql_common::settings::{AtollOptions, OperatorChoice};
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::fallback::Completes;
use super::sort_exec::GatheredSortExec;
use atoll_sql_common::operator::OperatorRule;

/// Fewer rows are sorted by DataFusion: there is nothing to share out.
const ROWS_MIN: usize = 32_768;

/// Replaces the sort of all rows with a [`GatheredSortExec`].
///
/// DataFusion's sorts stay below a LIMIT, where each partition is sorted for itself, and where few or
/// unknown rows are expected.
#[derive(Debug)]
pub(crate) struct SortsAtOnce {
    runtime: Runtime,
    completes: Completes,
}

impl SortsAtOnce {
    /// Creates the rule for these workers; `completes` adds what DataFusion's operators need where memory is short.
    pub(crate) fn new(runtime: Runtime, completes: Completes) -> Self {
        Self { runtime, completes }
    }
}

/// A sort whose rows come in one order, and what puts their columns in another order above it.
struct WholeSort<'a> {
    sort: &'a SortExec,
    projection: Option<&'a Arc<dyn ExecutionPlan>>,
}

impl<'a> WholeSort<'a> {
    /// The sort below a merge, or of one partition.
    fn of(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
        let whole = match plan.downcast_ref::<SortPreservingMergeExec>() {
            Some(merge) if merge.fetch().is_some() => return None,
            Some(merge) => Self::below(merge)?,
            None => {
                let sort = plan.downcast_ref::<SortExec>()?;
                let is_whole = plan.output_partitioning().partition_count() == 1;
                is_whole.then_some(Self { sort, projection: None })?
            }
        };
        let is_bounded = !whole.sort.input().boundedness().is_unbounded();
        (whole.sort.fetch().is_none() && is_bounded).then_some(whole)
    }

    fn below(merge: &'a SortPreservingMergeExec) -> Option<Self> {
        if let Some(sort) = merge.input().downcast_ref::<SortExec>() {
            return (sort.expr() == merge.expr()).then_some(Self { sort, projection: None });
        }
        let projection = merge.input().downcast_ref::<ProjectionExec>()?;
        let sort = projection.input().downcast_ref::<SortExec>()?;
        let is_same = |(above, below): (&PhysicalSortExpr, &PhysicalSortExpr)| {
            let column = above.expr.downcast_ref::<Column>().map(Column::index);
            let projected = column.and_then(|at| projection.expr().get(at));
            above.options == below.options
                && projected.is_some_and(|projected| projected.expr.eq(&below.expr))
        };
        let is_same = merge.expr().len() == sort.expr().len()
            && merge.expr().iter().zip(sort.expr().iter()).all(is_same);
        is_same.then_some(Self { sort, projection: Some(merge.input()) })
    }
}

impl OperatorRule for SortsAtOnce {
    const NAME: &'static str = "SortsAtOnce";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let choice = config.extensions.get::<AtollOptions>().map(|options| options.sort);
        if choice.unwrap_or_default() == OperatorChoice::Off {
            return Ok(None);
        }
        let Some(WholeSort { sort, projection }) = WholeSort::of(plan) else { return Ok(None) };
        let statistics =
            StatisticsContext::new().compute(sort.input().as_ref(), &StatisticsArgs::new())?;
        if statistics.num_rows.get_value().is_none_or(|rows| *rows < ROWS_MIN) {
            return Ok(None);
        }
        let (input, runtime) = (sort.input(), self.runtime.clone());
        let workers = config.execution.target_partitions;
        let own = GatheredSortExec::new(input, sort.expr(), self.completes, runtime, workers);
        let Some(own) = own.transpose()? else { return Ok(None) };
        let own: Arc<dyn ExecutionPlan> = Arc::new(own);
        match projection {
            Some(above) => replace_children_if_necessary(Arc::clone(above), vec![own]).map(Some),
            None => Ok(Some(own)),
        }
    }
}
