//! Forgets which columns were unique before their rows were multiplied.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{FunctionalDependencies, Result};
use datafusion::logical_expr::{LogicalPlan, Unnest};
use datafusion::optimizer::OptimizerConfig;

use super::around::Rule;

/// DataFusion's rule that removes joins with unique columns, which the key of a grouping no longer is once `unnest` has
/// made several rows of each group: DataFusion keeps the input's dependencies for the output of Unnest (55.2,
/// `Unnest::try_new`).
pub(super) fn rewrite(
    join_rule: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if !plan.exists(|node| Ok(has_stale_keys(node)))? {
        return join_rule.rewrite(plan, config);
    }
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Unnest(unnest) => Ok(Transformed::yes(without_keys(unnest)?)),
        node => Ok(Transformed::yes(node.recompute_schema()?)),
    })?;
    let rewritten = join_rule.rewrite(plan.data, config)?;
    Ok(Transformed::new(rewritten.data, true, TreeNodeRecursion::Continue))
}

fn has_stale_keys(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Unnest(unnest) if !unnest.schema.functional_dependencies().is_empty())
}

fn without_keys(unnest: Unnest) -> Result<LogicalPlan> {
    let schema = unnest.schema.as_ref().clone();
    let schema = schema.with_functional_dependencies(FunctionalDependencies::empty())?;
    Ok(LogicalPlan::Unnest(Unnest { schema: Arc::new(schema), ..unnest }))
}
