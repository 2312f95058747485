//! Parameters whose cast or whose function implies a type that Arrow lacks.

use std::sync::Arc;

use atoll_sql_common::pg_type::marked;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::{Cast, Placeholder};

use super::functions::{CHECKED_ITEMS, form_of, text};

/// Gives parameters in an expression their types.
pub(super) fn typed_parameters(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|mut expr| {
        let Expr::ScalarFunction(call) = &mut expr else { return Ok(Transformed::no(expr)) };
        let is_typed = match (call.func.name(), &mut call.args[..]) {
            (CHECKED_ITEMS, [items, Expr::Literal(name, _)]) => {
                let list = DataType::new_list(DataType::Utf8View, true);
                take_type(items, list, &format!("_{}", text(name)?))
            }
            (name, [value]) => match name.strip_suffix("_checked").and_then(form_of) {
                Some(form) => {
                    take_type(value, DataType::Utf8View, &form.to_string().to_lowercase())
                }
                None => false,
            },
            _ => false,
        };
        Ok(if is_typed { Transformed::yes(expr) } else { Transformed::no(expr) })
    })
}

/// Gives a parameter a type, if it has none but that of its texts; returns whether it is one.
fn take_type(parameter: &mut Expr, data_type: DataType, mark: &str) -> bool {
    if let Expr::Cast(Cast { expr, field }) = parameter
        && *field.data_type() == data_type
        && matches!(expr.as_ref(), Expr::Placeholder(Placeholder { field: None, .. }))
    {
        *parameter = std::mem::take(expr);
    }
    let Expr::Placeholder(Placeholder { field: unknown @ None, .. }) = parameter else {
        return false;
    };
    *unknown = Some(Arc::new(marked(Field::new("", data_type, true), mark)));
    true
}
