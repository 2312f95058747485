//! The slow, readable reference aggregation.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};
use atoll_primitives::Part;
use atoll_primitives::aggregate::{Aggregate, Function, Query, quotient_type};

/// A value of a column; None for null.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    Int(i128),
    /// Bits, those of 0.0 for both zeros where it is a key.
    Float(u64),
    Text(String),
}

pub(super) type Row = Vec<Option<Cell>>;

/// Values of a row of an array, of whichever type.
pub(super) fn cell(array: &ArrayRef, row: usize) -> Option<Cell> {
    use DataType as T;
    fn int<P: ArrowPrimitiveType<Native: Into<i128>>>(array: &ArrayRef, row: usize) -> Cell {
        Cell::Int(array.as_primitive::<P>().value(row).into())
    }
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        T::Int8 => int::<Int8Type>(array, row),
        T::Int16 => int::<Int16Type>(array, row),
        T::Int32 => int::<Int32Type>(array, row),
        T::Int64 => int::<Int64Type>(array, row),
        T::UInt8 => int::<UInt8Type>(array, row),
        T::UInt16 => int::<UInt16Type>(array, row),
        T::UInt32 => int::<UInt32Type>(array, row),
        T::UInt64 => int::<UInt64Type>(array, row),
        T::Date32 => int::<Date32Type>(array, row),
        T::Date64 => int::<Date64Type>(array, row),
        T::Timestamp(TimeUnit::Microsecond, _) => int::<TimestampMicrosecondType>(array, row),
        T::Decimal128(..) => int::<Decimal128Type>(array, row),
        T::Float32 => {
            Cell::Float(f64::from(array.as_primitive::<Float32Type>().value(row)).to_bits())
        }
        T::Float64 => Cell::Float(array.as_primitive::<Float64Type>().value(row).to_bits()),
        T::Boolean => Cell::Int(array.as_boolean().value(row).into()),
        T::Utf8 => Cell::Text(array.as_string::<i32>().value(row).to_owned()),
        T::Utf8View => Cell::Text(array.as_string_view().value(row).to_owned()),
        T::BinaryView => bytes(array.as_binary_view().value(row)),
        T::Binary => bytes(array.as_binary::<i32>().value(row)),
        T::LargeBinary => bytes(array.as_binary::<i64>().value(row)),
        T::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row).to_owned()),
        T::Dictionary(..) => {
            let array = array.as_dictionary::<Int32Type>();
            return cell(array.values(), array.keys().value(row) as usize);
        }
        other => panic!("tests have no {other}"),
    })
}

fn bytes(value: &[u8]) -> Cell {
    Cell::Text(value.escape_ascii().to_string())
}

/// The group that a cell belongs to.
fn key(cell: Option<Cell>) -> Option<Cell> {
    match cell {
        Some(Cell::Float(bits)) if f64::from_bits(bits) == 0.0 => Some(Cell::Float(0)),
        cell => cell,
    }
}

/// All groups by key; None if a result overflows.
pub(super) fn group(query: &Query, parts: &[Part]) -> Option<BTreeMap<Row, Row>> {
    let mut groups: BTreeMap<Row, Vec<Row>> = BTreeMap::new();
    let mut types = Vec::new();
    for part in parts {
        let columns = part.rows.columns();
        types = columns.iter().map(|column| column.data_type().clone()).collect();
        for row in 0..part.rows.num_rows() {
            let of = query.keys.iter().map(|at| key(cell(&columns[*at], row))).collect();
            let values = columns.iter().map(|column| cell(column, row)).collect();
            groups.entry(of).or_default().push(values);
        }
    }
    let result = |(key, rows): (Row, Vec<Row>)| {
        let of = |aggregate: &Aggregate| one(*aggregate, &rows, &types);
        Some((key, query.aggregates.iter().map(of).collect::<Option<Row>>()?))
    };
    groups.into_iter().map(result).collect()
}

/// One aggregate of a group's rows; None if it overflows.
fn one(aggregate: Aggregate, rows: &[Row], types: &[DataType]) -> Option<Option<Cell>> {
    if aggregate.function == Function::CountRows {
        return Some(Some(Cell::Int(rows.len() as i128)));
    }
    let of = &types[aggregate.column];
    let values: Vec<Cell> = rows.iter().filter_map(|row| row[aggregate.column].clone()).collect();
    if aggregate.function == Function::Count {
        return Some(Some(Cell::Int(values.len() as i128)));
    }
    if values.is_empty() {
        return Some(None);
    }
    let ints = || values.iter().map(|cell| if let Cell::Int(int) = cell { *int } else { panic!() });
    let floats = || {
        values
            .iter()
            .map(|cell| if let Cell::Float(bits) = cell { f64::from_bits(*bits) } else { panic!() })
    };
    let is_float = matches!(values[0], Cell::Float(_));
    let count = values.len() as i128;
    let float = |value: f64| Cell::Float(value.to_bits());
    let cell = match aggregate.function {
        Function::Sum if is_float => float(floats().sum()),
        Function::Avg if is_float => float(floats().sum::<f64>() / count as f64),
        Function::Min if is_float => float(floats().min_by(f64::total_cmp)?),
        Function::Max if is_float => float(floats().max_by(f64::total_cmp)?),
        Function::Min => Cell::Int(ints().min()?),
        Function::Max => Cell::Int(ints().max()?),
        Function::Avg if of.is_integer() => float(ints().sum::<i128>() as f64 / count as f64),
        Function::Avg => Cell::Int(mean(exact(ints()), count, of)?),
        _ => Cell::Int(fits(exact(ints()).to_i128()?, of)?),
    };
    Some(Some(cell))
}

/// The sum of any number of integers.
fn exact(values: impl Iterator<Item = i128>) -> i256 {
    values.map(i256::from_i128).fold(i256::ZERO, i256::wrapping_add)
}

/// The mean of decimals, rounded half away from zero, if its result type holds it.
fn mean(sum: i256, count: i128, of: &DataType) -> Option<i128> {
    let DataType::Decimal128(digits, scale) = of else { panic!("{of} is not a decimal") };
    let (digits, more) = quotient_type(38, (*digits, *scale), (1, 0));
    let factor = 10_i128.pow(u32::from((more - scale).unsigned_abs()));
    let [count, factor, two] = [count, factor, 2].map(i256::from_i128);
    let (whole, rest) = (sum / count, sum % count * factor);
    let half_up = (two * rest.wrapping_abs() + count) / (two * count) * rest.signum();
    let mean = whole.checked_mul(factor)?.checked_add(half_up)?.to_i128()?;
    (mean.unsigned_abs() < 10_u128.pow(digits.into())).then_some(mean)
}

/// A sum of values of a type, if its result type holds it.
fn fits(value: i128, of: &DataType) -> Option<i128> {
    let inside = match of {
        DataType::Decimal128(digits, _) => {
            value.unsigned_abs() < 10_u128.pow((u32::from(*digits) + 10).min(38))
        }
        of if of.is_unsigned_integer() => u64::try_from(value).is_ok(),
        _ => i64::try_from(value).is_ok(),
    };
    inside.then_some(value)
}

/// The rows of the result by key; each key occurs once.
pub(super) fn rows(keys: usize, batches: &[RecordBatch]) -> BTreeMap<Row, Row> {
    let mut all = BTreeMap::new();
    for batch in batches {
        let columns = batch.columns();
        for row in 0..batch.num_rows() {
            let of: Row = columns[..keys].iter().map(|column| key(cell(column, row))).collect();
            let values = columns[keys..].iter().map(|column| cell(column, row)).collect();
            assert!(all.insert(of.clone(), values).is_none(), "{of:?} comes twice");
        }
    }
    all
}

/// Asserts that two results are equal, except for the rounding of float sums.
#[track_caller]
pub(super) fn assert_same(found: &BTreeMap<Row, Row>, expected: &BTreeMap<Row, Row>, what: &str) {
    assert_eq!(found.len(), expected.len(), "groups: {what}");
    for ((found_key, found), (key, expected)) in found.iter().zip(expected) {
        assert_eq!(found_key, key, "{what}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(is_same(found, expected), "{key:?}: {found:?}, {expected:?} expected: {what}");
        }
    }
}

fn is_same(found: &Option<Cell>, expected: &Option<Cell>) -> bool {
    match (found, expected) {
        (Some(Cell::Float(found)), Some(Cell::Float(expected))) => {
            let (found, expected) = (f64::from_bits(*found), f64::from_bits(*expected));
            let both_nan = found.is_nan() && expected.is_nan();
            both_nan
                || found == expected
                || (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
        }
        (found, expected) => found == expected,
    }
}
