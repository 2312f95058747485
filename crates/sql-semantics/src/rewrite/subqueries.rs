//! IN and EXISTS inside expressions.
//!
//! DataFusion 55.2 turns IN and EXISTS in a filter into joins, and treats NULL as false there
//! (`decorrelate_predicate_subquery.rs`): `x NOT IN (…) OR y` returns rows for which it is NULL. It cannot plan
//! those that occur elsewhere, nor `x NOT IN` a correlated subquery (apache/datafusion#25347), and evaluates
//! `1 NOT IN (…)` as if nothing in it were NULL (apache/datafusion#25340). All of these are joined here, with marks;
//! what it does correctly is left to it, except the `NOT IN` of a query whose joins must be merge joins: its only join
//! for that cannot spill.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::OptimizerConfig;

use atoll_sql_common::settings::{AtollOptions, JoinMethod};

use super::membership::{Asked, Marked, has_subquery, mistakes_null, of_one_row, with_table};
use atoll_sql_common::logical::map_named;

/// Joins subqueries to the plans whose expressions contain them; see the module.
pub(super) fn embedded_subqueries(
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if !plan.expressions().iter().any(has_subquery) {
        return Ok(Transformed::no(plan));
    }
    let mended = |expr| of_one_row(expr)?.transform_data(with_table);
    let simple = map_named(plan, |expr| expr.transform_up(mended))?;
    simple.transform_data(|plan| match plan {
        LogicalPlan::Filter(filter) => in_filter(filter, config),
        LogicalPlan::Join(join) if join.filter.as_ref().is_some_and(has_subquery) => {
            in_join(join, config).map(Transformed::yes)
        }
        LogicalPlan::Projection(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Sort(_)
            if plan.expressions().iter().any(has_subquery) =>
        {
            in_expressions(plan, config).map(Transformed::yes)
        }
        plan => Ok(Transformed::no(plan)),
    })
}

fn in_filter(filter: Filter, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    let options = config.options();
    let atoll = options.extensions.get::<AtollOptions>();
    let merges = atoll.is_some_and(|options| options.join == JoinMethod::Merge);
    let needs_marks = |conjunct: &Expr| needs_marks(conjunct, merges);
    if !split_conjunction(&filter.predicate).into_iter().any(needs_marks) {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let columns = filter.input.schema().columns();
    let mut marked = Marked { inputs: vec![Arc::unwrap_or_clone(filter.input)], config };
    let mut conjuncts = Vec::new();
    for conjunct in split_conjunction_owned(filter.predicate) {
        conjuncts.push(match needs_marks(&conjunct) {
            true => marked.rewrite(conjunct, Asked::Truth)?,
            false => conjunct,
        });
    }
    let mut plan = LogicalPlanBuilder::from(marked.inputs.swap_remove(0));
    if let Some(predicate) = conjunction(conjuncts) {
        plan = plan.filter(predicate)?;
    }
    plan.project(columns.into_iter().map(Expr::from))?.build().map(Transformed::yes)
}

/// Whether DataFusion would treat NULL as false in a conjunct of a filter, or plan a join that cannot be
/// a merge join.
fn needs_marks(conjunct: &Expr, merges: bool) -> bool {
    let (membership, negated) = match conjunct {
        Expr::InSubquery(membership) => (membership, membership.negated),
        Expr::Not(inner) => match inner.as_ref() {
            Expr::InSubquery(membership) => (membership, !membership.negated),
            _ => return mistakes_null(conjunct, Asked::Truth),
        },
        _ => return mistakes_null(conjunct, Asked::Truth),
    };
    negated && (merges || !is_one_null_aware_join(membership))
}

/// Whether `x NOT IN (…)` is an anti join on one key: the only case in which DataFusion respects NULL.
fn is_one_null_aware_join(membership: &InSubquery) -> bool {
    membership.subquery.outer_ref_columns.is_empty() && !membership.expr.column_refs().is_empty()
}

/// A condition of an inner join filters its result. Other joins get marks below them.
fn in_join(mut join: Join, config: &dyn OptimizerConfig) -> Result<LogicalPlan> {
    let Some(filter) = join.filter.take() else { return Ok(LogicalPlan::Join(join)) };
    let columns = join.schema.columns();
    let (with, without): (Vec<_>, Vec<_>) =
        split_conjunction_owned(filter).into_iter().partition(has_subquery);
    if join.join_type == JoinType::Inner {
        join.filter = conjunction(without);
        let Some(predicate) = conjunction(with) else { return Ok(LogicalPlan::Join(join)) };
        let filter = Filter::try_new(predicate, Arc::new(LogicalPlan::Join(join)))?;
        return Ok(in_filter(filter, config)?.data);
    }
    let inputs = vec![Arc::unwrap_or_clone(join.left), Arc::unwrap_or_clone(join.right)];
    let mut marked = Marked { inputs, config };
    let mut conjuncts = without;
    for conjunct in with {
        conjuncts.push(marked.rewrite(conjunct, Asked::Truth)?);
    }
    let [left, right] = <[LogicalPlan; 2]>::try_from(marked.inputs).map_err(|_| {
        datafusion::error::DataFusionError::Internal("a join without two sides".to_owned())
    })?;
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        join.on,
        conjunction(conjuncts),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(join))
        .project(columns.into_iter().map(Expr::from))?
        .build()
}

fn in_expressions(plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let names = NamePreserver::new(&plan);
    let inputs = plan.inputs().into_iter().cloned().collect();
    let mut marked = Marked { inputs, config };
    let mut expressions = Vec::new();
    for expr in plan.expressions() {
        let name = names.save(&expr);
        expressions.push(name.restore(marked.rewrite(expr, Asked::Value)?));
    }
    let plan = plan.with_new_exprs(expressions, marked.inputs)?;
    // A node that passes on its input's columns also passes the marks.
    if plan.schema().fields().len() == columns.len() {
        return Ok(plan);
    }
    LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::from))?.build()
}
