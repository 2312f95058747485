//! Functions of times whose meaning depends on whether the time is a TIMETZ, which is a text.

use atoll_functions::{function_named, marked_field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::Expr;

use atoll_sql_common::pg_type::Checked;

/// Replaces such functions of a TIMETZ.
pub(super) fn of_zoned_times(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|mut expr| {
        let Expr::ScalarFunction(call) = &mut expr else { return Ok(Transformed::no(expr)) };
        let function = match (call.func.name(), &call.args[..]) {
            ("timezone", [_, time]) if is_zoned(time, schema) => function_named("timetz_at_zone"),
            ("date_part", [_, time]) if is_zoned(time, schema) => function_named("timetz_part"),
            _ => None,
        };
        let Some(function) = function else { return Ok(Transformed::no(expr)) };
        call.func = function;
        Ok(Transformed::yes(expr))
    })
}

fn is_zoned(time: &Expr, schema: &DFSchema) -> bool {
    let field = marked_field(time, schema).filter(|field| !field.data_type().is_nested());
    field.and_then(|field| Checked::of_field(&field)) == Some(Checked::Timetz)
}
