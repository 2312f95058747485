//! DataFusion's `round` with literal digits: DataFusion rewrites `round(d, 1)` with `CAST(1 AS Int32)`, and until
//! that is a constant again, the decimal keeps its scale, in UNION and `coalesce` permanently.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::types::{NativeType, logical_float32, logical_float64, logical_int64};
use datafusion::logical_expr::{
    Coercion, ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature,
    TypeSignatureClass, Volatility,
};
use datafusion::prelude::SessionContext;

use crate::wrapped::{Around, wrap};

/// Wraps the function.
pub(in crate::scalar) fn register(context: &SessionContext) {
    wrap(context, "round", Rounded::new());
}

#[derive(Debug)]
struct Rounded {
    signature: Signature,
}

impl Rounded {
    /// Accepts DataFusion's argument types, except 64-bit digits.
    fn new() -> Self {
        let digits = Coercion::new_implicit(
            TypeSignatureClass::Native(logical_int64()),
            vec![TypeSignatureClass::Integer],
            NativeType::Int64,
        );
        let numbers = [
            Coercion::new_exact(TypeSignatureClass::Decimal),
            Coercion::new_exact(TypeSignatureClass::Integer),
            Coercion::new_exact(TypeSignatureClass::Native(logical_float32())),
            Coercion::new_implicit(
                TypeSignatureClass::Native(logical_float64()),
                vec![TypeSignatureClass::Numeric],
                NativeType::Float64,
            ),
        ];
        let forms = numbers.into_iter().flat_map(|number| {
            let to_digits = vec![number.clone(), digits.clone()];
            [TypeSignature::Coercible(to_digits), TypeSignature::Coercible(vec![number])]
        });
        Self { signature: Signature::one_of(forms.collect(), Volatility::Immutable) }
    }
}

impl Around for Rounded {
    fn signature<'a>(&'a self, _: &'a dyn ScalarUDFImpl) -> &'a Signature {
        &self.signature
    }

    fn invoke(
        &self,
        inner: &dyn ScalarUDFImpl,
        mut args: ScalarFunctionArgs,
    ) -> Result<ColumnarValue> {
        if let [_, digits] = &mut args.args[..] {
            *digits = digits.cast_to(&DataType::Int32, None)?;
        }
        if let [_, digits] = &mut args.arg_fields[..] {
            *digits = Arc::new(digits.as_ref().clone().with_data_type(DataType::Int32));
        }
        inner.invoke_with_args(args)
    }
}
