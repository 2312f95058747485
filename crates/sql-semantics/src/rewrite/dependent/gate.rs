//! Plans that are evaluated only if another plan has a row.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::columns::unused;
use super::domain::rows_of;
use crate::volatile::barred;

/// Returns one row if a plan has a row that satisfies the condition; otherwise none.
pub(super) fn gate(plan: LogicalPlan, condition: Option<Expr>) -> Result<LogicalPlan> {
    let plan = LogicalPlanBuilder::from(plan);
    let plan = match condition {
        Some(condition) => plan.filter(condition)?,
        None => plan,
    };
    plan.limit(0, Some(1))?.project([lit(true).alias(unused("gate"))])?.build()
}

/// Returns the rows of a plan if the gate has a row, otherwise none. The gate is directly above all sources of rows,
/// and so below everything computed from them.
pub(super) fn gated(plan: LogicalPlan, gate: &LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let is_single = match &node {
            LogicalPlan::Aggregate(aggregate) => {
                let keys = &aggregate.group_expr;
                keys.is_empty() || keys.iter().any(|key| matches!(key, Expr::GroupingSet(_)))
            }
            node => node.inputs().is_empty(),
        };
        match node {
            node if !is_single => Ok(Transformed::no(node)),
            LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema })
                if schema.fields().is_empty() =>
            {
                Ok(Transformed::yes(gate.clone()))
            }
            LogicalPlan::Values(values) => gated(rows_of(values)?, gate).map(Transformed::yes),
            node => passed(node, gate).map(Transformed::yes),
        }
    })
    .data()
}

fn passed(node: LogicalPlan, gate: &LogicalPlan) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = node.schema().columns().into_iter().map(Expr::Column).collect();
    // A filter on the columns of one side would be pushed below the join and evaluated without the gate.
    let gated = LogicalPlanBuilder::from(node).cross_join(gate.clone())?.project(columns)?;
    gated.build().map(barred)
}
