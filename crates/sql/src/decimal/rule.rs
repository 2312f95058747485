//! The logical rule that puts [`DecimalOperation`] in the place of binary expressions.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, ScalarUDF};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::DecimalOperation;

/// Replaces `+`, `-` and `*` of 128-bit decimals. It stands last among the logical rules: those
/// before it know what a binary expression means, and nothing of this function.
#[derive(Debug, Default)]
pub(crate) struct NarrowDecimals;

impl OptimizerRule for NarrowDecimals {
    fn name(&self) -> &str {
        "narrow_decimals"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !matches!(
            plan,
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Filter(_)
        ) {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| replace(expr, &schema))?;
            Ok(match rewritten.transformed {
                true => rewritten.update_data(|expr| name.restore(expr)),
                false => rewritten,
            })
        })
    }
}

fn replace(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let decimal = |side: &Expr| {
        Ok::<_, datafusion::error::DataFusionError>(matches!(
            side.get_type(schema)?,
            DataType::Decimal128(_, _)
        ))
    };
    if !(decimal(left)? && decimal(right)?) {
        return Ok(Transformed::no(expr));
    }
    let Some(operation) = DecimalOperation::new(*op, expr.get_type(schema)?) else {
        return Ok(Transformed::no(expr));
    };
    let arguments = vec![left.as_ref().clone(), right.as_ref().clone()];
    let function = Arc::new(ScalarUDF::from(operation));
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments))))
}
