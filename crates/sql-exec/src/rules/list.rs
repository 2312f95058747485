//! Builds the ordered list of rules.

use std::sync::Arc;
use std::vec::IntoIter;

use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

/// Physical optimizer rules in the order in which they are applied.
pub(crate) type Rules = Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>;

/// DataFusion's rules in their order with ours among them.
#[derive(Debug)]
pub(crate) struct RuleList {
    rules: Rules,
    /// DataFusion's rules that are not in the list yet.
    datafusion: IntoIter<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
}

impl RuleList {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self { rules: vec![], datafusion: PhysicalOptimizer::new().rules.into_iter() }
    }

    /// Adds DataFusion's rules up to the one with this name, without it.
    ///
    /// # Panics
    ///
    /// If DataFusion has no such rule further on; then choose the position of ours anew.
    pub(crate) fn datafusion_before(mut self, name: &str) -> Self {
        let ahead = self.datafusion.as_slice().iter().position(|rule| rule.name() == name);
        let ahead = ahead.unwrap_or_else(|| {
            panic!("DataFusion has no rule '{name}' after {:?}", names(&self.rules))
        });
        self.rules.extend(self.datafusion.by_ref().take(ahead));
        self
    }

    /// Adds DataFusion's rules up to and including the one with this name.
    pub(crate) fn datafusion_through(self, name: &str) -> Self {
        let mut list = self.datafusion_before(name);
        list.rules.extend(list.datafusion.next());
        list
    }

    /// Adds these rules of ours.
    pub(crate) fn ours<const N: usize>(
        mut self,
        rules: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; N],
    ) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Adds rules of another crate.
    pub(crate) fn others(
        mut self,
        rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
    ) -> Self {
        self.rules.extend(rules);
        self
    }

    /// The whole list: the rest of DataFusion's rules comes last.
    pub(crate) fn datafusion_rest(mut self) -> Rules {
        self.rules.extend(self.datafusion);
        self.rules
    }
}

fn names(rules: &Rules) -> Vec<&str> {
    rules.iter().map(|rule| rule.name()).collect()
}

#[cfg(test)]
mod tests {
    use atoll_placement::Arena;
    use atoll_primitives::Context;
    use datafusion::common::Result;
    use datafusion::common::config::ConfigOptions;
    use datafusion::physical_plan::ExecutionPlan;

    use super::*;
    use crate::exchange::testing::two_nodes;

    /// A placeholder for the rules of plans that read or write files.
    #[derive(Debug)]
    struct OfFiles;

    impl PhysicalOptimizerRule for OfFiles {
        fn optimize(
            &self,
            plan: Arc<dyn ExecutionPlan>,
            _: &ConfigOptions,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            Ok(plan)
        }

        fn name(&self) -> &'static str {
            "OfFiles"
        }

        fn schema_check(&self) -> bool {
            true
        }
    }

    #[test]
    fn rules_are_in_the_expected_order() {
        let runtime = two_nodes();
        let arena = Arena::new(Arc::clone(runtime.machine()), Arc::clone(runtime.kernel()), None);
        let of_files: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = vec![Arc::new(OfFiles)];
        let rules = crate::rules::physical_rules(&Context::new(runtime, arena), 1 << 30, of_files);
        assert_eq!(
            names(&rules),
            [
                "OutputRequirements",
                "aggregate_statistics",
                "join_selection",
                "LimitedDistinctAggregation",
                "VolatileFences",
                "FilterPushdown",
                "WindowTopN",
                "IndexedOrder",
                "MergeJoin",
                "CommonCuts",
                "PaddedSides",
                "GroupingSets",
                "GroupByPrimitive",
                "WindowsAtOnce",
                "GroupedSides",
                "EnsureRequirements",
                "PolledProbes",
                "SortedUnions",
                "GatheredBatches",
                "CombinePartialFinalAggregate",
                "OptimizeAggregateOrder",
                "ProjectionPushdown",
                "OutputRequirements",
                "LimitAggregation",
                "LimitPushPastWindows",
                "HashJoinBuffering",
                "LimitPushdown",
                "TopKRepartition",
                "ProjectionPushdown",
                "PushdownSort",
                "EnsureCooperative",
                "SortsAtOnce",
                "LargeLimit",
                "Metered",
                "UnspilledLoops",
                "DeduplicatedSides",
                "NestedKeys",
                "YieldingJoins",
                "OfFiles",
                "PlaceOnHomes",
                "FilterPushdown(Post)",
                "SanityCheckPlan",
            ]
        );
    }

    #[test]
    #[should_panic(expected = "DataFusion has no rule 'EnforceSorting'")]
    fn a_rule_unknown_to_datafusion_panics() {
        let _ = RuleList::new().datafusion_through("EnforceSorting");
    }

    #[test]
    #[should_panic(expected = "DataFusion has no rule 'join_selection'")]
    fn a_rule_that_is_already_in_the_list_panics() {
        let _ = RuleList::new()
            .datafusion_through("EnsureCooperative")
            .datafusion_before("join_selection");
    }
}
