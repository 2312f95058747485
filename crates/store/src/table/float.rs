//! Floats in the canonical form: no −0.0, and a single NaN.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, make_array};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};

type Result<T> = std::result::Result<T, ArrowError>;

/// A float type with access to its bits.
trait FloatType: ArrowPrimitiveType {
    /// Whether the value is neither −0.0 nor a noncanonical NaN.
    fn is_canonical(value: Self::Native) -> bool;

    /// The equal value in the canonical form.
    fn canonical(value: Self::Native) -> Self::Native;
}

macro_rules! float {
    ($type:ty, negative zero: $zero:literal, nan: $nan:literal) => {
        impl FloatType for $type {
            #[inline(always)]
            fn is_canonical(value: Self::Native) -> bool {
                let bits = value.to_bits();
                // Without short circuits: a loop over this is vectorised.
                (bits != $zero) & (!value.is_nan() | (bits == $nan))
            }

            fn canonical(value: Self::Native) -> Self::Native {
                match (Self::is_canonical(value), value.is_nan()) {
                    (true, _) => value,
                    (false, true) => Self::Native::from_bits($nan),
                    (false, false) => Self::Native::from_bits(0),
                }
            }
        }
    };
}

float!(Float16Type, negative zero: 0x8000, nan: 0x7e00);
float!(Float32Type, negative zero: 0x8000_0000, nan: 0x7fc0_0000);
float!(Float64Type, negative zero: 0x8000_0000_0000_0000, nan: 0x7ff8_0000_0000_0000);

/// The equal value in the canonical form.
pub(super) fn canonical_float32(value: f32) -> f32 {
    Float32Type::canonical(value)
}

/// The equal value in the canonical form.
pub(crate) fn canonical_float64(value: f64) -> f64 {
    Float64Type::canonical(value)
}

/// Whether values of this type are floats or hold floats.
pub fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => has_floats(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| has_floats(field.data_type())),
        DataType::Dictionary(_, values) => has_floats(values),
        _ => false,
    }
}

/// The same values in the canonical form. An array that is already canonical, as nearly all are, is
/// returned as it is, after one look at its values.
pub fn canonical(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float16 => floats::<Float16Type>(array),
        DataType::Float32 => floats::<Float32Type>(array),
        DataType::Float64 => floats::<Float64Type>(array),
        other if has_floats(other) => match nested(array.to_data())? {
            Some(changed) => make_array(changed),
            None => Arc::clone(array),
        },
        _ => Arc::clone(array),
    })
}

fn floats<T: FloatType>(array: &ArrayRef) -> ArrayRef {
    let floats: &PrimitiveArray<T> = array.as_primitive();
    match floats.values().iter().fold(true, |all, value| all & T::is_canonical(*value)) {
        true => Arc::clone(array),
        false => Arc::new(floats.unary::<_, T>(T::canonical)),
    }
}

/// Nested values with canonical floats. Returns None if all are canonical already.
fn nested(data: ArrayData) -> Result<Option<ArrayData>> {
    let mut changed = false;
    let mut child = |child: &ArrayData| -> Result<ArrayData> {
        if !has_floats(child.data_type()) {
            return Ok(child.clone());
        }
        let before = make_array(child.clone());
        let after = canonical(&before)?;
        changed |= !Arc::ptr_eq(&before, &after);
        Ok(after.to_data())
    };
    let children = data.child_data().iter().map(&mut child).collect::<Result<Vec<_>>>()?;
    Ok(match changed {
        true => Some(data.into_builder().child_data(children).build()?),
        false => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow_array::{Float32Array, Float64Array, ListArray, StructArray};
    use arrow_cast::cast;
    use arrow_schema::Field;

    const SIGNED_NAN: f64 = f64::from_bits(0xfff8_0000_0000_0000);
    const OTHER_NAN: f64 = f64::from_bits(0x7ff0_0000_0000_0001);

    fn bits(array: &ArrayRef) -> Vec<u64> {
        array.as_primitive::<Float64Type>().values().iter().map(|v| v.to_bits()).collect()
    }

    #[test]
    fn there_is_one_zero_and_one_nan() {
        let array: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, SIGNED_NAN, OTHER_NAN, -1.5]));
        let nan = 0x7ff8_0000_0000_0000;
        assert_eq!(bits(&canonical(&array).unwrap()), [0, nan, nan, (-1.5_f64).to_bits()]);
    }

    #[test]
    fn canonical_floats_are_not_copied() {
        let values = vec![0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN, -5e-324];
        let array: ArrayRef = Arc::new(Float64Array::from(values));
        assert!(Arc::ptr_eq(&array, &canonical(&array).unwrap()));
        let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>([
            Some(vec![Some(1.0), None]),
            None,
        ]));
        assert!(Arc::ptr_eq(&list, &canonical(&list).unwrap()));
    }

    #[test]
    fn every_width_has_the_form() {
        let array: ArrayRef = Arc::new(Float32Array::from(vec![-0.0, -f32::NAN, 2.0]));
        let found = canonical(&array).unwrap();
        let bits: Vec<u32> =
            found.as_primitive::<Float32Type>().values().iter().map(|v| v.to_bits()).collect();
        assert_eq!(bits, [0, 0x7fc0_0000, 2.0_f32.to_bits()]);
        let half = cast(&array, &DataType::Float16).unwrap();
        let found = canonical(&half).unwrap();
        let bits: Vec<u16> =
            found.as_primitive::<Float16Type>().values().iter().map(|v| v.to_bits()).collect();
        assert_eq!(bits, [0, 0x7e00, 0x4000]);
    }

    #[test]
    fn floats_within_lists_and_structs_have_it_too_also_behind_an_offset() {
        let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>([
            Some(vec![Some(7.0)]),
            None,
            Some(vec![Some(-0.0), None, Some(SIGNED_NAN)]),
        ]));
        let field = Arc::new(Field::new("list", list.data_type().clone(), true));
        let whole: ArrayRef = Arc::new(StructArray::from(vec![(field, list)]));
        let found = canonical(&whole.slice(1, 2)).unwrap();
        let inner = found.as_struct().column(0).as_list::<i32>().value(1);
        assert_eq!(inner.null_count(), 1);
        assert_eq!((bits(&inner)[0], bits(&inner)[2]), (0, 0x7ff8_0000_0000_0000));
    }
}
