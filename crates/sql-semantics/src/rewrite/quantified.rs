//! Columns of subqueries that DataFusion confuses with others of the same name.
//!
//! `x >= ALL (SELECT …)` and `x = ANY (SELECT …)` over a table that the outer query also reads: DataFusion 55.2
//! rewrites them as EXISTS with the comparison as its condition. When that becomes a join, only table and name identify
//! a column, and a column of the outer query with the same table and name as the subquery's is taken
//! for it: it is compared with itself (apache/datafusion#25258). Here the subquery's column gets a unique name.
//!
//! `EXISTS (SELECT b + 1 AS a FROM t WHERE t.a = u.a)`: the condition's column is added to the selected ones, and
//! rejected next to a computed column of the same name. Here that column gets another name.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, TableReference};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Subquery};
use datafusion::optimizer::AnalyzerRule;

use atoll_sql_common::logical::map_named;

/// The name of the subquery's column.
const NAME: &str = "__quantified";

/// Renames the columns of subqueries; see the module.
#[derive(Debug, Default)]
pub struct NamedQuantified;

impl AnalyzerRule for NamedQuantified {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| map_named(plan, |expr| expr.transform_up(named)))
            .data()
    }

    fn name(&self) -> &str {
        "named_quantified"
    }
}

fn named(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::SetComparison(comparison) => {
            let SetComparison { expr, subquery, op, quantifier } = comparison;
            let subquery = unambiguous(&subquery)?.unwrap_or(subquery);
            let columns = subquery.subquery.schema().columns().into_iter();
            let columns = columns.map(|column| Expr::Column(column).alias(NAME)).collect();
            let projection = Projection::try_new(columns, Arc::clone(&subquery.subquery))?;
            let plan = Arc::new(LogicalPlan::Projection(projection));
            let subquery = Subquery { subquery: plan, ..subquery };
            let comparison = SetComparison { expr, subquery, op, quantifier };
            Ok(Transformed::yes(Expr::SetComparison(comparison)))
        }
        Expr::Exists(Exists { subquery, negated }) => Ok(match unambiguous(&subquery)? {
            Some(subquery) => Transformed::yes(Expr::Exists(Exists { subquery, negated })),
            None => Transformed::no(Expr::Exists(Exists { subquery, negated })),
        }),
        Expr::InSubquery(membership) => Ok(match unambiguous(&membership.subquery)? {
            Some(subquery) => {
                Transformed::yes(Expr::InSubquery(InSubquery { subquery, ..membership }))
            }
            None => Transformed::no(Expr::InSubquery(membership)),
        }),
        other => Ok(Transformed::no(other)),
    }
}

/// Renames computed columns of a subquery that have the same name as a column of its input.
fn unambiguous(subquery: &Subquery) -> Result<Option<Subquery>> {
    let LogicalPlan::Projection(projection) = subquery.subquery.as_ref() else { return Ok(None) };
    let read = projection.input.schema();
    let is_correlated = !subquery.outer_ref_columns.is_empty();
    if !is_correlated || !projection.expr.iter().any(|expr| is_ambiguous(expr, read)) {
        return Ok(None);
    }
    let exprs =
        projection.expr.iter().enumerate().map(|(at, expr)| match is_ambiguous(expr, read) {
            true => expr.clone().unalias().alias(format!("__selected_{at}")),
            false => expr.clone(),
        });
    let projection = Projection::try_new(exprs.collect(), Arc::clone(&projection.input))?;
    let plan = Arc::new(LogicalPlan::Projection(projection));
    Ok(Some(Subquery { subquery: plan, ..subquery.clone() }))
}

/// Whether a computed column has the same name as an input column; a cast is named after its operand, with its table.
fn is_ambiguous(expr: &Expr, read: &DFSchema) -> bool {
    let (relation, name) = expr.qualified_name();
    let is_called = |table: Option<&TableReference>, column: &str| {
        table.is_some_and(|table| column == name || format!("{table}.{column}") == name)
    };
    relation.is_none() && read.iter().any(|(table, field)| is_called(table, field.name()))
}
