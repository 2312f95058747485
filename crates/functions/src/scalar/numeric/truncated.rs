//! DataFusion's `trunc`, with the reduced scale of decimals, as in PostgreSQL: `trunc(1.9)` is 1.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl};
use datafusion::prelude::SessionContext;

use crate::wrapped::{Around, wrap};

/// Wraps the function.
pub(in crate::scalar) fn register(context: &SessionContext) {
    wrap(context, "trunc", Truncated);
}

#[derive(Debug)]
struct Truncated;

impl Around for Truncated {
    fn field(&self, inner: &dyn ScalarUDFImpl, args: ReturnFieldArgs) -> Result<FieldRef> {
        let digits = match args.scalar_arguments {
            [_] => Some(0),
            [_, Some(digits)] => {
                digits.cast_to(&DataType::Int64).ok().and_then(|digits| match digits {
                    ScalarValue::Int64(digits) => digits,
                    _ => None,
                })
            }
            _ => None,
        };
        let field = inner.return_field_from_args(args)?;
        Ok(match digits.and_then(|digits| with_digits(field.data_type(), digits)) {
            Some(left) => Arc::new(Field::new(field.name(), left, field.is_nullable())),
            None => field,
        })
    }

    fn invoke(
        &self,
        inner: &dyn ScalarUDFImpl,
        mut args: ScalarFunctionArgs,
    ) -> Result<ColumnarValue> {
        let left = args.return_type().clone();
        if !left.is_decimal() {
            return inner.invoke_with_args(args);
        }
        let value = args.args[0].data_type();
        args.return_field = Arc::new(args.return_field.as_ref().clone().with_data_type(value));
        inner.invoke_with_args(args)?.cast_to(&left, None)
    }
}

/// Returns the decimal type with at most this many fraction digits; None for other types.
fn with_digits(of: &DataType, digits: i64) -> Option<DataType> {
    let (precision, scale) = match of {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            (*precision, *scale)
        }
        _ => return None,
    };
    let left = i8::try_from(digits.clamp(0, i64::from(scale.max(0)))).ok()?;
    let cut = u8::try_from(scale.checked_sub(left)?).ok()?;
    let precision = precision.saturating_sub(cut).max(1);
    Some(match of {
        DataType::Decimal128(..) => DataType::Decimal128(precision, left),
        _ => DataType::Decimal256(precision, left),
    })
}
