//! A function that names a part of an expression inside a plan.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(NamedPart::default())));

/// Returns its first argument and names it inside a plan.
pub fn named_part_function() -> Arc<ScalarUDF> {
    Arc::clone(&FUNCTION)
}

/// Whether a call is of that function.
pub fn is_named_part(call: &ScalarFunction) -> bool {
    call.func.inner().downcast_ref::<NamedPart>().is_some()
}

/// Returns the part that an expression names; other expressions unchanged.
pub fn without_name(expr: &Expr) -> &Expr {
    match expr {
        Expr::ScalarFunction(call) if is_named_part(call) => {
            call.args.first().map_or(expr, without_name)
        }
        _ => expr,
    }
}

/// Returns its first argument, and names it inside a plan: a cast with its type, a subquery by the second
/// argument, others in parentheses. Its own name is empty, so that it prints as parentheses too.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NamedPart {
    signature: Signature,
}

impl Default for NamedPart {
    fn default() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for NamedPart {
    fn name(&self) -> &str {
        ""
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        Ok(match arguments {
            [Expr::Cast(cast)] => {
                let metadata = metadata(&cast.field);
                format!("CAST({} AS {}{metadata})", cast.expr.schema_name(), cast.field.data_type())
            }
            [Expr::TryCast(cast)] => {
                format!("TRY_CAST({} AS {})", cast.expr.schema_name(), cast.field.data_type())
            }
            [_, Expr::Literal(name, _)] => name.to_string(),
            [part, ..] => format!("({})", part.schema_name()),
            [] => return internal_err!("a mark without its expression"),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the field is returned, not only its type")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        match arguments.arg_fields {
            [part, ..] => Ok(Arc::clone(part)),
            [] => internal_err!("a mark without its expression"),
        }
    }

    /// Arguments of table functions are evaluated before marks are removed.
    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match arguments.args.into_iter().next() {
            Some(part) => Ok(part),
            None => internal_err!("a mark without its expression"),
        }
    }
}

/// Returns metadata that distinguishes types that Arrow stores alike, such as JSON and text.
fn metadata(field: &FieldRef) -> String {
    let mut marks: Vec<String> =
        field.metadata().iter().map(|(key, value)| format!(" {key}={value}")).collect();
    marks.sort();
    marks.concat()
}
