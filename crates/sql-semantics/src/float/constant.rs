//! Canonicalization of constants.

use atoll_store::table::{canonical, has_floats};
use datafusion::common::{Result, ScalarValue};

/// Returns the constant in canonical form.
pub(super) fn canonical_scalar(value: ScalarValue) -> Result<ScalarValue> {
    match value.is_null() || !has_floats(&value.data_type()) {
        true => Ok(value),
        false => ScalarValue::try_from_array(&canonical(&value.to_array()?)?, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::{DataType, Float64Type};

    #[test]
    fn constants_have_it() {
        let zero = canonical_scalar(ScalarValue::Float64(Some(-0.0))).unwrap();
        assert_eq!(zero, ScalarValue::Float64(Some(0.0)));
        let list = ScalarValue::new_list_nullable(&[ScalarValue::from(-0.0)], &DataType::Float64);
        let found = canonical_scalar(ScalarValue::List(list)).unwrap();
        let item = found.to_array().unwrap().as_list::<i32>().value(0);
        assert_eq!(item.as_primitive::<Float64Type>().value(0).to_bits(), 0);
    }
}
