//! The rule that replaces DataFusion's sorts of many rows.

use std::sync::Arc;

use atoll_runtime::Runtime;
use atoll_sql_common::settings::{AtollOptions, OperatorChoice};
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
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

/// The sort whose rows come in one order: below a merge, or of one partition.
fn whole_sort(plan: &Arc<dyn ExecutionPlan>) -> Option<&SortExec> {
    let sort = match plan.downcast_ref::<SortPreservingMergeExec>() {
        Some(merge) if merge.fetch().is_some() => return None,
        Some(merge) => {
            let sort = merge.input().downcast_ref::<SortExec>();
            sort.filter(|sort| sort.expr() == merge.expr())?
        }
        None => {
            let sort = plan.downcast_ref::<SortExec>()?;
            let is_whole = plan.output_partitioning().partition_count() == 1;
            Some(sort).filter(|_| is_whole)?
        }
    };
    let is_bounded = !sort.input().boundedness().is_unbounded();
    Some(sort).filter(|sort| sort.fetch().is_none() && is_bounded)
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
        let Some(sort) = whole_sort(plan) else { return Ok(None) };
        let statistics =
            StatisticsContext::new().compute(sort.input().as_ref(), &StatisticsArgs::new())?;
        if statistics.num_rows.get_value().is_none_or(|rows| *rows < ROWS_MIN) {
            return Ok(None);
        }
        let (input, runtime) = (sort.input(), self.runtime.clone());
        let workers = config.execution.target_partitions;
        let own = GatheredSortExec::new(input, sort.expr(), self.completes, runtime, workers);
        Ok(own.transpose()?.map(|own| Arc::new(own) as _))
    }
}
