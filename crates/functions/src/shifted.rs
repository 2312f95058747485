//! `lag` and `lead` whose offset or default differs per row: `lag(v, 1, v)`.
//!
//! DataFusion's only take constants for both.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, new_null_array};
use datafusion::arrow::compute::interleave;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::planner::RawWindowExpr;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{
    Expr, PartitionEvaluator, Signature, Volatility, WindowFunctionDefinition, WindowUDF,
    WindowUDFImpl,
};

use crate::sql_name;

/// Rewrites the call of a window function if it is one of these.
pub(crate) fn shifted(mut call: RawWindowExpr) -> RawWindowExpr {
    let WindowFunctionDefinition::WindowUDF(function) = &call.func_def else { return call };
    let name = match function.name() {
        "lag" => "lag",
        "lead" => "lead",
        _ => return call,
    };
    if call.args.iter().skip(1).any(is_of_row) {
        let function = Shifted { name, signature: Signature::user_defined(Volatility::Immutable) };
        let function = Arc::new(WindowUDF::new_from_impl(function));
        call.func_def = WindowFunctionDefinition::WindowUDF(function);
    }
    call
}

fn is_of_row(expr: &Expr) -> bool {
    let is = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_)
        ))
    };
    expr.exists(is).unwrap_or(true)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shifted {
    name: &'static str,
    signature: Signature,
}

impl WindowUDFImpl for Shifted {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [value, _] => Ok(vec![value.clone(), DataType::Int64]),
            [value, _, default] => match type_union_coercion(value, default) {
                Some(common) => Ok(vec![common.clone(), DataType::Int64, common]),
                None => plan_err!(
                    "the default of {} is of type {}, its values are of type {}",
                    self.name,
                    sql_name(default),
                    sql_name(value)
                ),
            },
            _ => plan_err!("{} takes a value, a number of rows and a default", self.name),
        }
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let data_type = args.input_fields().first().map(|field| field.data_type().clone());
        Ok(Arc::new(Field::new(args.name(), data_type.unwrap_or(DataType::Null), true)))
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let ignores_nulls = args.ignore_nulls();
        Ok(Box::new(Rows { is_lead: self.name == "lead", ignores_nulls }))
    }
}

/// The rows of a partition.
#[derive(Debug)]
struct Rows {
    is_lead: bool,
    ignores_nulls: bool,
}

/// Returns the index of the row at this distance from another.
fn place(row: usize, ahead: i64, rows: usize) -> Option<usize> {
    let place = i64::try_from(row).ok()?.checked_add(ahead)?;
    usize::try_from(place).ok().filter(|place| *place < rows)
}

/// The same among non-null rows, whose indices these are.
fn place_of_value(row: usize, ahead: i64, valued: &[usize]) -> Option<usize> {
    let from = match ahead {
        0 => return Some(row),
        1.. => valued.partition_point(|at| *at <= row).checked_sub(1).map_or(-1, |at| at as i64),
        _ => valued.partition_point(|at| *at < row) as i64,
    };
    usize::try_from(from.checked_add(ahead)?).ok().and_then(|at| valued.get(at)).copied()
}

impl PartitionEvaluator for Rows {
    fn evaluate_all(&mut self, values: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        let value = &values[0];
        let distances: &Int64Array = values[1].as_primitive::<Int64Type>();
        let none = new_null_array(value.data_type(), 1);
        let default = values.get(2).unwrap_or(&none);
        let valued: Vec<usize> = match self.ignores_nulls {
            true => (0..num_rows).filter(|row| value.is_valid(*row)).collect(),
            false => vec![],
        };
        const VALUE: usize = 0;
        const DEFAULT: usize = 1;
        const NONE: usize = 2;
        let of_row = |row: usize| {
            if distances.is_null(row) {
                return (NONE, 0);
            }
            let distance = distances.value(row);
            let ahead = if self.is_lead { distance } else { distance.wrapping_neg() };
            let found = match self.ignores_nulls {
                true => place_of_value(row, ahead, &valued),
                false => place(row, ahead, num_rows),
            };
            match found {
                Some(place) => (VALUE, place),
                None if values.len() > 2 => (DEFAULT, row),
                None => (NONE, 0),
            }
        };
        let places: Vec<(usize, usize)> = (0..num_rows).map(of_row).collect();
        Ok(interleave(&[value.as_ref(), default.as_ref(), none.as_ref()], &places)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_outside_of_the_partition_are_none() {
        assert_eq!(place(2, -2, 4), Some(0));
        assert_eq!(place(2, -3, 4), None);
        assert_eq!(place(2, 2, 4), None);
        assert_eq!(place(2, i64::MAX, 4), None);
    }

    #[test]
    fn rows_without_a_value_are_not_counted() {
        let valued = [1, 3, 4];
        assert_eq!(place_of_value(0, 1, &valued), Some(1));
        assert_eq!(place_of_value(1, 1, &valued), Some(3));
        assert_eq!(place_of_value(2, 2, &valued), Some(4));
        assert_eq!(place_of_value(2, -1, &valued), Some(1));
        assert_eq!(place_of_value(4, -2, &valued), Some(1));
        assert_eq!(place_of_value(1, -1, &valued), None);
        assert_eq!(place_of_value(4, 1, &valued), None);
    }
}
