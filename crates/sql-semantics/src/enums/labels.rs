//! Casts between the labels and the codes of an ENUM.

use std::sync::Arc;

use atoll_sql_common::error::SqlState;
use atoll_sql_common::pg_type::as_labels;
use atoll_sql_common::user_type::{EnumType, UserTypes, as_texts, enum_oid, enum_within};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray, TimestampSecondArray};
use datafusion::arrow::compute::cast as arrow_cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimestampSecondType};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// Returns the cast from or to an ENUM; None if neither type is one, or DataFusion's cast does the same.
///
/// # Errors
/// If values of `from` cannot be cast to `to`.
pub fn cast(
    value: &Expr,
    from: &DataType,
    to: &DataType,
    is_try: bool,
    types: Option<&UserTypes>,
) -> Result<Option<Expr>> {
    let Some(oid) = enum_within(from).or(enum_within(to)) else { return Ok(None) };
    if from == to || from.is_null() {
        return Ok(None);
    }
    let Some(of) = types.and_then(|types| types.numbered(oid)) else { return Err(missing(oid)) };
    let is_cast = match (enum_oid(from), enum_oid(to)) {
        (Some(_), None) => to.is_string(),
        (None, Some(_)) => from.is_string(),
        _ => false,
    };
    if !is_cast {
        return Err(SqlState::CANNOT_COERCE.error(format!(
            "cannot cast type {} to {}",
            type_name(from, types),
            type_name(to, types)
        )));
    }
    let function = LabelCast::new(of, to.clone(), is_try);
    Ok(Some(function.call(vec![value.clone()])))
}

pub(super) fn missing(oid: u32) -> DataFusionError {
    SqlState::UNDEFINED_OBJECT.error(format!("type with OID {oid} does not exist"))
}

/// The name of a type in messages.
pub(super) fn type_name(data_type: &DataType, types: Option<&UserTypes>) -> String {
    let field = Field::new("", data_type.clone(), true);
    let oid = atoll_sql_common::pg_type::PgType::of_field(&field).oid;
    let of_users = types.and_then(|types| types.format_type(oid.into()));
    of_users.unwrap_or_else(|| atoll_sql_common::pg_type::sql_type(&field))
}

/// The cast of labels to codes, or of codes to labels.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct LabelCast {
    of: Arc<EnumType>,
    to: DataType,
    /// Whether other texts than labels become NULL.
    is_try: bool,
    signature: Signature,
}

impl LabelCast {
    pub(super) fn new(of: &Arc<EnumType>, to: DataType, is_try: bool) -> Self {
        let signature = Signature::any(1, Volatility::Immutable);
        Self { of: Arc::clone(of), to, is_try, signature }
    }

    pub(super) fn call(self, args: Vec<Expr>) -> Expr {
        let function = Arc::new(ScalarUDF::from(self));
        Expr::ScalarFunction(ScalarFunction::new_udf(function, args))
    }

    pub(super) fn cast(&self, values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
        match (values.data_type(), to) {
            (from, to) if enum_oid(from) == Some(self.of.oid) && to.is_string() => {
                Ok(arrow_cast(&self.labels(values)?, to)?)
            }
            (from, to) if from.is_string() && enum_oid(to) == Some(self.of.oid) => {
                self.codes(values)
            }
            (from, to) => exec_err!("{from} is neither a label nor a code of {to}"),
        }
    }

    fn labels(&self, codes: &ArrayRef) -> Result<ArrayRef> {
        let codes = codes.as_primitive::<TimestampSecondType>();
        let label = |code: i64| match self.of.label(code) {
            Some(label) => Ok(&**label),
            None => internal_err!("enum {} has no label of code {code}", self.of.name),
        };
        let labels = codes.iter().map(|code| code.map(label).transpose());
        Ok(Arc::new(labels.collect::<Result<StringViewArray>>()?))
    }

    fn codes(&self, labels: &ArrayRef) -> Result<ArrayRef> {
        let labels = arrow_cast(labels, &DataType::Utf8View)?;
        let code = |label: Option<&str>| match label {
            Some(label) if self.is_try => Ok(self.of.code(label)),
            Some(label) => self.of.try_code(label).map(Some),
            None => Ok(None),
        };
        let codes = labels.as_string_view().iter().map(code);
        let codes = codes.collect::<Result<TimestampSecondArray>>()?;
        let DataType::Timestamp(_, zone) = self.of.data_type() else {
            return internal_err!("an enum is stored as a timestamp");
        };
        Ok(Arc::new(codes.with_timezone_opt(zone)))
    }
}

impl ScalarUDFImpl for LabelCast {
    fn name(&self) -> &str {
        if self.is_try { "try_cast" } else { "cast" }
    }

    /// Casts are not part of column names.
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        match arguments {
            [value] => Ok(value.schema_name().to_string()),
            _ => exec_err!("a cast of {} values", arguments.len()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = self.is_try || arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &arguments.args[..] {
            [ColumnarValue::Array(values)] => ColumnarValue::Array(self.cast(values, &self.to)?),
            [ColumnarValue::Scalar(value)] => {
                let values = self.cast(&value.to_array()?, &self.to)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)
            }
            other => return exec_err!("a cast of {} values", other.len()),
        })
    }
}

/// The field of the labels of a field of codes, in results.
pub(super) fn labels_of(field: &Field, oid: u32) -> Field {
    let texts = field.clone().with_data_type(as_texts(field.data_type()));
    as_labels(texts, oid)
}
