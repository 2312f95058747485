//! Lists: selecting, sorting and comparing elements.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, ListArray, UInt32Array, UInt64Array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{SortOptions, cast, take};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use datafusion::arrow::row::Rows;
use datafusion::common::{Result, ScalarValue, plan_err};

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, as_first, double};
use crate::scalar::text::texts::entry;
use crate::temporal::measured_rows;

const LIST: &[Arguments] = &[Arguments::Are(&[Takes::List])];
const TWO_LISTS: &[Arguments] = &[Arguments::Are(&[Takes::List, Takes::List])];
const SORT: &[Arguments] = &[
    Arguments::Are(&[Takes::List]),
    Arguments::Are(&[Takes::List, Takes::Text]),
    Arguments::Are(&[Takes::List, Takes::Text, Takes::Text]),
];
const TWO_VECTORS: &[Arguments] = &[Arguments::Are(&[Takes::Doubles, Takes::Doubles])];

fn range(list: &ListArray, row: usize) -> Range<usize> {
    list.value_offsets()[row] as usize..list.value_offsets()[row + 1] as usize
}

/// Converts elements to keys that compare like SQL values.
fn keys(values: &ArrayRef, options: SortOptions) -> Result<Rows> {
    Ok(measured_rows(values, options)?)
}

/// Builds lists from the elements selected for each row.
fn picked(
    call: &Call,
    values: &ArrayRef,
    pick: impl Fn(usize) -> Result<Vec<usize>>,
) -> Result<ArrayRef> {
    let (mut places, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..call.rows {
        let of_row = if call.is_null(row) { vec![] } else { pick(row)? };
        valid.push(!call.is_null(row));
        lengths.push(of_row.len());
        places.extend(of_row.into_iter().map(|at| (at != usize::MAX).then_some(at as u32)));
    }
    let values = take(values, &UInt32Array::from(places), None)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let (offsets, valid) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
    let lists = ListArray::try_new(field, offsets, values, Some(valid))?;
    Ok(cast(&lists, &call.result)?)
}

/// Reads ASC or DESC, and NULLS FIRST or NULLS LAST, from a row's arguments.
fn order(call: &Call, row: usize, reversed: bool) -> Result<SortOptions> {
    let said = |at: usize| {
        (at < call.count()).then(|| call.text(at).value(row).trim().to_ascii_uppercase())
    };
    let (first, second) = match reversed {
        true => (None, said(1)),
        false => (said(1), said(2)),
    };
    let descending = match first.as_deref() {
        None => reversed,
        Some("ASC" | "ASCENDING" | "DEFAULT") => false,
        Some("DESC" | "DESCENDING") => true,
        Some(other) => return call.fails(format_args!("'{other}' is neither ASC nor DESC")),
    };
    let nulls_first = match second.as_deref() {
        None | Some("NULLS LAST" | "LAST" | "DEFAULT") => false,
        Some("NULLS FIRST" | "FIRST") => true,
        Some(other) => {
            return call.fails(format_args!("'{other}' is neither NULLS FIRST nor NULLS LAST"));
        }
    };
    Ok(SortOptions { descending, nulls_first })
}

/// Sorts the indices of a row's elements, by keys that are built once for each order.
fn sorted(call: &Call, reversed: bool) -> Result<impl Fn(usize) -> Result<Vec<usize>>> {
    let list = call.list(0);
    let mut orders: HashMap<(bool, bool), Rows> = HashMap::new();
    let mut of_rows = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let options =
            if call.is_null(row) { SortOptions::default() } else { order(call, row, reversed)? };
        let order = (options.descending, options.nulls_first);
        if !call.is_null(row) && !orders.contains_key(&order) {
            orders.insert(order, keys(list.values(), options)?);
        }
        of_rows.push(order);
    }
    Ok(move |row: usize| {
        let mut places: Vec<usize> = range(list, row).collect();
        if let Some(keys) = orders.get(&of_rows[row]) {
            places.sort_by(|left, right| keys.row(*left).cmp(&keys.row(*right)));
        }
        Ok(places)
    })
}

fn list_sort(call: &Call, reversed: bool) -> Result<ArrayRef> {
    picked(call, call.list(0).values(), sorted(call, reversed)?)
}

/// Returns the sorted element numbers.
fn grade_up(call: &Call) -> Result<ArrayRef> {
    let (list, sorted) = (call.list(0), sorted(call, false)?);
    let numbers: Vec<i64> = (0..call.rows)
        .flat_map(|row| (1..=range(list, row).len() as i64).collect::<Vec<_>>())
        .collect();
    let starts: Vec<usize> = (0..call.rows)
        .scan(0, |at, row| {
            let start = *at;
            *at += range(list, row).len();
            Some(start)
        })
        .collect();
    let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
    picked(call, &numbers, |row| {
        let from = range(list, row).start;
        Ok(sorted(row)?.into_iter().map(|place| starts[row] + place - from).collect())
    })
}

/// Returns the indices of a row's distinct non-null elements, in order.
fn distinct(list: &ListArray, keys: &Rows, row: usize) -> Vec<usize> {
    let mut seen = HashSet::new();
    let places = range(list, row).filter(|at| list.values().is_valid(*at));
    places.filter(|at| seen.insert(keys.row(*at))).collect()
}

fn list_distinct(call: &Call) -> Result<ArrayRef> {
    let list = call.list(0);
    let keys = keys(list.values(), SortOptions::default())?;
    picked(call, list.values(), |row| Ok(distinct(list, &keys, row)))
}

fn list_unique(call: &Call) -> Result<ArrayRef> {
    let list = call.list(0);
    let keys = keys(list.values(), SortOptions::default())?;
    let counts = (0..call.rows)
        .map(|row| (!call.is_null(row)).then(|| distinct(list, &keys, row).len() as u64));
    Ok(Arc::new(counts.collect::<UInt64Array>()))
}

fn list_intersect(call: &Call) -> Result<ArrayRef> {
    let (left, right) = (call.list(0), call.list(1));
    let others = cast(right.values(), left.values().data_type())?;
    let keys_of = |values: &ArrayRef| keys(values, SortOptions::default());
    let (own, other) = (keys_of(left.values())?, keys_of(&others)?);
    picked(call, left.values(), |row| {
        let there: HashSet<_> = range(right, row).map(|at| other.row(at)).collect();
        let both = distinct(left, &own, row);
        Ok(both.into_iter().filter(|at| there.contains(&own.row(*at))).collect())
    })
}

fn list_where(call: &Call) -> Result<ArrayRef> {
    let (list, flags) = (call.list(0), call.list(1));
    let values = cast(flags.values(), &DataType::Boolean)?;
    let wanted = values.as_boolean();
    picked(call, list.values(), |row| {
        let flags = range(flags, row);
        if flags.clone().any(|at| wanted.is_null(at)) {
            return call.fails("NULL among the flags");
        }
        Ok(range(list, row)
            .zip(flags)
            .filter(|(_, at)| wanted.value(*at))
            .map(|(at, _)| at)
            .collect())
    })
}

fn list_select(call: &Call) -> Result<ArrayRef> {
    let (list, numbers) = (call.list(0), call.list(1));
    let values = cast(numbers.values(), &DataType::Int64)?;
    let wanted = values.as_primitive::<Int64Type>();
    picked(call, list.values(), |row| {
        let (elements, numbers) = (range(list, row), range(numbers, row));
        if numbers.clone().any(|at| wanted.is_null(at)) {
            return call.fails("NULL among the numbers");
        }
        let count = elements.len() as i64;
        let place = |at: usize| match wanted.value(at) {
            number if (1..=count).contains(&number) => elements.start + number as usize - 1,
            // NULL.
            _ => usize::MAX,
        };
        Ok(numbers.map(place).collect())
    })
}

fn cosine_similarity(call: &Call) -> Result<ArrayRef> {
    let (left, right) = (call.list(0), call.list(1));
    let (first, second) =
        (left.values().as_primitive::<Float64Type>(), right.values().as_primitive::<Float64Type>());
    call.doubles(|row| {
        let (own, other) = (range(left, row), range(right, row));
        if own.len() != other.len() {
            return call.fails("the lists must be of the same length");
        }
        let (mut both, mut squares, mut others) = (0.0, 0.0, 0.0);
        for (at, other) in own.zip(other) {
            if first.is_null(at) || second.is_null(other) {
                return call.fails("NULL in a list");
            }
            let (one, two) = (first.value(at), second.value(other));
            both += one * two;
            squares += one * one;
            others += two * two;
        }
        let size = squares.sqrt() * others.sqrt();
        Ok(Some(if size == 0.0 { f64::NAN } else { (both / size).clamp(-1.0, 1.0) }))
    })
}

/// Whether a text contains another one, or a list contains an element.
fn contains(call: &Call) -> Result<ArrayRef> {
    if let DataType::Utf8 = call.arrays[0].data_type() {
        let found = datafusion::arrow::compute::contains(call.text(0), call.text(1))?;
        return Ok(Arc::new(found));
    }
    let list = call.list(0);
    let wanted = cast(&call.arrays[1], list.values().data_type())?;
    let (own, wanted) =
        (keys(list.values(), SortOptions::default())?, keys(&wanted, SortOptions::default())?);
    call.flags(|row| Ok(Some(range(list, row).any(|at| own.row(at) == wanted.row(row)))))
}

fn same_item(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    match given.first() {
        Some(list @ DataType::List(_)) => Ok(list.clone()),
        _ => plan_err!("expected a list"),
    }
}

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[
    entry!(
        "list_sort"["array_sort"],
        "list[, order][, nulls]",
        SORT,
        as_first,
        "The elements in their order: 'ASC' or 'DESC', 'NULLS LAST' or 'NULLS FIRST'.",
        "list_sort([3, NULL, 1], 'DESC') = [3, 1, NULL]",
        |call| list_sort(call, false)
    ),
    entry!(
        "list_reverse_sort"["array_reverse_sort"],
        "list[, nulls]",
        &[Arguments::Are(&[Takes::List]), Arguments::Are(&[Takes::List, Takes::Text])],
        as_first,
        "The elements from the largest on.",
        "list_reverse_sort([1, 3]) = [3, 1]",
        |call| list_sort(call, true)
    ),
    entry!("list_grade_up" ["array_grade_up", "grade_up"], "list[, order][, nulls]", SORT,
        |_, _| Ok(DataType::new_list(DataType::Int64, true)),
        "The numbers of the elements in their order.", "list_grade_up([30, 10, 20]) = [2, 3, 1]", grade_up),
    entry!(
        "list_distinct"["array_distinct"],
        "list",
        LIST,
        as_first,
        "The elements that are not NULL, each once.",
        "list_distinct([1, 2, 1]) = [1, 2]",
        list_distinct
    ),
    entry!(
        "list_unique"["array_unique"],
        "list",
        LIST,
        |_, _| Ok(DataType::UInt64),
        "How many different elements there are that are not NULL.",
        "list_unique([1, 2, 1]) = 2",
        list_unique
    ),
    entry!(
        "list_intersect"["array_intersect"],
        "list, list",
        TWO_LISTS,
        same_item,
        "The elements that both lists have, each once, in the order of the first.",
        "list_intersect([1, 2, 3], [3, 2]) = [2, 3]",
        list_intersect
    ),
    entry!(
        "list_where"["array_where"],
        "list, flags",
        TWO_LISTS,
        same_item,
        "The elements at whose place a list of booleans is true.",
        "list_where([10, 20], [false, true]) = [20]",
        list_where
    ),
    entry!(
        "list_select"["array_select"],
        "list, numbers",
        TWO_LISTS,
        same_item,
        "The elements of these numbers.",
        "list_select([10, 20, 30], [3, 1]) = [30, 10]",
        list_select
    ),
    entry!(
        "contains" [],
        "text, part or list, element",
        &[Arguments::Are(&[Takes::Text, Takes::Text]), Arguments::Are(&[Takes::List, Takes::Any])],
        crate::scalar::entry::flag,
        "Whether a text has another one in it, or a list an element.",
        "contains([1, 2], 2)",
        contains
    ),
    entry!(
        "list_cosine_similarity"["array_cosine_similarity"],
        "list, list",
        TWO_VECTORS,
        double,
        "The cosine of the angle between two vectors.",
        "list_cosine_similarity([1.0], [2.0]) = 1",
        cosine_similarity
    ),
]];
