//! Results that are values of the group: mode, the n largest, and the value at another one's maximum.

use std::cmp::Ordering;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment, Sort};

use super::function::GatheredEntry;
use super::groups::Groups;
use crate::scalar::{Arguments, Takes};

const ANY: &[Arguments] = &[Arguments::Are(&[Takes::Any])];
const TWO: &[Arguments] = &[Arguments::Are(&[Takes::Any, Takes::Any])];
const ANY_AND_COUNT: &[Arguments] = &[Arguments::Are(&[Takes::Any, Takes::Whole])];
const TWO_AND_COUNT: &[Arguments] = &[Arguments::Are(&[Takes::Any, Takes::Any, Takes::Whole])];
pub(super) fn as_first(given: &[DataType]) -> DataType {
    given.first().cloned().unwrap_or(DataType::Null)
}

fn list_of_first(given: &[DataType]) -> DataType {
    DataType::new_list(as_first(given), true)
}

/// The most frequent value; among equals the first.
fn mode(groups: &Groups<'_>) -> Result<ArrayRef> {
    groups.pick(|range| {
        let counted = groups.counted(range)?;
        let better = |(row, count): &(usize, usize), (other, best): &(usize, usize)| {
            count.cmp(best).then(other.cmp(row))
        };
        Ok(counted.into_iter().max_by(better).map(|(row, _)| row))
    })
}

/// The row of the first column's value at the last column's first key; among equals the first.
fn at_first_key(groups: &Groups<'_>, wanted: Ordering) -> Result<ArrayRef> {
    let keys = groups.keys()?;
    groups.pick(|range| {
        Ok(range.reduce(
            |best, row| {
                if keys.row(row).cmp(&keys.row(best)) == wanted { row } else { best }
            },
        ))
    })
}

/// The first rows of a group by key.
fn first_rows(groups: &Groups<'_>, is_largest: bool) -> Result<ArrayRef> {
    let count = match groups.constants.first() {
        Some(ScalarValue::Int64(Some(count))) if (1..1_000_000).contains(count) => *count as usize,
        _ => return exec_err!("the number of values must be between 1 and 999999"),
    };
    let keys = groups.keys()?;
    groups.pick_lists(|range| {
        let mut rows: Vec<usize> = range.collect();
        rows.sort_by(|left, right| match is_largest {
            true => keys.row(*right).cmp(&keys.row(*left)),
            false => keys.row(*left).cmp(&keys.row(*right)),
        });
        rows.truncate(count);
        Ok((!rows.is_empty()).then_some(rows))
    })
}

/// The most frequent values.
fn most_frequent(groups: &Groups<'_>) -> Result<ArrayRef> {
    let count = match groups.constants.first() {
        Some(ScalarValue::Int64(Some(count))) if (1..1_000_000).contains(count) => *count as usize,
        _ => return exec_err!("the number of values must be between 1 and 999999"),
    };
    groups.pick_lists(|range| {
        let mut counted = groups.counted(range)?;
        counted.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(&right.0)));
        counted.truncate(count);
        Ok((!counted.is_empty()).then(|| counted.into_iter().map(|(row, _)| row).collect()))
    })
}

/// Rewrites `arg_max(x, y)` as the first x ordered by y, which keeps one row per group.
fn first_by(mut function: AggregateFunction, is_largest: bool, keeps_null: bool) -> Result<Expr> {
    let mut args = std::mem::take(&mut function.params.args).into_iter();
    let (Some(value), Some(key)) = (args.next(), args.next()) else {
        return exec_err!("expected two arguments");
    };
    let mut there = key.clone().is_not_null();
    if !keeps_null {
        there = value.clone().is_not_null().and(there);
    }
    let filter = match function.params.filter.take() {
        Some(filter) => filter.and(there),
        None => there,
    };
    function.params.filter = Some(Box::new(filter));
    function.params.order_by = vec![Sort::new(key, !is_largest, false)];
    function.params.args = vec![value];
    function.params.null_treatment = Some(NullTreatment::RespectNulls);
    function.params.distinct = false;
    function.func = first_value_udaf();
    Ok(Expr::AggregateFunction(function))
}

macro_rules! gathered {
    ($name:literal $aliases:expr, $arguments:literal, $takes:expr, $gathered:literal, $gives:expr,
        $about:literal, $example:literal, $finish:expr $(, $field:ident: $value:expr)*) => {
        GatheredEntry {
            name: $name,
            aliases: &$aliases,
            arguments: $arguments,
            about: $about,
            example: $example,
            takes: $takes,
            gathered: $gathered,
            gives: $gives,
            finish: $finish,
            $($field: $value,)*
            ..GatheredEntry::NONE
        }
    };
}
pub(super) use gathered;

pub(super) static ENTRIES: &[GatheredEntry] = &[
    gathered!("mode" [], "value", ANY, 1, as_first, "The value that is there most often.",
        "mode(city)", mode, within_group: true),
    gathered!("arg_max" ["argmax", "max_by"], "value, key", TWO, 2, as_first,
        "The value of the row with the largest key, of rows where neither is NULL.", "arg_max(name, price)",
        |groups| at_first_key(groups, Ordering::Greater),
        instead: Some(|function| first_by(function, true, false))),
    gathered!("arg_min" ["argmin", "min_by"], "value, key", TWO, 2, as_first,
        "The value of the row with the smallest key, of rows where neither is NULL.", "arg_min(name, price)",
        |groups| at_first_key(groups, Ordering::Less),
        instead: Some(|function| first_by(function, false, false))),
    gathered!("arg_max_null" [], "value, key", TWO, 2, as_first,
        "The value of the row with the largest key, NULL too.", "arg_max_null(name, price)",
        |groups| at_first_key(groups, Ordering::Greater), required: &[1],
        instead: Some(|function| first_by(function, true, true))),
    gathered!("arg_min_null" [], "value, key", TWO, 2, as_first,
        "The value of the row with the smallest key, NULL too.", "arg_min_null(name, price)",
        |groups| at_first_key(groups, Ordering::Less), required: &[1],
        instead: Some(|function| first_by(function, false, true))),
    gathered!("arg_max_n" [], "value, key, n", TWO_AND_COUNT, 2, list_of_first,
        "The values of the n rows with the largest keys; also as arg_max(value, key, n).",
        "arg_max(name, price, 3)", |groups| first_rows(groups, true)),
    gathered!("arg_min_n" [], "value, key, n", TWO_AND_COUNT, 2, list_of_first,
        "The values of the n rows with the smallest keys; also as arg_min(value, key, n).",
        "arg_min(name, price, 3)", |groups| first_rows(groups, false)),
    gathered!("max_n" [], "value, n", ANY_AND_COUNT, 1, list_of_first,
        "The n largest values; also as max(value, n).", "max(price, 3)", |groups| first_rows(groups, true)),
    gathered!("min_n" [], "value, n", ANY_AND_COUNT, 1, list_of_first,
        "The n smallest values; also as min(value, n).", "min(price, 3)", |groups| first_rows(groups, false)),
    gathered!("approx_top_k" [], "value, k", ANY_AND_COUNT, 1, list_of_first,
        "The k values that are there most often; exact.", "approx_top_k(city, 3)", most_frequent),
];
