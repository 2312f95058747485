//! Seeded columns of all types and spreads.

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::{Float32Type, Float64Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Date64Array, Decimal128Array, Int8Array,
    Int16Array, Int32Array, Int64Array, PrimitiveArray, RecordBatch, StringArray, StringViewArray,
    TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Distribution of keys over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    Uniform(u64),
    /// Zipf's law with exponent 1 over this many keys.
    Zipf(u64),
    /// Nine rows in ten have one key.
    Hot(u64),
    Distinct,
    Sorted(u64),
    Reversed(u64),
}

/// Numbers of keys, one for each row.
pub(super) fn numbers(seed: u64, rows: usize, spread: Spread) -> Vec<u64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let number = |row: u64| match spread {
        Spread::Uniform(keys) => rng.random_range(0..keys),
        Spread::Zipf(keys) => ((keys as f64).powf(rng.random::<f64>()) as u64).min(keys) - 1,
        Spread::Hot(_) if rng.random_bool(0.9) => 0,
        Spread::Hot(keys) => rng.random_range(0..keys),
        Spread::Distinct => row,
        Spread::Sorted(keys) => row * keys / rows as u64,
        Spread::Reversed(keys) => keys - row * keys / rows as u64,
    };
    (0..rows as u64).map(number).collect()
}

/// Scatters numbers; equal numbers stay equal.
pub(super) fn sparse(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// Replaces some numbers by nulls.
pub(super) fn with_nulls(seed: u64, numbers: &[u64], share: f64) -> Vec<Option<u64>> {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed);
    numbers.iter().map(|number| (!rng.random_bool(share)).then_some(*number)).collect()
}

/// All types of values, decimals of few and of many digits.
pub(super) fn value_types() -> Vec<DataType> {
    use DataType as T;
    vec![
        T::Int8,
        T::Int16,
        T::Int32,
        T::Int64,
        T::UInt8,
        T::UInt16,
        T::UInt32,
        T::UInt64,
        T::Decimal128(9, 2),
        T::Decimal128(38, 10),
        T::Float32,
        T::Float64,
        T::Date32,
        T::Date64,
        T::Timestamp(TimeUnit::Microsecond, None),
    ]
}

/// A column of these numbers: cut to the type's width, floats with NaN, infinities and both zeros.
pub(super) fn column(data_type: &DataType, numbers: &[Option<u64>]) -> ArrayRef {
    use DataType as T;
    fn all<A: Array + FromIterator<Option<N>> + 'static, N>(
        numbers: &[Option<u64>],
        with: impl Fn(u64) -> N,
    ) -> ArrayRef {
        Arc::new(numbers.iter().map(|number| number.map(&with)).collect::<A>())
    }
    match data_type {
        T::Int8 => all::<Int8Array, _>(numbers, |it| it as i8),
        T::Int16 => all::<Int16Array, _>(numbers, |it| it as i16),
        T::Int32 => all::<Int32Array, _>(numbers, |it| it as i32),
        T::Int64 => all::<Int64Array, _>(numbers, |it| it as i64),
        T::UInt8 => all::<UInt8Array, _>(numbers, |it| it as u8),
        T::UInt16 => all::<UInt16Array, _>(numbers, |it| it as u16),
        T::UInt32 => all::<UInt32Array, _>(numbers, |it| it as u32),
        T::UInt64 => all::<UInt64Array, _>(numbers, |it| it),
        T::Date32 => all::<Date32Array, _>(numbers, |it| it as i32),
        T::Date64 => all::<Date64Array, _>(numbers, |it| it as i64),
        T::Boolean => all::<BooleanArray, _>(numbers, |it| it % 2 == 1),
        T::Float32 => all::<PrimitiveArray<Float32Type>, _>(numbers, |it| float(it) as f32),
        T::Float64 => all::<PrimitiveArray<Float64Type>, _>(numbers, float),
        T::Timestamp(..) => all::<TimestampMicrosecondArray, _>(numbers, |it| it as i64),
        T::Utf8 => all::<StringArray, _>(numbers, text),
        T::Utf8View => all::<StringViewArray, _>(numbers, text),
        T::Dictionary(..) => {
            let mut builder = StringDictionaryBuilder::<Int32Type>::new();
            numbers.iter().for_each(|number| builder.append_option(number.map(text)));
            Arc::new(builder.finish())
        }
        T::Decimal128(digits, scale) => {
            let limit = 10_i128.pow(u32::from(*digits)) - 1;
            let wide = |it: u64| i128::from(it as i64) * if *digits > 18 { 1 << 33 } else { 1 };
            let values: Decimal128Array =
                numbers.iter().map(|number| number.map(|it| wide(it) % limit)).collect();
            Arc::new(
                values.with_precision_and_scale(*digits, *scale).expect("digits that there are"),
            )
        }
        other => panic!("tests have no {other}"),
    }
}

fn text(number: u64) -> String {
    match number % 3 {
        0 => format!("{number}"),
        1 => format!("the number {number}, in a string that is longer"),
        _ => String::new(),
    }
}

fn float(number: u64) -> f64 {
    match number % 16 {
        0 => f64::NAN,
        1 => -0.0,
        2 => 0.0,
        3 => f64::from_bits(0xfff8_0000_0000_0001),
        4 if number.is_multiple_of(5) => f64::INFINITY,
        _ => (number % 1000) as f64 / 8.0 - 50.0,
    }
}

/// Rows of these columns, named by position.
pub(super) fn batch(columns: Vec<ArrayRef>) -> (SchemaRef, RecordBatch) {
    let field = |(at, column): (usize, &ArrayRef)| {
        Field::new(format!("c{at}"), column.data_type().clone(), true)
    };
    let schema = Arc::new(Schema::new(columns.iter().enumerate().map(field).collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns are as long");
    (schema, batch)
}
