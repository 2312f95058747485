//! PostgreSQL's array functions that DuckDB lacks, and functions that count NULL arguments.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array, new_null_array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options, interleave, take};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type};
use datafusion::common::{Result, ScalarValue, plan_err};

use crate::scalar::call::{Call, put};
use crate::scalar::entry::{Arguments, Entry, Takes, as_first, text};
use crate::scalar::text::texts::entry;

/// Maximum number of elements that array_fill creates in a batch.
const FILLED_MAX: usize = 1 << 24;

fn trim_array(call: &Call) -> Result<ArrayRef> {
    let (lists, counts) = (call.list(0), call.whole(1));
    let (mut places, mut lengths, mut there) = (vec![], vec![], vec![]);
    for row in 0..call.rows {
        there.push(!call.is_null(row));
        if call.is_null(row) {
            lengths.push(0);
            continue;
        }
        let (from, length) = (lists.value_offsets()[row], lists.value_length(row));
        let kept = i64::from(length).checked_sub(counts.value(row));
        let Some(kept) = kept.filter(|kept| (0..=i64::from(length)).contains(kept)) else {
            let why = format_args!("number of elements to trim must be between 0 and {length}");
            return call.fails_as("2202E", why);
        };
        places.extend((from..from + kept as i32).map(|at| at as u32));
        lengths.push(kept as usize);
    }
    let values = take(lists.values(), &UInt32Array::from(places), None)?;
    listed(call, values, lengths, there)
}

fn array_fill(call: &Call) -> Result<ArrayRef> {
    let sizes = call.list(1);
    let (mut places, mut lengths, mut there) = (vec![], vec![], vec![]);
    for row in 0..call.rows {
        // The value may be NULL.
        let is_there = sizes.is_valid(row);
        there.push(is_there);
        if !is_there {
            lengths.push(0);
            continue;
        }
        let size = cast(&sizes.value(row), &DataType::Int32)?;
        let size = size.as_primitive::<Int32Type>();
        let length = match size.len() {
            0 => 0,
            1 if size.is_null(0) => {
                return call.fails_as("22004", "dimension values cannot be null");
            }
            1 => usize::try_from(size.value(0)).unwrap_or(0),
            _ => return call.fails("only lists with one dimension are supported"),
        };
        if places.len() + length > FILLED_MAX {
            return call.fails_as("54000", "the list would be too large");
        }
        places.extend(std::iter::repeat_n(row as u32, length));
        lengths.push(length);
    }
    let values = take(&call.arrays[0], &UInt32Array::from(places), None)?;
    listed(call, values, lengths, there)
}

/// Lists with another value at a place; NULL fills the places between it and the end of a shorter list.
fn array_assigned(call: &Call) -> Result<ArrayRef> {
    let (lists, places) = (call.list(0), call.whole(1));
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let items = cast_with_options(&call.arrays[2], &lists.value_type(), &options)?;
    // Of the items, the new values, and a NULL.
    let null = new_null_array(&lists.value_type(), 1);
    let (mut picked, mut lengths) = (vec![], vec![]);
    for row in 0..call.rows {
        if places.is_null(row) {
            return call.fails_as("22004", "array subscript in assignment must not be null");
        }
        let Some(at) = usize::try_from(places.value(row)).ok().and_then(|at| at.checked_sub(1))
        else {
            return call.fails_as("0A000", "array subscripts in assignments begin with 1");
        };
        let (first, length) = match lists.is_valid(row) {
            true => (lists.value_offsets()[row] as usize, lists.value_length(row) as usize),
            false => (0, 0),
        };
        let filled = length.max(at.saturating_add(1));
        if picked.len().saturating_add(filled) > FILLED_MAX {
            return call.fails_as("54000", "the array would be too large");
        }
        picked.extend((0..filled).map(|place| match place {
            _ if place == at => (1, row),
            _ if place < length => (0, first + place),
            _ => (2, 0),
        }));
        lengths.push(filled);
    }
    let values = interleave(&[lists.values().as_ref(), items.as_ref(), null.as_ref()], &picked)?;
    listed(call, values, lengths, vec![true; call.rows])
}

/// Builds lists of these lengths from the values.
fn listed(
    call: &Call,
    values: ArrayRef,
    lengths: Vec<usize>,
    there: Vec<bool>,
) -> Result<ArrayRef> {
    let DataType::List(field) = &call.result else { return call.fails("expected a list") };
    let (offsets, nulls) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(there));
    Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, Some(nulls))?))
}

fn list_of_first(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    match given.first() {
        Some(first) => Ok(DataType::List(Arc::new(Field::new_list_field(first.clone(), true)))),
        None => plan_err!("an argument is missing"),
    }
}

fn integer(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(DataType::Int32)
}

/// Counts the arguments of a row that are NULL, or that are not.
fn count_nulls(call: &Call, null: bool) -> Result<ArrayRef> {
    let nulls: Vec<_> = call.arrays.iter().map(|array| array.logical_nulls()).collect();
    let is_null =
        |of: &Option<NullBuffer>, row: usize| of.as_ref().is_some_and(|of| of.is_null(row));
    let counts =
        (0..call.rows).map(|row| nulls.iter().filter(|of| is_null(of, row) == null).count() as i32);
    let counts: datafusion::arrow::array::Int32Array = counts.map(Some).collect();
    Ok(Arc::new(counts))
}

/// The lengths of an array by dimension: none without elements, as in PostgreSQL.
fn lengths(list: ArrayRef) -> Vec<usize> {
    let (mut lengths, mut list) = (vec![list.len()], list);
    loop {
        if list.is_empty() {
            return Vec::new();
        }
        let inner = match list.data_type() {
            DataType::List(_) if list.is_valid(0) => list.as_list::<i32>().value(0),
            _ => return lengths,
        };
        lengths.push(inner.len());
        list = inner;
    }
}

fn array_dims(call: &Call) -> Result<ArrayRef> {
    let lists = call.list(0);
    call.texts(|row, out| {
        let lengths = lengths(lists.value(row));
        for length in &lengths {
            put(out, format_args!("[1:{length}]"))?;
        }
        Ok(!lengths.is_empty())
    })
}

fn array_ndims(call: &Call) -> Result<ArrayRef> {
    let lists = call.list(0);
    call.plain::<Int32Type>(|row| {
        let count = lengths(lists.value(row)).len();
        Ok((count > 0).then_some(count as i32))
    })
}

/// The bound of a dimension by its length.
fn bound(call: &Call, of: impl Fn(usize) -> usize) -> Result<ArrayRef> {
    let (lists, dimensions) = (call.list(0), call.whole(1));
    call.plain::<Int32Type>(|row| {
        let dimension = usize::try_from(dimensions.value(row)).ok();
        let at = dimension.and_then(|dimension| dimension.checked_sub(1));
        let length = at.and_then(|at| lengths(lists.value(row)).get(at).copied());
        Ok(length.map(|length| of(length) as i32))
    })
}

const LIST_AND_DIMENSION: &[Arguments] = &[Arguments::Are(&[Takes::List, Takes::Whole])];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[
    entry!("trim_array" [], "list, count", &[Arguments::Are(&[Takes::List, Takes::Whole])], as_first,
        "A list without this many of its last elements.", "trim_array([1, 2, 3], 2) = [1]", trim_array),
    entry!("array_assigned" [], "array, place, value", &[Arguments::Are(&[Takes::List, Takes::Whole, Takes::Any])], as_first,
        "An array with another value at a place: UPDATE … SET a[2] = 5.", "array_assigned([1, 2], 2, 5) = [1, 5]",
        array_assigned),
    entry!("array_fill" [], "value, sizes", &[Arguments::Are(&[Takes::Any, Takes::List])], list_of_first,
        "A list of copies of a value, as many as the list of one size says.",
        "array_fill(7, [3]) = [7, 7, 7]", array_fill),
    entry!(
        "array_dims"["list_dims"],
        "array",
        &[Arguments::Are(&[Takes::List])],
        text,
        "The bounds of the dimensions of an array.",
        "array_dims([[1, 2], [3, 4]]) = '[1:2][1:2]'",
        array_dims
    ),
    entry!(
        "array_ndims"["list_ndims"],
        "array",
        &[Arguments::Are(&[Takes::List])],
        integer,
        "The number of dimensions of an array.",
        "array_ndims([[1, 2], [3, 4]]) = 2",
        array_ndims
    ),
    entry!("array_lower" [], "array, dimension", LIST_AND_DIMENSION, integer,
        "The number of the first element of a dimension: 1.", "array_lower([1, 2], 1) = 1", |call| bound(call, |_| 1)),
    entry!("array_upper" [], "array, dimension", LIST_AND_DIMENSION, integer,
        "The number of the last element of a dimension.", "array_upper([[1, 2, 3]], 2) = 3",
        |call| bound(call, |length| length)),
    entry!("num_nulls" [], "value, …", &[Arguments::More(&[Takes::Any], Takes::Any)], integer,
        "How many arguments are NULL.", "num_nulls(1, NULL, 2) = 1", |call| count_nulls(call, true)),
    entry!("num_nonnulls" [], "value, …", &[Arguments::More(&[Takes::Any], Takes::Any)], integer,
        "How many arguments are not NULL.", "num_nonnulls(1, NULL, 2) = 2", |call| count_nulls(call, false)),
]];
