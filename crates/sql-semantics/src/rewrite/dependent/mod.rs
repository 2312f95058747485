//! Correlated subqueries of any form, as joins.
//!
//! ```text
//! SELECT a, (SELECT c FROM u WHERE u.a < t.a ORDER BY c LIMIT 1) FROM t
//!
//!   t LEFT JOIN (the subquery, computed for all values of t.a at once, with t.a beside its rows) ON t.a
//! ```
//!
//! DataFusion 55.2 decorrelates subqueries that compare columns for equality under an aggregate; it
//! rejects most others (apache/datafusion#6140), and finds wrong columns for some. It keeps those that it joins right
//! ([`plain`]). All others are evaluated over the distinct values of the outer columns that they name (Neumann and
//! Kemper, Unnesting Arbitrary Queries): [`Domain::push`] carries these values through the subquery as additional
//! columns. IN, EXISTS, ANY and ALL count how many rows match, and for how many rows that is unknown.
//!
//! A subquery in a branch of an expression is evaluated for the rows that take the branch ([`branches`]), and one that
//! calls functions such as random() separately for each row.
//!
//! The outer plan is read twice; if its rows would differ, they are materialized.

mod branches;
mod columns;
mod domain;
mod gate;
mod pairs;
mod plain;
mod quantified;
mod repeat;
mod single;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, Result, not_impl_err};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, Sort, lit,
};
use datafusion::optimizer::AnalyzerRule;

use branches::Attached;
use columns::{outer_columns, unused};
use domain::Domain;
use gate::{gate, gated};
use repeat::repeatable;
use single::single_value;

use crate::volatile::is_volatile;

/// Joins correlated subqueries to the plans that contain them; see the module.
#[derive(Debug, Default)]
pub struct DependentJoins;

impl AnalyzerRule for DependentJoins {
    fn name(&self) -> &str {
        "dependent_joins"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !plain::is_needed(&plan)? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(rewritten).data()
    }
}

fn rewritten(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Join(join) => match join.right.as_ref() {
            right if lateral(right).is_some() => lateral_join(join).map(Transformed::yes),
            _ => in_join(join),
        },
        node if node.inputs().len() == 1 && branches::has_some(&node)? => match node {
            LogicalPlan::Sort(sort) => in_sort(sort).map(Transformed::yes),
            node => in_expressions(node).map(Transformed::yes),
        },
        node => Ok(Transformed::no(node)),
    }
}

/// Returns the subquery of a LATERAL relation, and its alias.
fn lateral(plan: &LogicalPlan) -> Option<LogicalPlan> {
    match plan {
        LogicalPlan::Subquery(subquery) => Some(subquery.subquery.as_ref().clone()),
        LogicalPlan::SubqueryAlias(alias) => {
            let inner = lateral(&alias.input)?;
            LogicalPlanBuilder::from(inner).alias(alias.alias.clone()).ok()?.build().ok()
        }
        _ => None,
    }
}

fn lateral_join(join: Join) -> Result<LogicalPlan> {
    let Some(right) = lateral(&join.right) else { return Ok(LogicalPlan::Join(join)) };
    let columns = join.schema.columns();
    let mut left = Arc::unwrap_or_clone(join.left);
    let refs = outer_columns(&right, Some(left.schema()))?;
    if join.join_type == JoinType::Inner && !refs.is_empty() && is_rowwise(&right) {
        let rows = Domain::rows(&left)?;
        let of_right = right.schema().columns().into_iter().map(Expr::Column);
        let columns: Vec<Expr> = rows.restored().chain(of_right).collect();
        let on = join.on.into_iter().map(|(left, right)| left.eq(right));
        let conditions: Vec<Expr> = on.chain(join.filter).collect();
        let plan = LogicalPlanBuilder::from(rows.push(right)?).project(columns)?;
        return match conjunction(conditions) {
            Some(condition) => plan.filter(condition)?.build(),
            None => plan.build(),
        };
    }
    let (right, mut keys) = match refs.is_empty() {
        true => (right, (vec![], vec![])),
        false => {
            left = repeatable(left)?;
            let domain;
            (left, domain) = match is_volatile(&right)? {
                true => Domain::of_each(left, refs, None)?,
                false => {
                    let domain = Domain::try_new(&left, refs, None)?;
                    (left, domain)
                }
            };
            let keys = domain.keys();
            (domain.push(right)?, keys)
        }
    };
    for (own, other) in join.on {
        let (Expr::Column(own), Expr::Column(other)) = (own, other) else {
            return not_impl_err!("a LATERAL join whose condition compares expressions; use WHERE");
        };
        keys.0.push(own);
        keys.1.push(other);
    }
    joined(left, right, join.join_type, keys, join.filter)?
        .project(columns.into_iter().map(Expr::Column))?
        .build()
}

/// Whether a plan's rows must be computed separately for each outer row.
fn is_rowwise(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Unnest(_)
        | LogicalPlan::SubqueryAlias(_) => plan.inputs().into_iter().all(is_rowwise),
        _ => false,
    }
}

/// A join in which NULLs are equal.
fn joined(
    left: LogicalPlan,
    right: LogicalPlan,
    join_type: JoinType,
    keys: (Vec<Column>, Vec<Column>),
    filter: Option<Expr>,
) -> Result<LogicalPlanBuilder> {
    let nulls = NullEquality::NullEqualsNull;
    let left = LogicalPlanBuilder::from(left);
    match keys.0.is_empty() {
        true => left.join_on(right, join_type, [filter.unwrap_or_else(|| lit(true))]),
        false => left.join_detailed(right, join_type, keys, filter, nulls),
    }
}

/// The condition of an inner join becomes a filter above it.
fn in_join(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let node = LogicalPlan::Join(join.clone());
    if let Some(filter) = &join.filter
        && pairs::is_needed(&node, &join, filter)?
    {
        let filter = filter.clone();
        return pairs::joined_pairs(join, filter).map(Transformed::yes);
    }
    if !branches::has_some(&node)? {
        return Ok(Transformed::no(node));
    }
    let Some(filter) = join.filter.take() else {
        return not_impl_err!("a correlated subquery beside USING; write the condition with ON");
    };
    if join.join_type != JoinType::Inner {
        return in_outer_join(&node, join, filter).map(Transformed::yes);
    }
    let filter = Filter::try_new(filter, Arc::new(LogicalPlan::Join(join)))?;
    in_expressions(LogicalPlan::Filter(filter)).map(Transformed::yes)
}

/// The subqueries in the condition of an outer join become columns of the side that they read.
fn in_outer_join(node: &LogicalPlan, join: Join, filter: Expr) -> Result<LogicalPlan> {
    let mut sides = [&join.left, &join.right]
        .map(|side| (Arc::clone(side.schema()), Attached::to(node, side.as_ref().clone())));
    let filter = filter.transform_down(|expr| {
        if !plain::is_dependent(&expr, node) {
            return Ok(Transformed::no(expr));
        }
        let columns = outer_columns_of(&expr)?;
        let reads = |schema: &DFSchema| columns.iter().any(|column| schema.has_column(column));
        let [left, right] = &mut sides;
        let side = if !reads(&left.0) && reads(&right.0) { right } else { left };
        Ok(Transformed::new(side.1.value(expr)?, true, TreeNodeRecursion::Jump))
    })?;
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let [left, right] = sides.map(|(_, side)| Arc::new(side.input));
    let filter = Some(filter.data);
    let Join { on, join_type, join_constraint, null_equality, null_aware, .. } = join;
    let join = Join::try_new(
        left,
        right,
        on,
        filter,
        join_type,
        join_constraint,
        null_equality,
        null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(join)).project(columns)?.build()
}

/// Returns the columns that a subquery reads of the query around it, with those of the value that it is compared with.
fn outer_columns_of(expr: &Expr) -> Result<Vec<Column>> {
    let Some(subquery) = branches::subquery_of(expr) else { return Ok(vec![]) };
    let columns = outer_columns(&subquery.subquery, None)?.into_iter().map(|(column, _)| column);
    Ok(columns.chain(expr.column_refs().into_iter().cloned()).collect())
}

/// Sorts rows by a subquery over columns that are not selected: these columns exist until the rows are sorted.
fn in_sort(sort: Sort) -> Result<LogicalPlan> {
    let node = LogicalPlan::Sort(sort.clone());
    let LogicalPlan::Projection(projection) = sort.input.as_ref() else {
        return in_expressions(node);
    };
    let (selected, read) = (projection.schema.as_ref(), projection.input.schema());
    let mut unselected: Vec<Column> = Vec::new();
    for key in &sort.expr {
        key.expr.apply(|expr| {
            if let Expr::ScalarSubquery(subquery)
            | Expr::Exists(Exists { subquery, .. })
            | Expr::InSubquery(InSubquery { subquery, .. }) = expr
            {
                let named = outer_columns(&subquery.subquery, Some(read))?;
                let named = named.into_iter().map(|(column, _)| column);
                let named = named.filter(|column| !selected.has_column(column));
                unselected.extend(named);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    if unselected.is_empty() {
        return in_expressions(node);
    }
    unselected.sort();
    unselected.dedup();
    let columns: Vec<Expr> = selected.columns().into_iter().map(Expr::Column).collect();
    let exprs = projection.expr.iter().cloned();
    let exprs = exprs.chain(unselected.into_iter().map(Expr::Column)).collect();
    let projection = Projection::try_new(exprs, Arc::clone(&projection.input))?;
    let input = Arc::new(LogicalPlan::Projection(projection));
    let sorted = in_expressions(LogicalPlan::Sort(Sort { input, ..sort }))?;
    LogicalPlanBuilder::from(sorted).project(columns)?.build()
}

/// Joins the subqueries in the expressions of a node to its input.
fn in_expressions(node: LogicalPlan) -> Result<LogicalPlan> {
    let columns = node.schema().columns();
    let names = NamePreserver::new(&node);
    let input = node.inputs().into_iter().next().cloned().unwrap_or_default();
    let mut attached = Attached::to(&node, input);
    let mut expressions = Vec::new();
    for expr in node.expressions() {
        let name = names.save(&expr);
        let expr = match node {
            LogicalPlan::Filter(_) => attached.predicate(expr)?,
            _ => attached.value(expr)?,
        };
        expressions.push(name.restore(expr));
    }
    let input = attached.input;
    let plan = node.with_new_exprs(expressions, vec![input])?;
    // A node that passes on its input's columns also passes the values of the subqueries.
    if plan.schema().fields().len() == columns.len() {
        return Ok(plan);
    }
    LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build()
}

/// Returns the value of a subquery without FROM.
fn inlined(rows: &LogicalPlan) -> Result<Option<Expr>> {
    let LogicalPlan::Projection(projection) = rows else { return Ok(None) };
    let LogicalPlan::EmptyRelation(empty) = projection.input.as_ref() else { return Ok(None) };
    let [value] = projection.expr.as_slice() else { return Ok(None) };
    Ok(empty.produce_one_row.then(|| value.clone().unalias()))
}

/// Which rows a subquery is joined to.
struct Asked {
    /// Rows for which this is true; all rows if None.
    reached: Option<Expr>,
    /// Whether each row has its own value, even if the outer columns are equal.
    each: bool,
}

/// Adds the value of a scalar subquery to each row of a plan as the last column.
fn with_value(
    outer: LogicalPlan,
    rows: LogicalPlan,
    asked: Asked,
) -> Result<(LogicalPlan, Column)> {
    let is_single = has_one_row(&rows);
    let refs = outer_columns(&rows, Some(outer.schema()))?;
    let name = unused("value");
    let first = rows.schema().columns().swap_remove(0);
    let (outer, rows, keys) = match (refs.is_empty(), asked.reached) {
        (true, None) => (outer, rows, (vec![], vec![])),
        (true, Some(reached)) => {
            let outer = repeatable(outer)?;
            let gate = gate(outer.clone(), Some(reached))?;
            (outer, gated(rows, &gate)?, (vec![], vec![]))
        }
        (false, reached) => {
            let outer = repeatable(outer)?;
            let (outer, domain) = match asked.each {
                true => Domain::of_each(outer, refs, reached)?,
                false => {
                    let domain = Domain::try_new(&outer, refs, reached)?;
                    (outer, domain)
                }
            };
            let keys = domain.keys();
            (outer, domain.push(rows)?, keys)
        }
    };
    let of_domain = || keys.1.iter().cloned().map(Expr::Column);
    let rows = LogicalPlanBuilder::from(rows);
    let rows = match is_single {
        true => {
            let value = Expr::Column(first).alias(&name);
            rows.project(of_domain().chain([value]))?
        }
        false => {
            let value = single_value(Expr::Column(first)).alias(&name);
            rows.aggregate(of_domain(), [value])?
        }
    };
    let plan = joined(outer, rows.build()?, JoinType::Left, keys, None)?.build()?;
    Ok((plan, Column::from_name(name)))
}

/// Whether a subquery has at most one row for each outer row.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Projection(projection) => has_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_one_row(&alias.input),
        LogicalPlan::Filter(filter) => has_one_row(&filter.input),
        LogicalPlan::Sort(sort) => sort.fetch == Some(1) || has_one_row(&sort.input),
        LogicalPlan::Limit(limit) => {
            domain::fetched(limit).is_ok_and(|(_, fetch)| fetch.is_some_and(|fetch| fetch <= 1))
                || has_one_row(&limit.input)
        }
        LogicalPlan::EmptyRelation(_) => true,
        _ => false,
    }
}
