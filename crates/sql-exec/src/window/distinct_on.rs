//! DISTINCT ON with an order: the first row of each group.
//!
//! DataFusion (55.2, `replace_distinct_aggregate`) takes the first value of each selected expression by itself, which
//! compares the keys of the order once per expression. Numbered rows, of which a filter keeps the first, are found by
//! [`WindowExec`](super::WindowExec) with one comparison, and leave the others out early.

use std::sync::Arc;

use atoll_sql_common::logical::BottomUp;
use atoll_sql_common::settings::{AtollOptions, OperatorChoice};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr_rewriter::{normalize_cols, normalize_sorts};
use datafusion::logical_expr::{
    Distinct, DistinctOn, Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, lit,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule; for a place before DataFusion's for DISTINCT.
pub fn first_of_each() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(BottomUp { name: "first_of_each", rewrite })
}

fn rewrite(plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Distinct(Distinct::On(distinct)) = &plan else {
        return Ok(Transformed::no(plan));
    };
    let options = config.options();
    let method = options.extensions.get::<AtollOptions>().map(|options| options.window);
    if method.unwrap_or_default() == OperatorChoice::Off {
        return Ok(Transformed::no(plan));
    }
    match with_numbers(distinct)? {
        Some(plan) => Ok(Transformed::yes(plan)),
        None => Ok(Transformed::no(plan)),
    }
}

/// The first of the numbered rows of each group; `None` if no order says which is the first.
fn with_numbers(distinct: &DistinctOn) -> Result<Option<LogicalPlan>> {
    let DistinctOn { on_expr, select_expr, sort_expr, input, schema } = distinct;
    let Some(sorts) = sort_expr.as_ref().filter(|sorts| sorts.len() > on_expr.len()) else {
        return Ok(None);
    };
    let keys = normalize_cols(on_expr.clone(), input)?;
    let mut groups = normalize_sorts(sorts.clone(), input)?;
    let order = groups.split_off(keys.len());
    let number = row_number().partition_by(keys).order_by(order).build()?;
    let name = Column::from_name(number.schema_name().to_string());
    let selected = normalize_cols(select_expr.clone(), input)?.into_iter().zip(schema.iter());
    let selected = selected
        .map(|(expr, (qualifier, field))| expr.alias_qualified(qualifier.cloned(), field.name()));
    let first = LogicalPlanBuilder::from(Arc::clone(input))
        .window(vec![number])?
        .filter(Expr::Column(name).eq(lit(1_u64)))?
        .sort(groups)?
        .project(selected.collect::<Vec<_>>())?;
    first.build().map(Some)
}
