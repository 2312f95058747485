//! Plans of which nothing is computed unless another plan has a row.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::columns::unused;
use super::domain::rows_of;
use crate::volatile::barred;

/// One row if a plan has a row for which the condition is true; none otherwise.
pub(super) fn gate(plan: LogicalPlan, condition: Option<Expr>) -> Result<LogicalPlan> {
    let plan = LogicalPlanBuilder::from(plan);
    let plan = match condition {
        Some(condition) => plan.filter(condition)?,
        None => plan,
    };
    plan.limit(0, Some(1))?.project([lit(true).alias(unused("gate"))])?.build()
}

/// The rows of a plan where the gate has a row, none where it has none. The gate stands above all that has rows by
/// itself, and so below all that is computed of them.
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
    // A filter on the columns of one side would sink below the join, and be evaluated without the gate.
    let gated = LogicalPlanBuilder::from(node).cross_join(gate.clone())?.project(columns)?;
    gated.build().map(barred)
}
