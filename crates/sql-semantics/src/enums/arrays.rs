//! Casts to arrays of an ENUM, which are arrays of its labels: `'{sad,ok}'::mood[]`.

use std::sync::Arc;

use atoll_sql_common::pg_type::{array_of_enum, as_labels};
use atoll_sql_common::user_type::{EnumType, UserTypes};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::{cast as arrow_cast, nullif};
use datafusion::arrow::datatypes::{ArrowNativeType, DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::labels::missing;

/// Returns the cast to an array of an ENUM, if the type of a cast is one.
///
/// # Errors
/// If the ENUM does not exist any more.
pub fn cast_to_array(
    value: &Expr,
    to: &Field,
    is_try: bool,
    types: Option<&UserTypes>,
) -> Result<Option<Expr>> {
    let Some(oid) = array_of_enum(to) else { return Ok(None) };
    let Some(of) = types.and_then(|types| types.numbered(oid)) else { return Err(missing(oid)) };
    let (value, to) = (Box::new(value.clone()), to.data_type().clone());
    let texts = match is_try {
        true => Expr::TryCast(TryCast::new(value, to.clone())),
        false => Expr::Cast(Cast::new(value, to.clone())),
    };
    let signature = Signature::any(1, Volatility::Immutable);
    let check = CheckedLabels { of: Arc::clone(of), to, is_try, signature };
    let check = Arc::new(ScalarUDF::from(check));
    Ok(Some(Expr::ScalarFunction(ScalarFunction::new_udf(check, vec![texts]))))
}

/// Checks that the items of arrays are labels of an ENUM.
///
/// # Errors
/// If a text is not a label.
pub fn check_labels(of: &EnumType, arrays: &ArrayRef) -> Result<()> {
    others(of, arrays, false).map(drop)
}

/// For each array whether it has other texts than labels, which are errors unless they are tried.
fn others(of: &EnumType, arrays: &ArrayRef, is_try: bool) -> Result<BooleanArray> {
    let lists = arrays.as_list::<i32>();
    let labels = arrow_cast(lists.values(), &DataType::Utf8View)?;
    let labels = labels.as_string_view();
    let offsets = lists.value_offsets();
    let mut is_other = vec![false; lists.len()];
    for (row, of_row) in is_other.iter_mut().enumerate().filter(|(row, _)| lists.is_valid(*row)) {
        let items = offsets[row].as_usize()..offsets[row + 1].as_usize();
        for label in items.filter(|at| labels.is_valid(*at)).map(|at| labels.value(at)) {
            match is_try {
                true => *of_row |= of.code(label).is_none(),
                false => _ = of.try_code(label)?,
            }
        }
    }
    Ok(BooleanArray::from(is_other))
}

/// An array of texts, all of which are labels.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedLabels {
    of: Arc<EnumType>,
    to: DataType,
    /// Whether an array with other texts becomes NULL.
    is_try: bool,
    signature: Signature,
}

impl CheckedLabels {
    fn check(&self, arrays: &ArrayRef) -> Result<ArrayRef> {
        Ok(nullif(arrays, &others(&self.of, arrays, self.is_try)?)?)
    }
}

impl ScalarUDFImpl for CheckedLabels {
    fn name(&self) -> &str {
        if self.is_try { "try_cast" } else { "cast" }
    }

    /// Casts are not part of column names.
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        match arguments {
            [Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. })] => {
                Ok(expr.schema_name().to_string())
            }
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
        let nullable = self.is_try || arguments.arg_fields.iter().any(|of| of.is_nullable());
        let field = Field::new(self.name(), self.to.clone(), nullable);
        Ok(Arc::new(as_labels(field, self.of.oid)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &arguments.args[..] {
            [ColumnarValue::Array(arrays)] => ColumnarValue::Array(self.check(arrays)?),
            [ColumnarValue::Scalar(array)] => {
                let arrays = self.check(&array.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&arrays, 0)?)
            }
            other => return exec_err!("a cast of {} values", other.len()),
        })
    }
}
