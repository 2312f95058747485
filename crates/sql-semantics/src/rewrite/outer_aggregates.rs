//! Aggregates of the outer query inside a subquery.
//!
//! ```text
//! SELECT k, (SELECT max(w) FROM u WHERE w < sum(t.v)) FROM t GROUP BY k
//! ```
//!
//! `sum(t.v)` belongs to the groups of t in SQL, since it only references columns of t. DataFusion 55.2 computes it
//! over the rows of the subquery. Here the outer query computes it, and the subquery references the column.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, not_impl_err, plan_err};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, Filter, LogicalPlan, Projection, Subquery, Window,
};
use datafusion::optimizer::AnalyzerRule;

use super::outer_names::with_subquery;
use atoll_sql_common::logical::map_named;

/// Moves aggregates to the queries they belong to; see the module.
#[derive(Debug, Default)]
pub struct OuterAggregates;

impl AnalyzerRule for OuterAggregates {
    fn name(&self) -> &str {
        "outer_aggregates"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut has_any = false;
        plan.apply_with_subqueries(|node| {
            has_any = has_any || !outer_aggregates(node).is_empty();
            Ok(if has_any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !has_any {
            return Ok(plan);
        }
        let plan = plan.transform_up_with_subqueries(gathered).data()?;
        check(&plan)?;
        Ok(plan)
    }
}

/// An aggregate of which no query has all columns would be computed over the rows of the subquery.
fn check(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let Some(aggregate) = in_subqueries(node)?.first() {
            return not_impl_err!(
                "{aggregate} within a subquery, which is an aggregate of more than one query around; \
                 compute it in a subquery in FROM"
            );
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Collects the aggregates of a node that only reference outer columns.
fn outer_aggregates(node: &LogicalPlan) -> Vec<&Expr> {
    let LogicalPlan::Aggregate(aggregate) = node else { return vec![] };
    aggregate.aggr_expr.iter().filter(|expr| is_outer(expr)).collect()
}

fn is_outer(expr: &Expr) -> bool {
    expr.contains_outer() && expr.column_refs().is_empty()
}

/// Makes a node's query compute its aggregates that are inside the node's subqueries.
fn gathered(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let [input] = node.inputs()[..] else { return Ok(Transformed::no(node)) };
    let grouped = aggregate_below(input);
    let rows = grouped.map_or(input.schema(), |aggregate| aggregate.input.schema());
    let found = found_in(&node, rows)?;
    if found.is_empty() {
        return Ok(Transformed::no(node));
    }
    let aggregates: Vec<Expr> = found.values().cloned().collect();
    let input = match (&node, grouped) {
        (_, Some(_)) => with_aggregates(input, &aggregates)?,
        (LogicalPlan::Projection(projection), None) => {
            let mut columns = projection.expr.iter().flat_map(Expr::column_refs);
            if let Some(column) = columns.next() {
                return plan_err!(
                    "column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function"
                );
            }
            let all = Aggregate::try_new(Arc::new(input.clone()), vec![], aggregates)?;
            LogicalPlan::Aggregate(all)
        }
        _ => {
            return plan_err!(
                "Aggregate functions are not allowed in the WHERE clause. Consider using HAVING instead"
            );
        }
    };
    let names = NamePreserver::new(&node);
    let exprs = node.expressions().into_iter().map(|expr| {
        let name = names.save(&expr);
        let named = expr.transform_up(|expr| named_in(expr, &found, rows))?;
        Ok(name.restore(named.data))
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    let is_filter = matches!(node, LogicalPlan::Filter(_));
    let columns: Vec<Expr> = node.schema().columns().into_iter().map(Expr::Column).collect();
    let node = node.with_new_exprs(exprs, vec![input])?;
    // The filter now passes on more columns, which the select list above ignores.
    let node = match is_filter || node.schema().fields().len() == columns.len() {
        true => node,
        false => LogicalPlan::Projection(Projection::try_new(columns, Arc::new(node))?),
    };
    Ok(Transformed::yes(node))
}

/// Returns the aggregation whose groups a plan returns.
fn aggregate_below(plan: &LogicalPlan) -> Option<&Aggregate> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => Some(aggregate),
        LogicalPlan::Filter(filter) => aggregate_below(&filter.input),
        LogicalPlan::Window(window) => aggregate_below(&window.input),
        _ => None,
    }
}

/// Adds these aggregates to the plan's aggregation.
fn with_aggregates(plan: &LogicalPlan, aggregates: &[Expr]) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Aggregate(Aggregate { input, group_expr, aggr_expr, .. }) => {
            let mut all = aggr_expr.clone();
            all.extend(aggregates.iter().filter(|one| !aggr_expr.contains(one)).cloned());
            let input = Arc::clone(input);
            LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr.clone(), all)?)
        }
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            let input = Arc::new(with_aggregates(input, aggregates)?);
            LogicalPlan::Filter(Filter::try_new(predicate.clone(), input)?)
        }
        LogicalPlan::Window(Window { input, window_expr, .. }) => {
            let input = Arc::new(with_aggregates(input, aggregates)?);
            LogicalPlan::Window(Window::try_new(window_expr.clone(), input)?)
        }
        other => other.clone(),
    })
}

fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery)
        | Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

/// Collects the aggregates in a node's subqueries that only reference outer columns.
fn in_subqueries(node: &LogicalPlan) -> Result<Vec<Expr>> {
    let mut found = Vec::new();
    node.apply_expressions(|expr| {
        expr.apply(|expr| {
            if let Some(subquery) = subquery_of(expr) {
                subquery.subquery.apply_with_subqueries(|inner| {
                    found.extend(outer_aggregates(inner).into_iter().cloned());
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// Selects the aggregates over these rows, by their names in the subqueries.
fn found_in(node: &LogicalPlan, rows: &DFSchema) -> Result<BTreeMap<String, Expr>> {
    let mut found = BTreeMap::new();
    for aggregate in in_subqueries(node)? {
        if let Some(own) = over_rows(&aggregate, rows)? {
            found.insert(aggregate.schema_name().to_string(), own);
        }
    }
    Ok(found)
}

/// Replaces outer columns in the aggregate by columns; None if the rows lack one of them.
fn over_rows(aggregate: &Expr, rows: &DFSchema) -> Result<Option<Expr>> {
    let mut has_all = true;
    let own = aggregate.clone().transform_up(|expr| {
        Ok(match expr {
            Expr::OuterReferenceColumn(_, column) => {
                has_all &= rows.has_column(&column);
                Transformed::yes(Expr::Column(column))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(has_all.then_some(own.data))
}

/// Replaces such aggregates in a subquery by columns.
fn named_in(
    expr: Expr,
    found: &BTreeMap<String, Expr>,
    rows: &DFSchema,
) -> Result<Transformed<Expr>> {
    with_subquery(expr, |plan| {
        plan.transform_up_with_subqueries(|node| uncomputed(node, found, rows)).data()
    })
}

/// Replaces these aggregates in a node of a subquery by columns.
fn uncomputed(
    node: LogicalPlan,
    found: &BTreeMap<String, Expr>,
    rows: &DFSchema,
) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Aggregate(Aggregate { input, group_expr, mut aggr_expr, schema, .. }) = node
    {
        let before = aggr_expr.len();
        aggr_expr.retain(|expr| !found.contains_key(&expr.schema_name().to_string()));
        return Ok(if aggr_expr.len() == before {
            let same = Aggregate::try_new_with_schema(input, group_expr, aggr_expr, schema)?;
            Transformed::no(LogicalPlan::Aggregate(same))
        } else if aggr_expr.is_empty() && group_expr.is_empty() {
            Transformed::yes(Arc::unwrap_or_clone(input))
        } else {
            let rest = Aggregate::try_new(input, group_expr, aggr_expr)?;
            Transformed::yes(LogicalPlan::Aggregate(rest))
        });
    }
    map_named(node, |expr| {
        expr.transform_up(|expr| {
            let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
            let Some(own) = found.get(&column.name).filter(|_| column.relation.is_none()) else {
                return Ok(Transformed::no(expr));
            };
            let (_, field) = own.to_field(rows)?;
            let column = Column::from_name(own.schema_name().to_string());
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        })
    })
}
