//! `enum_first(NULL::mood)`, `enum_last(NULL::mood)`, `enum_range(NULL::mood)`, `enum_range(a, b)`.
//!
//! The registered functions know no labels; the rule of casts replaces them by functions that do.

use std::sync::{Arc, LazyLock};

use atoll_sql_common::pg_type::{array_of_enum, domain_oid};
use atoll_sql_common::user_type::{EnumType, UserTypes, enum_oid, enum_within};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err, internal_err, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, lit,
};

use super::labels::{missing, type_name};

/// Returns the functions to register.
pub fn functions() -> [ScalarUDF; 3] {
    [Wanted::First, Wanted::Last, Wanted::Range]
        .map(|wanted| ScalarUDF::from(EnumFunction::new(wanted, None)))
}

/// What a function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wanted {
    First,
    Last,
    Range,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct EnumFunction {
    wanted: Wanted,
    /// The type, once it is known.
    of: Option<Arc<EnumType>>,
    signature: Signature,
}

impl EnumFunction {
    fn new(wanted: Wanted, of: Option<Arc<EnumType>>) -> Self {
        let signature = match wanted {
            Wanted::Range => Signature::variadic_any(Volatility::Immutable),
            _ => Signature::any(1, Volatility::Immutable),
        };
        Self { wanted, of, signature }
    }
}

/// Returns a call of a function over ENUMs with the labels of the type; None for other functions.
pub(crate) fn with_labels(
    call: &ScalarFunction,
    schema: &DFSchema,
    types: Option<&UserTypes>,
) -> Result<Option<Expr>> {
    if call.func.name() == "pg_typeof"
        && let [value] = &call.args[..]
        && let Ok((_, field)) = value.to_field(schema)
    {
        if let Some(domain) = domain_oid(&field).and_then(|oid| types?.domain_numbered(oid)) {
            return Ok(types.map(|types| lit(types.shown_domain(domain))));
        }
        if enum_within(field.data_type()).is_some() {
            return Ok(Some(lit(type_name(field.data_type(), types))));
        }
        if let Some(of) = array_of_enum(&field).and_then(|oid| types?.numbered(oid)) {
            return Ok(types.map(|types| lit(format!("{}[]", of.shown(types.is_visible(of))))));
        }
        return Ok(None);
    }
    let Some(EnumFunction { wanted, of: None, .. }) = call.func.inner().downcast_ref() else {
        return Ok(None);
    };
    let mut oids = call.args.iter().filter_map(|arg| enum_oid(&arg.get_type(schema).ok()?));
    let Some(oid) = oids.next() else { return Ok(None) };
    let Some(of) = types.and_then(|types| types.numbered(oid)) else { return Err(missing(oid)) };
    let function = EnumFunction::new(*wanted, Some(Arc::clone(of)));
    let function = Arc::new(ScalarUDF::from(function));
    Ok(Some(Expr::ScalarFunction(ScalarFunction::new_udf(function, call.args.clone()))))
}

fn documented(about: &str, syntax: &str, example: &str) -> Documentation {
    Documentation::builder(DocSection::default(), about, syntax).with_sql_example(example).build()
}

static FIRST: LazyLock<Documentation> = LazyLock::new(|| {
    documented("The first label of an ENUM.", "enum_first(value)", "enum_first(NULL::mood)")
});
static LAST: LazyLock<Documentation> = LazyLock::new(|| {
    documented("The last label of an ENUM.", "enum_last(value)", "enum_last(NULL::mood)")
});
static RANGE: LazyLock<Documentation> = LazyLock::new(|| {
    documented(
        "The labels of an ENUM in their order, or those between two of them, of which NULL is the end.",
        "enum_range(low[, high])",
        "enum_range(NULL::mood)",
    )
});

impl ScalarUDFImpl for EnumFunction {
    fn name(&self) -> &str {
        match self.wanted {
            Wanted::First => "enum_first",
            Wanted::Last => "enum_last",
            Wanted::Range => "enum_range",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let Some(of) = types.iter().find(|of| enum_oid(of).is_some()) else {
            return plan_err!("{} takes a value of an enum, such as NULL::mood", self.name());
        };
        if types.len() > 2 || types.iter().any(|other| other != of && !other.is_null()) {
            return plan_err!("{} takes one or two values of the same enum", self.name());
        }
        Ok(match self.wanted {
            // DataFusion cannot display lists of codes.
            Wanted::Range => DataType::new_list(DataType::Utf8View, true),
            _ => of.clone(),
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(match self.wanted {
            Wanted::First => &FIRST,
            Wanted::Last => &LAST,
            Wanted::Range => &RANGE,
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(of) = &self.of else {
            return internal_err!("{} was planned without the labels", self.name());
        };
        let codes: Vec<i64> = of.labels.iter().map(|label| label.code).collect();
        let value = |code| of.value(code);
        Ok(match (self.wanted, &arguments.args[..]) {
            (Wanted::First, _) => ColumnarValue::Scalar(value(codes.first().copied())),
            (Wanted::Last, _) => ColumnarValue::Scalar(value(codes.last().copied())),
            (Wanted::Range, [_]) => ColumnarValue::Scalar(list(of, &codes, None, None)),
            (Wanted::Range, [low, high]) => {
                let rows = arguments.number_rows;
                let (low, high) = (low.to_array(rows)?, high.to_array(rows)?);
                let lists = (0..rows).map(|row| {
                    let bound = |bounds| ScalarValue::try_from_array(bounds, row).map(code_of);
                    Ok(list(of, &codes, bound(&low)?, bound(&high)?))
                });
                let lists = lists.collect::<Result<Vec<_>>>()?;
                ColumnarValue::Array(match lists.is_empty() {
                    true => datafusion::arrow::array::new_empty_array(
                        arguments.return_field.data_type(),
                    ),
                    false => ScalarValue::iter_to_array(lists)?,
                })
            }
            _ => return exec_err!("enum_range takes one or two values"),
        })
    }
}

fn code_of(value: ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampSecond(code, _) => code,
        _ => None,
    }
}

fn list(of: &EnumType, codes: &[i64], low: Option<i64>, high: Option<i64>) -> ScalarValue {
    let is_within =
        |code: &&i64| low.is_none_or(|low| **code >= low) && high.is_none_or(|high| **code <= high);
    let labels = codes.iter().filter(is_within).filter_map(|code| of.label(*code));
    let values: Vec<ScalarValue> =
        labels.map(|label| ScalarValue::Utf8View(Some(label.to_string()))).collect();
    ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Utf8View))
}
