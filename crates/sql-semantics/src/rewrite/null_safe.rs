//! Keeps joins on `IS NOT DISTINCT FROM`, and those that `DependentJoins` makes, apart from joins on `=`.
//!
//! A join in DataFusion treats NULL as equal to NULL for all of its keys or for none. DataFusion 55.2 nevertheless adds
//! `=` keys to a join whose NULLs are equal (`extract_equijoin_predicate.rs`, apache/datafusion#12458), and when it
//! reorders joins of both kinds, gives all of them one setting (`eliminate_cross_join.rs`).

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::{Join, LogicalPlan};
use datafusion::optimizer::OptimizerConfig;

use super::around::Rule;

/// DataFusion's rule that extracts join keys from conditions, except from joins whose NULLs are equal.
pub(super) fn keys(
    making: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Join(join) if is_null_safe(join) => Ok(Transformed::no(plan)),
        _ => making.rewrite(plan, config),
    }
}

/// DataFusion's rule that reorders inner joins by their keys; joins whose NULLs are equal are hidden from it.
pub(super) fn joins(
    ordering: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let mut has_one = false;
    plan.apply_with_subqueries(|node| {
        has_one |= matches!(node, LogicalPlan::Join(join) if is_inner(join));
        Ok(if has_one { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !has_one {
        return ordering.rewrite(plan, config);
    }
    let hidden = plan.transform_up_with_subqueries(hidden).data()?;
    let ordered = ordering.rewrite(hidden, config)?;
    ordered.transform_data(|plan| plan.transform_up_with_subqueries(shown))
}

fn is_null_safe(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty()
}

fn is_inner(join: &Join) -> bool {
    is_null_safe(join) && join.join_type == JoinType::Inner
}

/// The rule skips all but inner joins. `null_aware` applies to anti joins only; here it marks the joins to restore.
fn hidden(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(join) if is_inner(&join) => {
            let hidden = Join { join_type: JoinType::Left, null_aware: true, ..join };
            Ok(Transformed::yes(LogicalPlan::Join(hidden)))
        }
        plan => Ok(Transformed::no(plan)),
    }
}

fn shown(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(join) if join.join_type == JoinType::Left && join.null_aware => {
            let shown = Join { join_type: JoinType::Inner, null_aware: false, ..join };
            LogicalPlan::Join(shown).recompute_schema().map(Transformed::yes)
        }
        plan => Ok(Transformed::no(plan)),
    }
}
