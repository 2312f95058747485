//! `substr` and `substring` with integers of any width: DataFusion's (55.2) only take INTEGER and BIGINT.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::types::{NativeType, logical_int64, logical_string};
use datafusion::functions::unicode;
use datafusion::logical_expr::{
    Coercion, ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, TypeSignature, TypeSignatureClass, Volatility,
};

/// A part of a text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Substr {
    signature: Signature,
    inner: Arc<ScalarUDF>,
}

/// The function.
pub(crate) fn function() -> ScalarUDF {
    let text = Coercion::new_exact(TypeSignatureClass::Native(logical_string()));
    let whole = Coercion::new_implicit(
        TypeSignatureClass::Native(logical_int64()),
        vec![TypeSignatureClass::Integer],
        NativeType::Int64,
    );
    let forms = vec![
        TypeSignature::Coercible(vec![text.clone(), whole.clone()]),
        TypeSignature::Coercible(vec![text, whole.clone(), whole]),
    ];
    let signature = Signature::one_of(forms, Volatility::Immutable);
    let names = ["str", "start_pos", "length"].map(str::to_owned).to_vec();
    let signature = match signature.clone().with_parameter_names(names) {
        Ok(named) => named,
        Err(_) => signature,
    };
    ScalarUDF::from(Substr { signature, inner: unicode::substr() })
}

impl ScalarUDFImpl for Substr {
    fn name(&self) -> &str {
        "substr"
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}
