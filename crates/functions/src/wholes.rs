//! `ceil` and `floor` of decimals, which return no fraction digits and have room for one more whole digit.
//!
//! DataFusion's keep the type, so `ceil(0.99)` does not fit DECIMAL(2, 2).

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Decimal128Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;

/// Replaces DataFusion's functions.
pub(super) fn register(context: &SessionContext) {
    let functions = context.state().scalar_functions().clone();
    for name in ["ceil", "floor"] {
        let Some(function) = functions.get(name) else { continue };
        let inner = ScalarUDF::clone(function);
        context.register_udf(ScalarUDF::new_from_impl(Wholes { inner }));
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Wholes {
    inner: ScalarUDF,
}

impl Wholes {
    /// Rounds the decimals to whole numbers; `10^scale` is the unit.
    fn whole(&self, values: &ArrayRef, scale: i8, result: &DataType) -> Result<ArrayRef> {
        let values = values.as_primitive::<Decimal128Type>();
        let unit = 10_i128.pow(u32::from(scale.unsigned_abs()));
        let whole = match self.inner.name() {
            "ceil" => values.unary(|value: i128| -(-value).div_euclid(unit)),
            _ => values.unary(|value: i128| value.div_euclid(unit)),
        };
        let whole: datafusion::arrow::array::Decimal128Array = whole;
        Ok(Arc::new(whole.with_data_type(result.clone())))
    }
}

impl ScalarUDFImpl for Wholes {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [DataType::Decimal128(precision, 1..)] => Ok(DataType::Decimal128(*precision, 0)),
            _ => self.inner.return_type(arg_types),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scale = match args.args.first().map(ColumnarValue::data_type) {
            Some(DataType::Decimal128(_, scale)) if scale > 0 => scale,
            _ => return self.inner.inner().invoke_with_args(args),
        };
        let result = args.return_field.data_type();
        match &args.args[0] {
            ColumnarValue::Array(values) => {
                Ok(ColumnarValue::Array(self.whole(values, scale, result)?))
            }
            ColumnarValue::Scalar(value) => {
                let whole = self.whole(&value.to_array()?, scale, result)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&whole, 0)?))
            }
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.inner().output_ordering(inputs)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        match inputs.first().map(|input| input.data_type()) {
            Some(of @ DataType::Decimal128(..)) => {
                Interval::make_unbounded(&self.return_type(&[of])?)
            }
            _ => self.inner.inner().evaluate_bounds(inputs),
        }
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        match literal {
            // The result's type differs from the argument's.
            Expr::Literal(ScalarValue::Decimal128(..), _) => Ok(PreimageResult::None),
            _ => self.inner.inner().preimage(args, literal, info),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::array::Decimal128Array;
    use datafusion::functions::math::{ceil, floor};

    fn rounded(inner: &ScalarUDF, value: i128) -> i128 {
        let values: ArrayRef = Arc::new(Decimal128Array::from(vec![value]));
        let function = Wholes { inner: inner.clone() };
        let whole = function.whole(&values, 2, &DataType::Decimal128(38, 0)).unwrap();
        whole.as_primitive::<Decimal128Type>().value(0)
    }

    #[test]
    fn decimals_are_rounded_up_and_down() {
        for (value, up, down) in [(150, 2, 1), (-150, -1, -2), (200, 2, 2), (99, 1, 0), (-1, 0, -1)]
        {
            assert_eq!((rounded(&ceil(), value), rounded(&floor(), value)), (up, down), "{value}");
        }
    }
}
