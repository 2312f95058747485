//! Atoll's rules among DataFusion's, in their order.
//!
//! | rule | what it does | position |
//! |---|---|---|
//! | `VolatileFences` | filters that stay above the volatile calls whose results they test | before filter pushdown |
//! | [`NamedFilters`] | filters on columns with a namesake stay where they are | around filter pushdown |
//! | [`IndexedOrder`] | ORDER BY … LIMIT by an index | before exchanges are planned |
//! | [`MergeJoin`] | sort-merge join where a hash table would not fit | after join sides are chosen |
//! | [`CommonCuts`] | same cut points for tables joined by the key they are sorted by | before exchanges are planned |
//! | [`PaddedSides`] | no constants in sides that outer joins pad with NULLs | before exchanges are planned |
//! | [`GroupingSets`] | no declared properties below and above grouping sets | before exchanges are planned |
//! | `GroupByPrimitive` | GROUP BY through the primitives | before exchanges are planned |
//! | `WindowsAtOnce` | window functions over all rows of a partition at once | before exchanges are planned |
//! | [`GroupedSides`] | the smaller side of a join with groups is built | when the number of groups is known |
//! | [`PolledProbes`] | an exchange where a join would wait for an unpolled sibling | after exchanges are planned |
//! | [`SortedUnions`] | unions sorted by all keys of the merge above them | after sorts are planned |
//! | [`GatheredBatches`] | sorts and build sides gather small batches first | after sorts are planned |
//! | `SortsAtOnce` | many rows sorted by all workers | after limit pushdown |
//! | [`LargeLimit`] | an external sort where the heap of a LIMIT would be large, or its keys are nested | after limit pushdown |
//! | [`Metered`] | reservations for operators that keep rows without | after large limits are sorted |
//! | [`UnspilledLoops`] | nested-loop joins that do not spill where that loses rows | after projection pushdown |
//! | [`DeduplicatedSides`] | no repeats in the filtering side of a semi- or anti-join | after projection pushdown |
//! | [`NestedKeys`] | joins by nested keys without filters for their probe side | before dynamic filters |
//! | [`YieldingJoins`] | joins that yield, so that they can be cancelled | after scans yield |
//! | [`FileOrder`] | rows of files in file order where no other order is required | after scans yield |
//! | `PlaceWholeFiles` | files get their names when they are complete | after scans yield |
//! | `PlaceOnHomes` | exchanges and gathers that keep work at its home | before dynamic filters |

mod common_cuts;
mod deduplicated_sides;
mod gathered_batches;
mod grouped_sides;
mod grouping_sets;
mod indexed_order;
mod large_limit;
mod list;
mod merge_join;
mod metered;
mod named_filters;
mod nested_keys;
mod padded_sides;
mod polled_probes;
mod sorted_unions;
mod unspilled_loops;
mod untold;
mod yielding;

use std::sync::Arc;

use atoll_primitives::Context as PrimitiveContext;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use common_cuts::CommonCuts;
use deduplicated_sides::DeduplicatedSides;
use gathered_batches::GatheredBatches;
use grouped_sides::GroupedSides;
use grouping_sets::GroupingSets;
use indexed_order::IndexedOrder;
use large_limit::LargeLimit;
pub(crate) use list::RuleList;
use list::Rules;
use merge_join::MergeJoin;
use metered::Metered;
pub use metered::MeteredExec;
use named_filters::NamedFilters;
use nested_keys::NestedKeys;
use padded_sides::PaddedSides;
use polled_probes::PolledProbes;
use sorted_unions::SortedUnions;
use unspilled_loops::UnspilledLoops;
use yielding::YieldingJoins;

use crate::exchange::PlaceOnHomes;
use crate::group::{GroupByPrimitive, GroupExec};
use crate::join::UnspilledLoopExec;
use crate::window::{SortsAtOnce, WindowsAtOnce};
use atoll_sql_common::operator::BottomUp;
use atoll_sql_semantics::volatile::VolatileFences;

/// The physical rules of a session with these workers, this memory and tuning, whose limit is `limit`
/// bytes, in their order; `of_files` are those of plans that read or write files.
pub fn physical_rules(
    primitives: &PrimitiveContext,
    limit: usize,
    of_files: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Rules {
    let rules = RuleList::new()
        .datafusion_before("FilterPushdown")
        .ours([Arc::new(BottomUp(VolatileFences))])
        .datafusion_before("EnsureRequirements")
        .ours([
            Arc::new(BottomUp(IndexedOrder)),
            Arc::new(BottomUp(MergeJoin::new(limit))),
            Arc::new(BottomUp(CommonCuts)),
            Arc::new(BottomUp(PaddedSides)),
            Arc::new(BottomUp(GroupingSets)),
            Arc::new(GroupByPrimitive::new(primitives.clone())),
            Arc::new(WindowsAtOnce::new(primitives.runtime().clone(), with_bounded_sorts)),
            Arc::new(BottomUp(GroupedSides)),
        ])
        .datafusion_through("EnsureRequirements")
        .ours([
            Arc::new(BottomUp(PolledProbes)),
            Arc::new(BottomUp(SortedUnions)),
            Arc::new(BottomUp(GatheredBatches)),
        ])
        .datafusion_through("EnsureCooperative")
        .ours([
            Arc::new(BottomUp(SortsAtOnce::new(primitives.runtime().clone(), with_bounded_sorts))),
            Arc::new(BottomUp(LargeLimit::new(limit))),
            Arc::new(BottomUp(Metered)),
            Arc::new(BottomUp(UnspilledLoops)),
            Arc::new(BottomUp(DeduplicatedSides)),
            Arc::new(BottomUp(NestedKeys)),
            Arc::new(BottomUp(YieldingJoins)),
        ])
        .others(of_files)
        // After all that move partitions about and right before the dynamic filters, which must see the
        // final plan.
        .datafusion_before("FilterPushdown(Post)")
        .ours([Arc::new(PlaceOnHomes::new(primitives.runtime().clone()))])
        .datafusion_rest();
    let sinks = |rule: &dyn PhysicalOptimizerRule| rule.name().starts_with("FilterPushdown");
    let fenced = rules.into_iter().map(|rule| match sinks(&*rule) {
        true => Arc::new(NamedFilters::around(rule)) as _,
        false => rule,
    });
    fenced.collect()
}

/// Sorts and windows of a plan that is made while a query runs, with what the rules add to them.
fn with_bounded_sorts(
    plan: &Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = BottomUp(GatheredBatches).optimize(Arc::clone(plan), config)?;
    BottomUp(Metered).optimize(plan, config)
}

/// Whether a plan holds rows in memory that another plan would spill: in hash tables of a join or of a
/// GROUP BY of ours, or for a nested-loop join.
pub fn has_hash_tables(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let has = plan.is::<HashJoinExec>() || plan.is::<GroupExec>() || plan.is::<UnspilledLoopExec>();
    has || plan.children().into_iter().any(has_hash_tables)
}
