//! Parameters whose place implies an ENUM: their values are labels, and the cast to the type reads them.

use atoll_sql_common::logical::map_named;
use atoll_sql_common::user_type::enum_oid;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::expr::{Cast, Placeholder};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Returns a plan that casts the values of such parameters.
///
/// # Errors
/// Those of DataFusion.
pub fn cast_parameters(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        map_named(node, |expr| expr.transform_up(|expr| Ok(cast_parameter(expr))))
    })
    .data()
}

fn cast_parameter(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::Placeholder(Placeholder { id, field: Some(field) })
            if enum_oid(field.data_type()).is_some() =>
        {
            let value = Expr::Placeholder(Placeholder { id, field: None });
            let cast = Cast::new(Box::new(value), field.data_type().clone());
            Transformed::yes(Expr::Cast(cast))
        }
        other => Transformed::no(other),
    }
}
