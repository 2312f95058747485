//! `lower` and `upper` of ranges, which of texts are functions of DataFusion.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl};
use datafusion::prelude::SessionContext;

use super::form::RangeForm;
use super::functions::form_of;
use super::point::RangePoint;
use crate::failure::FunctionFailure;
use crate::temporal::StatementClock;
use crate::wrapped::{Around, wrap};

/// Gives `lower` and `upper` their meaning for ranges.
pub(in crate::scalar) fn register(context: &SessionContext) {
    wrap(context, "lower", RangeEnd { is_lower: true });
    wrap(context, "upper", RangeEnd { is_lower: false });
}

#[derive(Debug)]
struct RangeEnd {
    is_lower: bool,
}

impl RangeEnd {
    /// The bound of a value; None if it has none.
    fn bound(&self, form: RangeForm, text: &str) -> Result<Option<RangePoint>> {
        let set = form.read(text, StatementClock::default());
        let set = set.map_err(FunctionFailure::into_datafusion)?;
        Ok(match self.is_lower {
            true => set.bounds().next().and_then(|(lower, _)| lower.value),
            false => set.bounds().last().and_then(|(_, upper)| upper.value),
        })
    }

    fn bounds(&self, form: RangeForm, texts: &StringArray, to: &DataType) -> Result<ArrayRef> {
        let found = texts.iter().map(|text| match text {
            Some(text) => self.bound(form, text),
            None => Ok(None),
        });
        let found: Vec<Option<RangePoint>> = found.collect::<Result<_>>()?;
        let options = CastOptions { safe: false, ..CastOptions::default() };
        if to.is_decimal() {
            let texts = found.iter().map(|point| match point {
                Some(RangePoint::Number(number)) => Some(number.text()),
                _ => None,
            });
            let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
            return Ok(cast_with_options(&texts, to, &options)?);
        }
        let numbers = found.iter().map(|point| match point {
            Some(RangePoint::Whole(number)) => Some(*number),
            _ => None,
        });
        let numbers: ArrayRef = Arc::new(numbers.collect::<Int64Array>());
        let numbers = match to {
            DataType::Date32 => cast_with_options(&numbers, &DataType::Int32, &options)?,
            _ => numbers,
        };
        Ok(cast_with_options(&numbers, to, &options)?)
    }
}

impl Around for RangeEnd {
    fn invoke(&self, inner: &dyn ScalarUDFImpl, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(form) = args.arg_fields.first().and_then(|field| form_of(field)) else {
            return inner.invoke_with_args(args);
        };
        let to = args.return_field.data_type();
        let Some(value) = args.args.first() else { return exec_err!("a range is missing") };
        let texts = |array: &ArrayRef| cast(array, &DataType::Utf8);
        match value {
            ColumnarValue::Array(array) => {
                let bounds = self.bounds(form, texts(array)?.as_string(), to)?;
                Ok(ColumnarValue::Array(bounds))
            }
            ColumnarValue::Scalar(value) => {
                let bounds = self.bounds(form, texts(&value.to_array()?)?.as_string(), to)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&bounds, 0)?))
            }
        }
    }

    fn field(&self, inner: &dyn ScalarUDFImpl, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields.first().and_then(|field| form_of(field)) {
            Some(form) => Ok(Arc::new(Field::new(inner.name(), form.bound_type(), true))),
            None => inner.return_field_from_args(args),
        }
    }
}
