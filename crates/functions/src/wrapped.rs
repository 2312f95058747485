//! Wrappers around calls of DataFusion's functions, which otherwise stay unchanged.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;

/// A wrapper around a call.
pub(crate) trait Around: Debug + Send + Sync + 'static {
    /// Calls the function.
    fn invoke(&self, inner: &dyn ScalarUDFImpl, args: ScalarFunctionArgs) -> Result<ColumnarValue>;

    /// Returns the argument types that the function takes.
    fn signature<'a>(&'a self, inner: &'a dyn ScalarUDFImpl) -> &'a Signature {
        inner.signature()
    }

    /// Returns the field of the result.
    fn field(&self, inner: &dyn ScalarUDFImpl, args: ReturnFieldArgs) -> Result<FieldRef> {
        inner.return_field_from_args(args)
    }

    /// Whether the function may simplify a call with these arguments.
    fn simplifies(&self, _args: &[Expr], _info: &SimplifyContext) -> Result<bool> {
        Ok(true)
    }
}

/// Replaces the function with this name by a wrapped one.
pub(crate) fn wrap(context: &SessionContext, name: &str, around: impl Around) {
    let function = context.state_ref().read().scalar_functions().get(name).cloned();
    if let Some(function) = function {
        let inner = Arc::clone(function.inner());
        context.register_udf(ScalarUDF::new_from_impl(Wrapped { inner, around }));
    }
}

/// A wrapped function.
#[derive(Debug)]
struct Wrapped<A> {
    inner: Arc<dyn ScalarUDFImpl>,
    around: A,
}

impl<A> PartialEq for Wrapped<A> {
    fn eq(&self, other: &Self) -> bool {
        self.inner.name() == other.inner.name()
    }
}

impl<A> Eq for Wrapped<A> {}

impl<A> Hash for Wrapped<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.name().hash(state);
    }
}

impl<A: Around> ScalarUDFImpl for Wrapped<A> {
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.around.invoke(self.inner.as_ref(), args)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.around.signature(self.inner.as_ref())
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.around.field(self.inner.as_ref(), args)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if !self.around.simplifies(&args, info)? {
            return Ok(ExprSimplifyResult::Original(args));
        }
        self.inner.simplify(args, info)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.inner.preimage(args, literal, info)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        self.inner.evaluate_bounds(inputs)
    }

    fn propagate_constraints(
        &self,
        interval: &Interval,
        inputs: &[&Interval],
    ) -> Result<Option<Vec<Interval>>> {
        self.inner.propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.strictly_order_preserving(inputs)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner.placement(args)
    }
}
