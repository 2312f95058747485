//! The type in which values of two types are compared.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;

use crate::failure::FunctionFailure;
use crate::sql_name;

/// Returns the common type for comparing two values.
pub(crate) fn common(left: &DataType, right: &DataType) -> Result<DataType> {
    let is_text =
        |of: &DataType| matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match comparison_coercion(left, right) {
        Some(common) => Ok(common),
        None if is_text(left) => Ok(right.clone()),
        None if is_text(right) => Ok(left.clone()),
        None => {
            let message = format!("{} and {} cannot be compared", sql_name(left), sql_name(right));
            Err(FunctionFailure::error("42883", message))
        }
    }
}
