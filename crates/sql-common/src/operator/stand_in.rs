//! Operators that wrap another one: the plan sees the properties of the wrapped operator.

/// Generates methods of [`ExecutionPlan`](datafusion::physical_plan::ExecutionPlan) that delegate to the
/// operator in a field. Every method that is neither listed nor written out keeps the trait's default, which is
/// the most conservative answer.
#[macro_export]
macro_rules! delegate_to {
    ($of:ident: $($method:ident),+ $(,)?) => { $(delegate_to!(@$method $of);)+ };
    (@properties $of:ident) => {
        fn properties(&self) -> &std::sync::Arc<datafusion::physical_plan::PlanProperties> {
            self.$of.properties()
        }
    };
    (@children $of:ident) => {
        fn children(
            &self,
        ) -> Vec<&std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            self.$of.children()
        }
    };
    (@input_distribution_requirements $of:ident) => {
        fn input_distribution_requirements(
            &self,
        ) -> datafusion::physical_plan::InputDistributionRequirements {
            self.$of.input_distribution_requirements()
        }
    };
    (@required_input_ordering $of:ident) => {
        fn required_input_ordering(
            &self,
        ) -> Vec<Option<datafusion::physical_expr::OrderingRequirements>> {
            self.$of.required_input_ordering()
        }
    };
    (@maintains_input_order $of:ident) => {
        fn maintains_input_order(&self) -> Vec<bool> {
            self.$of.maintains_input_order()
        }
    };
    (@benefits_from_input_partitioning $of:ident) => {
        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            self.$of.benefits_from_input_partitioning()
        }
    };
    (@apply_expressions $of:ident) => {
        fn apply_expressions(
            &self,
            f: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> datafusion::common::Result<
                datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> datafusion::common::Result<datafusion::common::tree_node::TreeNodeRecursion> {
            self.$of.apply_expressions(f)
        }
    };
    (@statistics $of:ident) => {
        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<datafusion::physical_plan::ChildStats> {
            self.$of.child_stats_requests(partition)
        }

        fn statistics_from_inputs(
            &self,
            inputs: &[std::sync::Arc<datafusion::common::Statistics>],
            args: &datafusion::physical_plan::StatisticsArgs,
        ) -> datafusion::common::Result<std::sync::Arc<datafusion::common::Statistics>> {
            self.$of.statistics_from_inputs(inputs, args)
        }
    };
    (@cardinality_effect $of:ident) => {
        fn cardinality_effect(
            &self,
        ) -> datafusion::physical_plan::execution_plan::CardinalityEffect {
            self.$of.cardinality_effect()
        }
    };
    (@gather_filters_for_pushdown $of:ident) => {
        fn gather_filters_for_pushdown(
            &self,
            phase: datafusion::physical_plan::filter_pushdown::FilterPushdownPhase,
            filters: Vec<std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>>,
            config: &datafusion::common::config::ConfigOptions,
        ) -> datafusion::common::Result<
            datafusion::physical_plan::filter_pushdown::FilterDescription,
        > {
            self.$of.gather_filters_for_pushdown(phase, filters, config)
        }
    };
    // The older of the two methods that replace inputs calls the newer one.
    (@with_new_children $of:ident) => {
        fn with_new_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
        ) -> datafusion::common::Result<
            std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>,
        > {
            let recompute = datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
            let options = datafusion::physical_plan::ReplaceChildrenOptions::new(recompute);
            self.replace_children(children, options)
        }
    };
}

pub use delegate_to;
