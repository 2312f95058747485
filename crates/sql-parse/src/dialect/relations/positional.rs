//! `a POSITIONAL JOIN b` pairs the first row with the first, and fills the shorter side with NULL.
//!
//! ```text
//! SELECT * FROM (VALUES (1), (2)) a(x) POSITIONAL JOIN (VALUES (3)) b(y)      (1, 3), (2, NULL)
//! ```
//!
//! The parser is given `GLOBAL CROSS JOIN` for it, and `GLOBAL JOIN` for ASOF JOIN; see `words`. Such a join
//! and everything before it become a separate relation.

use datafusion::common::{Column, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{Join, JoinOperator, TableFactor, TableWithJoins};

/// The number of a row on one of the sides.
const NUMBER: [&str; 2] = ["$left_row", "$right_row"];

/// Puts joins of these kinds, with the relations before them, into parentheses.
pub(in crate::dialect) fn rewrite(table: &mut TableWithJoins) -> Result<()> {
    if table.joins.iter().all(|join| !join.global) {
        return Ok(());
    }
    let nested = |table: TableWithJoins| TableFactor::NestedJoin {
        table_with_joins: Box::new(table),
        alias: None,
    };
    let first = table.relation.clone();
    let mut rest = TableWithJoins { relation: first, joins: vec![] };
    let mut joins = std::mem::take(&mut table.joins);
    for join in joins.drain(..) {
        let is_own = join.global;
        if is_own && !rest.joins.is_empty() {
            rest = TableWithJoins { relation: nested(rest), joins: vec![] };
        }
        rest.joins.push(join);
        if is_own {
            rest = TableWithJoins { relation: nested(rest), joins: vec![] };
        }
    }
    *table = rest;
    Ok(())
}

/// The two sides of a relation that is only such a join.
pub(in crate::dialect) fn sides(relation: &TableFactor) -> Option<(&TableFactor, &Join)> {
    let TableFactor::NestedJoin { table_with_joins, .. } = relation else { return None };
    match table_with_joins.joins.as_slice() {
        [join @ Join { global: true, .. }] => Some((&table_with_joins.relation, join)),
        _ => None,
    }
}

/// Whether a join pairs rows by their numbers.
pub(in crate::dialect) fn is_positional(join: &Join) -> bool {
    join.global && matches!(join.join_operator, JoinOperator::CrossJoin(_))
}

/// The plan of the two sides.
pub(in crate::dialect) fn plan(left: LogicalPlan, right: LogicalPlan) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = [&left, &right]
        .into_iter()
        .flat_map(|side| side.schema().columns())
        .map(Expr::Column)
        .collect();
    let numbered = |side: LogicalPlan, name: &str| {
        let mut columns: Vec<Expr> =
            side.schema().columns().into_iter().map(Expr::Column).collect();
        let window = row_number();
        columns.push(Expr::Column(Column::from_name(window.schema_name().to_string())).alias(name));
        LogicalPlanBuilder::from(side).window(vec![window])?.project(columns)?.build()
    };
    let [left_row, right_row] = NUMBER;
    let (left, right) = (numbered(left, left_row)?, numbered(right, right_row)?);
    let on = (vec![Column::from_name(left_row)], vec![Column::from_name(right_row)]);
    LogicalPlanBuilder::from(left).join(right, JoinType::Full, on, None)?.project(columns)?.build()
}
