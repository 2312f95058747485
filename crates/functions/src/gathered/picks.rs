//! Results that are values of the group: mode, quantiles, the n largest, the value at the largest other.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};
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
const QUANTILE: &[Arguments] = &[
    Arguments::Are(&[Takes::Any, Takes::Double]),
    Arguments::Are(&[Takes::Any, Takes::Doubles]),
    Arguments::Are(&[Takes::Any]),
];

fn as_first(given: &[DataType]) -> DataType {
    given.first().cloned().unwrap_or(DataType::Null)
}

fn list_of_first(given: &[DataType]) -> DataType {
    DataType::new_list(as_first(given), true)
}

/// A list where the second argument is one.
fn as_asked(given: &[DataType], one: DataType) -> DataType {
    match given.get(1) {
        Some(DataType::List(_)) => DataType::new_list(one, true),
        _ => one,
    }
}

/// The value that is there most often, the first of them that came.
fn mode(groups: &Groups<'_>) -> Result<ArrayRef> {
    groups.pick(|range| {
        let counted = groups.counted(range)?;
        let better = |(row, count): &(usize, usize), (other, best): &(usize, usize)| {
            count.cmp(best).then(other.cmp(row))
        };
        Ok(counted.into_iter().max_by(better).map(|(row, _)| row))
    })
}

/// The row of the first column's value at the last column's first key; the first that came.
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

/// The first rows of a group by their keys.
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

/// The values that are there most often.
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

/// The shares that quantiles are asked for, and whether there is a list of them.
fn shares(groups: &Groups<'_>) -> Result<(Vec<f64>, bool)> {
    let (shares, is_list) = match groups.constants.first() {
        None => (vec![0.5], false),
        Some(ScalarValue::Float64(Some(share))) => (vec![*share], false),
        Some(ScalarValue::List(list)) if list.len() == 1 && list.is_valid(0) => {
            let list = list.value(0);
            let list = list.as_primitive::<Float64Type>();
            (list.iter().map(|share| share.unwrap_or(f64::NAN)).collect(), true)
        }
        _ => (vec![f64::NAN], false),
    };
    match shares.iter().find(|share| !(-1.0..=1.0).contains(*share)) {
        Some(_) => exec_err!("a quantile must be between 0 and 1, or -1 and 0 from the largest on"),
        None => Ok((shares, is_list)),
    }
}

/// The place of a discrete quantile among so many values.
fn place(share: f64, count: usize) -> usize {
    let from_largest = share.is_sign_negative();
    let share = share.abs();
    // As DuckDB: the first value whose share of all is not below the quantile.
    let floor = (count as f64 - share * count as f64).floor() as usize;
    let at = count.saturating_sub(floor).max(1) - 1;
    if from_largest { count - 1 - at } else { at }
}

fn quantile_disc(groups: &Groups<'_>) -> Result<ArrayRef> {
    let (shares, is_list) = shares(groups)?;
    let places = |range: Range<usize>| -> Result<Option<Vec<usize>>> {
        let mut rows: Vec<usize> = range.collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let count = rows.len();
        let picked = shares.iter().map(|share| groups.row_at(&mut rows, place(*share, count)));
        picked.collect::<Result<_>>().map(Some)
    };
    match is_list {
        true => groups.pick_lists(places),
        false => groups.pick(|range| Ok(places(range)?.and_then(|rows| rows.first().copied()))),
    }
}

/// What is between the values on both sides of a quantile, as numbers of the type in which that is computed.
fn quantile_cont(groups: &Groups<'_>) -> Result<ArrayRef> {
    let (shares, is_list) = shares(groups)?;
    let item = match groups.result {
        DataType::List(item) => item.data_type(),
        one => one,
    };
    let is_moment = matches!(item, DataType::Timestamp(..));
    let values = match is_moment {
        true => cast(&cast(&groups.columns[0], item)?, &DataType::Int64)?,
        false => cast(&groups.columns[0], &DataType::Float64)?,
    };
    let mut results = ScalarResults::new(item, is_list);
    for range in groups.ranges() {
        let values = values.slice(range.start, range.len());
        let found = match (values.is_empty(), is_moment) {
            (true, _) => None,
            (false, true) => {
                let mut moments = values.as_primitive::<Int64Type>().values().to_vec();
                let mut between = |share: &f64| {
                    let (low, high, part) =
                        neighbours(&mut moments, *share, groups.descending, i64::cmp);
                    let distance = high as f64 - low as f64;
                    Between::Moment(low.saturating_add((distance * part) as i64))
                };
                Some(shares.iter().map(&mut between).collect())
            }
            (false, false) => {
                let mut numbers = values.as_primitive::<Float64Type>().values().to_vec();
                let mut between = |share: &f64| {
                    let (low, high, part) =
                        neighbours(&mut numbers, *share, groups.descending, f64::total_cmp);
                    Between::Number(if low == high { low } else { low + (high - low) * part })
                };
                Some(shares.iter().map(&mut between).collect())
            }
        };
        results.push(found)?;
    }
    Ok(cast(&results.finish()?, groups.result)?)
}

/// The values on both sides of a share of some values, and how far it is from the first to the second. The values
/// change places.
fn neighbours<T: Copy>(
    values: &mut [T],
    share: f64,
    descending: bool,
    order: impl Fn(&T, &T) -> Ordering,
) -> (T, T, f64) {
    let share = if share.is_sign_negative() { 1.0 + share } else { share };
    let at = share * (values.len() - 1) as f64;
    let order =
        |left: &T, right: &T| if descending { order(right, left) } else { order(left, right) };
    let (_, low, above) = values.select_nth_unstable_by(at.floor() as usize, order);
    let high = match at.ceil() > at.floor() {
        true => above.iter().copied().min_by(order).unwrap_or(*low),
        false => *low,
    };
    (*low, high, at - at.floor())
}

/// What lies between two values.
enum Between {
    Number(f64),
    Moment(i64),
}

/// Results of groups, one or a list for each.
struct ScalarResults {
    item: DataType,
    is_list: bool,
    results: Vec<ScalarValue>,
}

impl ScalarResults {
    fn new(item: &DataType, is_list: bool) -> Self {
        Self { item: item.clone(), is_list, results: vec![] }
    }

    fn scalar(&self, value: Between) -> Result<ScalarValue> {
        match value {
            Between::Number(number) => ScalarValue::from(number).cast_to(&self.item),
            Between::Moment(at) => ScalarValue::from(at).cast_to(&self.item),
        }
    }

    fn push(&mut self, found: Option<Vec<Between>>) -> Result<()> {
        let Some(found) = found else {
            let item = Arc::new(datafusion::arrow::datatypes::Field::new_list_field(
                self.item.clone(),
                true,
            ));
            let none = if self.is_list { DataType::List(item) } else { self.item.clone() };
            self.results.push(ScalarValue::try_from(&none)?);
            return Ok(());
        };
        let values: Result<Vec<ScalarValue>> =
            found.into_iter().map(|value| self.scalar(value)).collect();
        let mut values = values?;
        self.results.push(match self.is_list {
            true => ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.item)),
            false => values.swap_remove(0),
        });
        Ok(())
    }

    fn finish(self) -> Result<ArrayRef> {
        match self.results.is_empty() {
            true => Ok(datafusion::arrow::array::new_empty_array(&match self.is_list {
                true => DataType::new_list(self.item.clone(), true),
                false => self.item.clone(),
            })),
            false => ScalarValue::iter_to_array(self.results),
        }
    }
}

/// Dates have timestamps between them, decimals decimals, other numbers doubles.
fn between_type(given: &[DataType]) -> DataType {
    let one = match given.first() {
        Some(DataType::Date32 | DataType::Date64) => {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        }
        Some(moment @ DataType::Timestamp(..)) => moment.clone(),
        Some(decimal) if decimal.is_decimal() => decimal.clone(),
        _ => DataType::Float64,
    };
    as_asked(given, one)
}

fn median_type(given: &[DataType]) -> DataType {
    match as_first(given) {
        moment @ (DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)) => {
            between_type(&[moment])
        }
        other if other.is_numeric() || other.is_null() => between_type(&[other]),
        other => other,
    }
}

fn median(groups: &Groups<'_>) -> Result<ArrayRef> {
    match groups.result {
        number if number.is_numeric() => quantile_cont(groups),
        DataType::Timestamp(..) => quantile_cont(groups),
        _ => quantile_disc(groups),
    }
}

/// `arg_max(x, y)` as the first x ordered by y, which keeps one row for each group.
fn first_by(mut function: AggregateFunction, is_largest: bool, keeps_null: bool) -> Result<Expr> {
    let mut args = std::mem::take(&mut function.params.args).into_iter();
    let (Some(value), Some(key)) = (args.next(), args.next()) else {
        return exec_err!("two arguments are expected");
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
    gathered!("quantile_disc" ["quantile", "percentile_disc", "reservoir_quantile", "approx_quantile"], "value, share or list of shares",
        QUANTILE, 1, |given| as_asked(given, as_first(given)),
        "The smallest value that is not below a share of all.", "quantile_disc(price, 0.9)", quantile_disc,
        within_group: true),
    gathered!("percentile_cont" ["quantile_cont"], "value, share or list of shares", QUANTILE, 1, between_type,
        "The value at a share of all, or between the two values next to it; of dates a timestamp.",
        "quantile_cont(price, [0.25, 0.75])", quantile_cont, within_group: true),
    gathered!("median" [], "value", ANY, 1, median_type,
        "The value in the middle, or between the two there; of texts and other types the first of the two.",
        "median(price)", median),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_neighbours_of_a_share_are_those_of_the_sorted_values() {
        for count in [1, 2, 3, 10, 101] {
            let mixed = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as f64 - 7.0;
            let mut values: Vec<f64> = (0..count).map(mixed).collect();
            values[0] = f64::NAN;
            for descending in [false, true] {
                let mut sorted = values.clone();
                sorted.sort_by(f64::total_cmp);
                if descending {
                    sorted.reverse();
                }
                // Of a list of shares each finds the values as the one before left them.
                let mut moved = values.clone();
                for (share, from_least) in
                    [(0.5, 0.5), (0.0, 0.0), (1.0, 1.0), (0.9, 0.9), (-0.25, 0.75)]
                {
                    let at = from_least * (count - 1) as f64;
                    let expected = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
                    let (low, high, part) =
                        neighbours(&mut moved, share, descending, f64::total_cmp);
                    assert_eq!(low.to_bits(), expected.0.to_bits(), "{count} {share}");
                    assert_eq!(high.to_bits(), expected.1.to_bits(), "{count} {share}");
                    assert!((0.0..1.0).contains(&part));
                }
            }
        }
    }
}
