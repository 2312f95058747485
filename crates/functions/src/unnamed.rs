//! Unary functions that plans need and SQL cannot call, because they are not registered. Their results are within the
//! bounds of their arguments.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// Such a function, identified by its name in plans.
#[derive(Debug)]
pub struct UnnamedFunction {
    name: &'static str,
    field: fn(&FieldRef) -> FieldRef,
    value: fn(ColumnarValue) -> Result<ColumnarValue>,
    signature: Signature,
}

impl UnnamedFunction {
    /// Creates a function with this result field and these values.
    pub fn make(
        name: &'static str,
        field: fn(&FieldRef) -> FieldRef,
        value: fn(ColumnarValue) -> Result<ColumnarValue>,
    ) -> Arc<ScalarUDF> {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { name, field, value, signature }))
    }

    /// Creates a call.
    pub fn call(function: &Arc<ScalarUDF>, value: Expr) -> Expr {
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), vec![value]))
    }
}

impl PartialEq for UnnamedFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for UnnamedFunction {}

impl Hash for UnnamedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for UnnamedFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the field is returned, not only its type")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let [argument] = take_function_args(self.name, arguments.arg_fields)?;
        Ok((self.field)(argument))
    }

    /// Without bounds, DataFusion's search for orderings fails where it combines them with an enclosing expression's.
    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        let [argument] = take_function_args(self.name, input)?;
        Ok((*argument).clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = take_function_args(self.name, arguments.args)?;
        (self.value)(argument)
    }
}

/// Returns the field of a function whose result is nullable if an argument is.
pub fn null_where_an_argument_is(
    function: &impl ScalarUDFImpl,
    arguments: &ReturnFieldArgs,
) -> Result<FieldRef> {
    let fields = arguments.arg_fields;
    let types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
    let nullable = fields.iter().any(|field| field.is_nullable());
    Ok(Arc::new(Field::new(function.name(), function.return_type(&types)?, nullable)))
}
