//! Casts of stored values.

use arrow_array::{Array, ArrayRef};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType};

/// The array in another type. Arrow's own cast returns NULL for a value that the type cannot hold; here it is an error,
/// because values must be stored as given.
pub(super) fn exact_cast(array: &dyn Array, to: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{Int64Array, PrimitiveArray};

    use super::*;

    #[test]
    fn values_that_do_not_fit_are_refused_and_null_stays_null() {
        let fitting = Int64Array::from(vec![Some(7), None]);
        let cast = exact_cast(&fitting, &DataType::Int32).expect("both fit");
        let expected: ArrayRef = Arc::new(PrimitiveArray::<Int32Type>::from(vec![Some(7), None]));
        assert_eq!(&cast, &expected);
        let wide = Int64Array::from(vec![Some(7), Some(5_000_000_000)]);
        let error = exact_cast(&wide, &DataType::Int32).expect_err("one does not fit");
        assert!(error.to_string().contains("5000000000"), "{error}");
    }
}
