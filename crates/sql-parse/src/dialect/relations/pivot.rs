//! PIVOT: a column for each value of a column.
//!
//! ```text
//! PIVOT cities ON year USING sum(n) GROUP BY city
//! FROM cities PIVOT (sum(n) FOR year IN (2000, 2010))
//!
//! SELECT city, sum(n) FILTER (WHERE year = 2000) AS "2000", … FROM cities GROUP BY city
//! ```
//!
//! Columns that are not mentioned are grouped by. If no values are listed, the session looks them up
//! before it plans; see `needs`.

use std::collections::HashSet;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{
    Expr as Ast, ExprWithAlias, PivotValueSource, TableFactor, Value,
};

use crate::dialect::tree;

/// Most columns that a PIVOT makes.
const COLUMNS_MAX: usize = 10_000;

/// A value, and the name of its column.
#[derive(Clone)]
struct Wanted {
    conditions: Vec<Ast>,
    name: String,
}

pub(in crate::dialect) fn plan(
    factor: TableFactor,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let TableFactor::Pivot {
        table,
        aggregate_functions,
        value_column,
        value_source,
        default_on_null,
        ..
    } = factor
    else {
        return plan_err!("expected PIVOT");
    };
    let input = context.plan(*table)?;
    let mut named: HashSet<String> = HashSet::new();
    let mut note = |expr: &Expr| {
        named.extend(expr.column_refs().into_iter().map(|column| column.flat_name()));
    };
    let mut all = vec![Wanted { conditions: vec![], name: String::new() }];
    for (column, values) in columns(value_column, value_source)? {
        note(&context.sql_to_expr(column.clone(), input.schema())?);
        let mut next = Vec::new();
        for before in &all {
            for (value, name) in &values {
                let mut wanted = before.clone();
                wanted.conditions.push(tree::equal(column.clone(), value.clone()));
                if !wanted.name.is_empty() {
                    wanted.name.push('_');
                }
                wanted.name.push_str(name);
                next.push(wanted);
            }
        }
        if next.len().saturating_mul(aggregate_functions.len().max(1)) > COLUMNS_MAX {
            return plan_err!(
                "PIVOT makes more than {COLUMNS_MAX} columns; list the values in IN (…)"
            );
        }
        all = next;
    }
    let aggregates = match aggregate_functions.is_empty() {
        true => vec![ExprWithAlias { expr: tree::count_all(), alias: None }],
        false => aggregate_functions,
    };
    let mut values = Vec::new();
    let mut planned = Vec::new();
    for aggregate in &aggregates {
        let expr = context.sql_to_expr(aggregate.expr.clone(), input.schema())?;
        note(&expr);
        planned.push(expr);
    }
    for wanted in &all {
        let condition = match wanted.conditions.clone().into_iter().reduce(tree::and) {
            Some(condition) => Some(context.sql_to_expr(condition, input.schema())?),
            None => None,
        };
        for (aggregate, expr) in aggregates.iter().zip(&planned) {
            let expr = filtered(expr.clone(), condition.as_ref())?;
            values.push(expr.alias(column_name(wanted, aggregate, aggregates.len())));
        }
    }
    let groups: Vec<Expr> = match default_on_null {
        Some(Ast::Tuple(groups)) => {
            let planned =
                groups.into_iter().map(|group| context.sql_to_expr(group, input.schema()));
            planned.collect::<Result<_>>()?
        }
        _ => {
            let columns = input.schema().columns().into_iter();
            columns
                .filter(|column| !named.contains(&column.flat_name()))
                .map(Expr::Column)
                .collect()
        }
    };
    LogicalPlanBuilder::from(input).aggregate(groups, values)?.build()
}

/// A column with the values that are listed for it, and their names.
type ListedColumn = (Ast, Vec<(Ast, String)>);

/// The columns, each with its values and their names.
fn columns(columns: Vec<Ast>, source: PivotValueSource) -> Result<Vec<ListedColumn>> {
    let listed = match source {
        PivotValueSource::List(values) => values,
        _ => return plan_err!("PIVOT takes a list of values after IN: FOR year IN (2000, 2010)"),
    };
    if let ([column], false) = (columns.as_slice(), listed.is_empty()) {
        let values = listed.into_iter().map(|ExprWithAlias { expr, alias }| {
            let name = alias.map_or_else(|| text(&expr), |alias| alias.value);
            (expr, name)
        });
        return Ok(vec![(column.clone(), values.collect())]);
    }
    let each = columns.into_iter().map(|column| match column {
        Ast::InList { expr, list, .. } => {
            let values = list.into_iter().map(|value| match value {
                Ast::Named { expr, name } => (*expr, name.value),
                value => {
                    let name = text(&value);
                    (value, name)
                }
            });
            Ok((*expr, values.collect()))
        }
        other => plan_err!("PIVOT ON {other} has no list of values; write ON {other} IN (…)"),
    });
    each.collect()
}

fn text(value: &Ast) -> String {
    match value {
        Ast::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::Number(text, _) => text.clone(),
            other => other.to_string(),
        },
        Ast::Identifier(name) => name.value.clone(),
        other => other.to_string(),
    }
}

fn column_name(wanted: &Wanted, aggregate: &ExprWithAlias, count: usize) -> String {
    let of = match (&aggregate.alias, count) {
        (Some(alias), _) => alias.value.clone(),
        (None, 1) => return wanted.name.clone(),
        (None, _) => aggregate.expr.to_string().to_lowercase(),
    };
    if wanted.name.is_empty() { of } else { format!("{}_{of}", wanted.name) }
}

/// The aggregates of an expression over the rows that a condition holds for.
fn filtered(expr: Expr, condition: Option<&Expr>) -> Result<Expr> {
    let Some(condition) = condition else { return Ok(expr) };
    let mut found = false;
    let filtered = expr
        .transform_up(|expr| {
            Ok(match expr {
                Expr::AggregateFunction(mut function) => {
                    found = true;
                    let both = match function.params.filter.take() {
                        Some(filter) => filter.and(condition.clone()),
                        None => condition.clone(),
                    };
                    function.params.filter = Some(Box::new(both));
                    Transformed::yes(Expr::AggregateFunction(function))
                }
                other => Transformed::no(other),
            })
        })
        .data()?;
    match found {
        true => Ok(filtered),
        false => plan_err!("PIVOT takes aggregates, such as sum(x), after USING"),
    }
}
