//! Unions are sorted by all keys that a merge of them requires.
//!
//! DataFusion 55.2 sorts each side of a union by the keys that it needs, without those that repeat one (`a, a AS b`), but
//! the union has no such repetition of its own, and its order is not enough for the merge above it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use atoll_sql_common::operator::OperatorRule;

/// Sorts a union that is not sorted as the merge above it requires.
#[derive(Debug)]
pub(crate) struct SortedUnions;

impl OperatorRule for SortedUnions {
    const NAME: &'static str = "SortedUnions";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() else { return Ok(None) };
        let (input, keys) = (merge.input(), merge.expr());
        let is_sorted = input.equivalence_properties().ordering_satisfy(keys.iter().cloned())?;
        if is_sorted || !input.is::<UnionExec>() {
            return Ok(None);
        }
        let sort = SortExec::new(keys.clone(), Arc::clone(input)).with_preserve_partitioning(true);
        let sort = sort.with_fetch(merge.fetch());
        let merged = SortPreservingMergeExec::new(keys.clone(), Arc::new(sort));
        Ok(Some(Arc::new(merged.with_fetch(merge.fetch()))))
    }
}
