//! PostgreSQL's functions that search lists for an element: `array_position`, `array_remove` and `array_replace`.
//!
//! DataFusion's remove and replace the first element only, return NULL if the element is NULL, and fail if the search
//! starts after the last element.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Int32Array, ListArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{SortOptions, cast, concat, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::Rows;
use datafusion::common::{Result, ScalarValue, plan_err};

use crate::common_type::common;
use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, as_first};
use crate::scalar::text::texts::entry;
use crate::temporal::measured_rows;

/// The elements of lists and a value for each list, as keys that compare like SQL values; NULL equals NULL.
struct Search<'a> {
    list: &'a ListArray,
    elements: Rows,
    wanted: Rows,
}

impl<'a> Search<'a> {
    fn new(call: &'a Call) -> Result<Self> {
        let (list, wanted) = (call.list(0), &call.arrays[1]);
        let of = common(&list.value_type(), wanted.data_type())?;
        let keys = |values: &ArrayRef| -> Result<Rows> {
            Ok(measured_rows(&cast(values, &of)?, SortOptions::default())?)
        };
        Ok(Self { list, elements: keys(list.values())?, wanted: keys(wanted)? })
    }

    fn range(&self, row: usize) -> Range<usize> {
        self.list.value_offsets()[row] as usize..self.list.value_offsets()[row + 1] as usize
    }

    /// Whether an element is the one that the row searches.
    fn is_found(&self, at: usize, row: usize) -> bool {
        self.elements.row(at) == self.wanted.row(row)
    }

    /// Builds lists of the values at these places; a NULL list stays NULL.
    fn lists(
        &self,
        call: &Call,
        values: &ArrayRef,
        places: impl Fn(usize) -> Vec<usize>,
    ) -> Result<ArrayRef> {
        let DataType::List(field) = &call.result else { return call.fails("expected a list") };
        let (mut all, mut lengths) = (Vec::new(), Vec::with_capacity(call.rows));
        for row in 0..call.rows {
            let of_row = if self.list.is_valid(row) { places(row) } else { Vec::new() };
            lengths.push(of_row.len());
            all.extend(of_row.into_iter().map(|at| at as u32));
        }
        let values = take(values, &UInt32Array::from(all), None)?;
        let nulls = self.list.nulls().map(|nulls| NullBuffer::new(nulls.inner().clone()));
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, nulls)?))
    }
}

fn array_position(call: &Call) -> Result<ArrayRef> {
    let search = Search::new(call)?;
    let start = |row: usize| match call.count() > 2 {
        true if call.whole(2).is_null(row) => {
            call.fails_as("22004", "initial position must not be null")
        }
        true => Ok(usize::try_from(call.whole(2).value(row)).unwrap_or(0).saturating_sub(1)),
        false => Ok(0),
    };
    let number = |row: usize| {
        if search.list.is_null(row) {
            return Ok(None);
        }
        let (range, before) = (search.range(row), start(row)?);
        let found = range.clone().skip(before).find(|at| search.is_found(*at, row));
        Ok(found.map(|at| (at - range.start + 1) as i32))
    };
    Ok(Arc::new((0..call.rows).map(number).collect::<Result<Int32Array>>()?))
}

fn array_remove(call: &Call) -> Result<ArrayRef> {
    let search = Search::new(call)?;
    search.lists(call, search.list.values(), |row| {
        search.range(row).filter(|at| !search.is_found(*at, row)).collect()
    })
}

fn array_replace(call: &Call) -> Result<ArrayRef> {
    let DataType::List(item) = &call.result else { return call.fails("expected a list") };
    let search = Search::new(call)?;
    let old = cast(search.list.values(), item.data_type())?;
    let new = cast(&call.arrays[2], item.data_type())?;
    let values = concat(&[old.as_ref(), new.as_ref()])?;
    search.lists(call, &values, |row| {
        let place = |at| if search.is_found(at, row) { old.len() + row } else { at };
        search.range(row).map(place).collect()
    })
}

/// Lists of the common type of the elements and their replacement.
fn replaced(given: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    match given {
        [DataType::List(item), _, new] if item.data_type() != new => {
            Ok(DataType::new_list(common(item.data_type(), new)?, true))
        }
        [_, _, _] => as_first(given, constants),
        _ => plan_err!("array_replace takes a list and two elements"),
    }
}

const LIST_AND_ELEMENT: &[Arguments] = &[Arguments::Are(&[Takes::List, Takes::Any])];
const POSITION: &[Arguments] = &[
    Arguments::Are(&[Takes::List, Takes::Any]),
    Arguments::Are(&[Takes::List, Takes::Any, Takes::Whole]),
];
const REPLACE: &[Arguments] = &[Arguments::Are(&[Takes::List, Takes::Any, Takes::Any])];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[
    entry!(
        "array_position"["list_position", "array_indexof", "list_indexof"],
        "list, element[, start]",
        POSITION,
        |_, _| Ok(DataType::Int32),
        "The number of the first element that is equal, or NULL; NULL finds NULL.",
        "array_position([5, 6, 5], 5, 2) = 3",
        array_position
    ),
    entry!(
        "array_remove"["list_remove"],
        "list, element",
        LIST_AND_ELEMENT,
        as_first,
        "A list without the elements that are equal; NULL removes NULLs.",
        "array_remove([1, 2, 1], 1) = [2]",
        array_remove
    ),
    entry!(
        "array_replace"["list_replace"],
        "list, element, new element",
        REPLACE,
        replaced,
        "A list with a new element in the place of each that is equal; NULL replaces NULLs.",
        "array_replace([1, 2, 1], 1, 9) = [9, 2, 9]",
        array_replace
    ),
]];
