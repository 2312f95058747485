//! Parameters whose cast or whose function implies a type that Arrow lacks.

use std::sync::Arc;

use atoll_functions::RangeForm;
use atoll_sql_common::pg_type::{Checked, marked};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::{Cast, Placeholder};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, WriteOp};

use super::functions::{CHECKED_ITEMS, text};

/// Gives parameters in an expression their types.
pub(super) fn typed_parameters(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|mut expr| {
        let Expr::ScalarFunction(call) = &mut expr else { return Ok(Transformed::no(expr)) };
        let is_typed = match (call.func.name(), &mut call.args[..]) {
            (CHECKED_ITEMS, [items, Expr::Literal(name, _)]) => {
                let list = DataType::new_list(DataType::Utf8View, true);
                take_type(items, list, &format!("_{}", text(name)?))
            }
            (name, arguments) if range_of(name).is_some() => bounds(range_of(name), arguments),
            (name, [value]) => match name.strip_suffix("_checked").and_then(Checked::named) {
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

/// The type of ranges whose constructor is the function with this name.
fn range_of(function: &str) -> Option<RangeForm> {
    RangeForm::named(function).filter(|form| !form.is_multi)
}

/// Gives parameters that are bounds of a range their type; returns whether there are any.
fn bounds(of: Option<RangeForm>, arguments: &mut [Expr]) -> bool {
    let mut are_typed = false;
    for argument in arguments.iter_mut().take(2) {
        if let (Some(of), Expr::Placeholder(Placeholder { field: unknown @ None, .. })) =
            (of, argument)
        {
            *unknown = Some(Arc::new(Field::new("", of.bound_type(), true)));
            are_typed = true;
        }
    }
    are_typed
}

/// Gives parameters in the select list of an INSERT the types of the columns that they fill.
pub(crate) fn inserted_parameters(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Dml(mut write) = plan else { return Ok(plan) };
    if matches!(write.op, WriteOp::Insert(_))
        && let LogicalPlan::Projection(casts) = write.input.as_ref()
        && let LogicalPlan::Projection(list) = casts.input.as_ref()
        && let Some(list) = typed_list(casts, list, &write.target.schema())?
    {
        let casts =
            Projection::try_new(casts.expr.clone(), Arc::new(LogicalPlan::Projection(list)))?;
        write.input = Arc::new(LogicalPlan::Projection(casts));
    }
    Ok(LogicalPlan::Dml(write))
}

/// The select list with typed parameters; None if it has none. `casts` are the casts of its columns to those of the table.
fn typed_list(casts: &Projection, list: &Projection, table: &Schema) -> Result<Option<Projection>> {
    let (mut values, mut is_typed) = (list.expr.clone(), false);
    for cast in &casts.expr {
        let (name, mut value) = match cast {
            Expr::Alias(alias) => (alias.name.as_str(), alias.expr.as_ref()),
            Expr::Column(column) => (column.name.as_str(), cast),
            _ => continue,
        };
        if let Expr::Cast(cast) = value {
            value = &cast.expr;
        }
        let Expr::Column(column) = value else { continue };
        let (Some(at), Ok(field)) =
            (list.schema.maybe_index_of_column(column), table.field_with_name(name))
        else {
            continue;
        };
        let mut value = &mut values[at];
        while let Expr::Alias(alias) = value {
            value = alias.expr.as_mut();
        }
        if let Expr::Placeholder(Placeholder { field: unknown @ None, .. }) = value {
            *unknown = Some(Arc::new(field.clone().with_nullable(true)));
            is_typed = true;
        }
    }
    match is_typed {
        true => Projection::try_new(values, Arc::clone(&list.input)).map(Some),
        false => Ok(None),
    }
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
