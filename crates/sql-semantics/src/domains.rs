//! The call that checks the constraints of a domain for a value, which a cast to the domain becomes.

use std::sync::{Arc, LazyLock};

use atoll_sql_common::error::SqlState;
use atoll_sql_common::pg_type::as_domain;
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// The name of the function: a value, the OID and the name of the domain, then the name of each constraint, empty for
/// NOT NULL, and its condition for the value.
pub const VALUE: &str = "domain_value";

/// Returns the function if this is its name.
pub(crate) fn named(name: &str) -> Option<Arc<ScalarUDF>> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(ScalarUDF::from(DomainValue { signature }))
    });
    (name == VALUE).then(|| Arc::clone(&FUNCTION))
}

/// Returns the error for a value that violates a constraint of a domain; no name stands for NOT NULL.
pub fn violation(domain: &str, check: Option<&str>) -> DataFusionError {
    match check {
        Some(check) => SqlState::CHECK_VIOLATION
            .error(format!("value for domain {domain} violates check constraint \"{check}\"")),
        None => SqlState::NOT_NULL_VIOLATION
            .error(format!("domain {domain} does not allow null values")),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DomainValue {
    signature: Signature,
}

impl ScalarUDFImpl for DomainValue {
    fn name(&self) -> &str {
        VALUE
    }

    /// Casts are not part of column names.
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        match arguments {
            [value, ..] => Ok(value.schema_name().to_string()),
            [] => exec_err!("a value is missing"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of, _, _, ..] => Ok(of.clone()),
            _ => plan_err!("{VALUE} takes a value, a domain, and conditions"),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let ([value, ..], [_, Some(oid), ..]) = (arguments.arg_fields, arguments.scalar_arguments)
        else {
            return plan_err!("{VALUE} takes a value, a domain, and conditions");
        };
        let oid = oid.cast_to(&DataType::UInt32)?;
        let ScalarValue::UInt32(Some(oid)) = oid else {
            return plan_err!("{VALUE} takes the OID of a domain");
        };
        Ok(Arc::new(as_domain(value.as_ref().clone(), oid)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, _, domain, checks @ ..] = &arguments.args[..] else {
            return exec_err!("{VALUE} takes a value, a domain, and conditions");
        };
        let domain = text(domain)?;
        for check in checks.chunks_exact(2) {
            let holds = check[1].to_array(arguments.number_rows)?;
            let holds = cast(&holds, &DataType::Boolean)?;
            let holds = holds.as_boolean();
            if (0..holds.len()).any(|row| holds.is_valid(row) && !holds.value(row)) {
                let name = text(&check[0])?;
                return Err(violation(&domain, Some(&*name).filter(|name| !name.is_empty())));
            }
        }
        Ok(value.clone())
    }
}

fn text(value: &ColumnarValue) -> Result<String> {
    let ColumnarValue::Scalar(value) = value else {
        return exec_err!("{VALUE} takes constant names");
    };
    let text: Option<Option<&str>> = ScalarValue::try_as_str(value);
    match text.flatten() {
        Some(text) => Ok(text.to_owned()),
        None => exec_err!("{VALUE} takes constant names"),
    }
}
