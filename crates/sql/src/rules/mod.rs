//! Atoll's rules among DataFusion's.
//!
//! | rule | what it does | where it stands |
//! |---|---|---|
//! | [`MergeJoin`] | sort-merge join where a hash table would not fit | after join sides are chosen |
//! | [`CommonCuts`] | same cut points for tables joined by the key they are sorted by | before exchanges are planned |
//! | `GroupByPrimitive` | GROUP BY through the primitives | before exchanges are planned |
//! | [`GroupingSets`] | nothing is told of rows below and above grouping sets | before exchanges are planned |
//! | [`GatheredBatches`] | sorts and build sides gather small batches first | after sorts are planned |
//! | [`PolledProbes`] | an exchange where a join would wait for a sibling that nobody polls | after exchanges are planned |
//! | [`UnspilledLoops`] | nested-loop joins that do not spill where that loses rows | after projections are pushed down |
//! | [`NestedKeys`] | joins by nested keys without filters for their probe side | before dynamic filters |
//! | [`YieldingJoins`] | joins that yield, so that they can be cancelled | after scans yield |
//! | [`LargeLimit`] | an external sort where the heap of a LIMIT would be large | after limits are pushed down |
//! | [`Metered`] | reservations for operators that keep rows without | after large limits are sorted |
//! | `PlaceWholeFiles` | files take their names when all of them is written | after scans yield |
//! | [`NamedFilters`] | filters on columns with a namesake stay where they are | around the rules that have filters sink |
//! | `VolatileFences` | filters that stay above the volatile calls whose results they test | before filters sink |
//! | `PlaceOnHomes` | exchanges and gathers that keep work at its home | before dynamic filters |

mod common_cuts;
mod gathered_batches;
mod grouping_sets;
mod large_limit;
mod merge_join;
mod metered;
mod named_filters;
mod nested_keys;
mod polled_probes;
mod unspilled_loops;
mod yielding;

use std::sync::Arc;

use atoll_primitives::Context as PrimitiveContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

pub(crate) use common_cuts::CommonCuts;
pub(crate) use gathered_batches::GatheredBatches;
pub(crate) use grouping_sets::GroupingSets;
pub(crate) use large_limit::LargeLimit;
pub(crate) use merge_join::MergeJoin;
pub(crate) use metered::Metered;
pub(crate) use named_filters::NamedFilters;
pub(crate) use nested_keys::NestedKeys;
pub(crate) use polled_probes::PolledProbes;
pub(crate) use unspilled_loops::UnspilledLoops;
pub(crate) use yielding::YieldingJoins;

use crate::exchange::{self, Rules};
use crate::files::whole::PlaceWholeFiles;
use crate::group::{GroupByPrimitive, GroupExec};
use crate::join::UnspilledLoopExec;
use crate::volatile::VolatileFences;

/// DataFusion's rule that plans exchanges and sorts; ours that change what needs them stand before.
const REQUIREMENTS: &str = "EnsureRequirements";

/// DataFusion's rule that has scans yield.
const COOPERATIVE: &str = "EnsureCooperative";

/// DataFusion's rule that has filters sink.
const FILTERS: &str = "FilterPushdown";

/// The physical rules of a session with these workers, this memory and tuning, whose limit is `limit`
/// bytes.
pub(crate) fn physical_rules(primitives: &PrimitiveContext, limit: usize) -> Rules {
    let runtime = primitives.runtime();
    let mut rules = exchange::physical_rules(&Arc::new(runtime.clone()));
    let at = rules.iter().position(|rule| rule.name() == REQUIREMENTS).unwrap_or(0);
    rules.insert(at + 1, Arc::new(PolledProbes));
    rules.insert(at + 2, Arc::new(GatheredBatches));
    let scans_yield = rules.iter().position(|rule| rule.name() == COOPERATIVE);
    let late = scans_yield.map_or(rules.len(), |at| at + 1);
    rules.insert(late, Arc::new(PlaceWholeFiles));
    rules.insert(late, Arc::new(YieldingJoins));
    rules.insert(late, Arc::new(NestedKeys));
    rules.insert(late, Arc::new(UnspilledLoops));
    rules.insert(late, Arc::new(Metered));
    rules.insert(late, Arc::new(LargeLimit::new(limit)));
    rules.insert(at, Arc::new(GroupByPrimitive::new(primitives.clone())));
    rules.insert(at, Arc::new(GroupingSets));
    rules.insert(at, Arc::new(CommonCuts));
    rules.insert(at, Arc::new(MergeJoin::new(limit)));
    let filters_sink = rules.iter().position(|rule| rule.name() == FILTERS).unwrap_or(0);
    rules.insert(filters_sink, Arc::new(VolatileFences));
    let fenced = rules.into_iter().map(|rule| match rule.name().starts_with(FILTERS) {
        true => Arc::new(NamedFilters::around(rule)) as _,
        false => rule,
    });
    fenced.collect()
}

/// Whether a plan holds rows in memory that another plan would spill: in hash tables of a join or of a
/// GROUP BY of ours, or for a nested-loop join.
pub(crate) fn has_hash_tables(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let has = plan.is::<HashJoinExec>() || plan.is::<GroupExec>() || plan.is::<UnspilledLoopExec>();
    has || plan.children().into_iter().any(has_hash_tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    #[test]
    fn the_rule_before_which_ours_stand_is_in_datafusions_list() {
        let rules = PhysicalOptimizer::new().rules;
        for name in [REQUIREMENTS, COOPERATIVE, FILTERS] {
            assert_eq!(rules.iter().filter(|rule| rule.name() == name).count(), 1, "{name}");
        }
    }
}
