//! `greatest` and `least` of texts in the order of their type.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::{cast, interleave};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::items::order_of;

/// The largest or smallest of texts, by the bytes that a function returns for each; NULLs are left out.
pub(super) fn extreme(values: Vec<Expr>, order: Arc<ScalarUDF>, is_greatest: bool) -> Expr {
    let signature = Signature::variadic_any(Volatility::Immutable);
    ScalarUDF::from(OrderedExtreme { signature, order, is_greatest }).call(values)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OrderedExtreme {
    signature: Signature,
    order: Arc<ScalarUDF>,
    is_greatest: bool,
}

impl ScalarUDFImpl for OrderedExtreme {
    fn name(&self) -> &str {
        if self.is_greatest { "ordered_greatest" } else { "ordered_least" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.iter().find(|of| !of.is_null() && !of.is_string()) {
            Some(other) => plan_err!("{} takes values of one type, not {other}", self.name()),
            None => Ok(types.iter().find(|of| of.is_string()).cloned().unwrap_or(DataType::Utf8)),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = ColumnarValue::values_to_arrays(&arguments.args)?;
        let to = arguments.return_field.data_type();
        let texts =
            values.iter().map(|values| Ok(cast(values, to)?)).collect::<Result<Vec<_>>>()?;
        let keys = texts.iter().map(|texts| {
            let bytes = order_of(&cast(texts, &DataType::Utf8)?, &self.order, &arguments)?;
            Ok(cast(&bytes, &DataType::Binary)?)
        });
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let rows = texts.first().map_or(0, |texts| texts.len());
        let best = (0..rows).map(|row| {
            let there = (0..keys.len()).filter(|at| keys[*at].is_valid(row));
            let key = |at: &usize| keys[*at].as_binary::<i32>().value(row);
            let found = match self.is_greatest {
                // Of equal ones the first, as in PostgreSQL.
                true => there.rev().max_by_key(key),
                false => there.min_by_key(key),
            };
            (found.unwrap_or(0), row)
        });
        let best: Vec<(usize, usize)> = best.collect();
        let texts: Vec<&dyn Array> = texts.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(interleave(&texts, &best)?))
    }
}
