//! Wraps a rule of DataFusion: it keeps its name and position.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

pub(super) type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Rewrites a plan, and may delegate to the wrapped rule.
pub(super) type Rewrite =
    fn(&Rule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// A wrapped rule.
pub(super) struct Around {
    rule: Rule,
    rewrite: Rewrite,
}

impl Around {
    /// Replaces a rule by its wrapped version.
    pub(super) fn put(rule: &mut Rule, rewrite: Rewrite) {
        *rule = Arc::new(Self { rule: Arc::clone(rule), rewrite });
    }
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Around").field(&self.rule).finish()
    }
}

impl OptimizerRule for Around {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        (self.rewrite)(&self.rule, plan, config)
    }
}
