//! Optimizer rules that look at one operator at a time.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// A rewrite of a single operator.
pub trait OperatorRule: fmt::Debug + Send + Sync + 'static {
    /// Returns the rule's name.
    const NAME: &'static str;

    /// Returns the replacement for `plan`, whose inputs the rule has already rewritten; None if it stays
    /// as it is.
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
