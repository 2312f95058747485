//! Rules that look at one operator at a time.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// What a rule does with an operator.
pub trait OperatorRule: fmt::Debug + Send + Sync + 'static {
    /// The rule's name.
    const NAME: &'static str;

    /// The operator that takes the place of `plan`, which has the inputs that the rule gave it; none where
    /// it stays.
    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>>;
}

/// Applies a rule to all operators of a plan, inputs first.
#[derive(Debug)]
pub struct BottomUp<R>(pub R);

impl<R: OperatorRule> PhysicalOptimizerRule for BottomUp<R> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match self.0.rewrite(&plan, config)? {
                Some(rewritten) => Transformed::yes(rewritten),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        R::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}
