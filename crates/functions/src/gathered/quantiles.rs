//! Quantiles and the median: a value of the group, or an interpolation.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::types::ArrowPrimitiveType;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, PrimitiveArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Date32Type, Decimal128Type, Field, Float64Type, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, i256,
};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err};

use super::function::GatheredEntry;
use super::groups::Groups;
use super::picks::{as_first, gathered};
use crate::failure::FunctionFailure;
use crate::scalar::{Arguments, Takes, interval_times};
use crate::temporal::{DAY, Endless, interval_length};

const ANY: &[Arguments] = &[Arguments::Are(&[Takes::Any])];
const QUANTILE: &[Arguments] = &[
    Arguments::Are(&[Takes::Any, Takes::Double]),
    Arguments::Are(&[Takes::Any, Takes::Doubles]),
    Arguments::Are(&[Takes::Any]),
];

/// Additional fraction digits of an interpolated decimal, as for averages.
const MORE_DIGITS: u8 = 4;

const NANOS_OF_MICRO: i64 = 1_000;

/// Returns a list if the second argument is a list.
fn as_asked(given: &[DataType], one: DataType) -> DataType {
    match given.get(1) {
        Some(DataType::List(_)) => DataType::new_list(one, true),
        _ => one,
    }
}

/// Returns the requested shares, and whether they are a list.
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

/// Returns the index of a discrete quantile among this many values.
fn place(share: f64, count: usize) -> usize {
    let from_largest = share.is_sign_negative();
    let share = share.abs();
    // As in DuckDB: the first value whose cumulative share is at least the quantile.
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

/// Interpolates between the values on both sides of a quantile, in the type of the computation.
fn quantile_cont(groups: &Groups<'_>) -> Result<ArrayRef> {
    let column = &groups.columns[0];
    let item = match groups.result {
        DataType::List(item) => item.data_type(),
        one => one,
    };
    match item {
        DataType::Timestamp(..) | DataType::Time64(_) => {
            let moments = match column.data_type() {
                DataType::Date32 => moments_of_dates(column.as_primitive())?,
                _ => cast(&cast(column, item)?, &DataType::Int64)?,
            };
            at_shares::<Int64Type>(groups, item, &moments, i64::cmp, between_moments)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let order = |left: &IntervalMonthDayNano, right: &IntervalMonthDayNano| {
                interval_length(*left).cmp(&interval_length(*right))
            };
            at_shares::<IntervalMonthDayNanoType>(groups, item, column, order, between_intervals)
        }
        DataType::Decimal128(..) => {
            let decimals = cast(column, item)?;
            at_shares::<Decimal128Type>(groups, item, &decimals, i128::cmp, between_decimals)
        }
        _ => {
            let floats = cast(column, &DataType::Float64)?;
            at_shares::<Float64Type>(groups, item, &floats, f64::total_cmp, |low, high, part| {
                Ok(between_floats(low, high, part))
            })
        }
    }
}

/// Applies `between` to the values on both sides for each group and share.
fn at_shares<T: ArrowPrimitiveType>(
    groups: &Groups<'_>,
    item: &DataType,
    values: &ArrayRef,
    order: impl Fn(&T::Native, &T::Native) -> Ordering + Copy,
    between: impl Fn(T::Native, T::Native, f64) -> Result<T::Native>,
) -> Result<ArrayRef> {
    let (shares, is_list) = shares(groups)?;
    let values = values.as_primitive::<T>().values();
    let (mut found, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for range in groups.ranges() {
        let mut values = values[range].to_vec();
        valid.push(!values.is_empty());
        if values.is_empty() {
            lengths.push(0);
            found.extend((!is_list).then_some(None));
            continue;
        }
        lengths.push(shares.len());
        for share in &shares {
            let (low, high, part) = neighbours(&mut values, *share, groups.descending, order);
            found.push(Some(match low == high || part == 0.0 {
                true => low,
                false => between(low, high, part)?,
            }));
        }
    }
    let found: PrimitiveArray<T> = found.into_iter().collect();
    // Timestamps and times are computed as integers.
    let found: ArrayRef = match T::DATA_TYPE == DataType::Int64 {
        true => cast(&found, item)?,
        false => Arc::new(found.with_data_type(item.clone())),
    };
    if !is_list {
        return Ok(found);
    }
    let field = Arc::new(Field::new_list_field(item.clone(), true));
    let (offsets, valid) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
    Ok(Arc::new(ListArray::try_new(field, offsets, found, Some(valid))?))
}

/// Returns the values on both sides of a share, and its position between them. Reorders the
/// values.
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

fn between_floats(low: f64, high: f64, part: f64) -> f64 {
    let distance = high - low;
    match distance.is_infinite() && low.is_finite() && high.is_finite() {
        true => low * (1.0 - part) + high * part,
        false => low + distance * part,
    }
}

/// Interpolates between two timestamps; infinite if one of them is.
fn between_moments(low: i64, high: i64, part: f64) -> Result<i64> {
    match (Endless::of_moment(low), Endless::of_moment(high)) {
        _ if low == high => Ok(low),
        (Some(endless), None) | (None, Some(endless)) => Ok(endless.moment()),
        (Some(_), Some(_)) => {
            let message = "cannot interpolate between 'infinity' and '-infinity'".to_owned();
            Err(FunctionFailure::error("22008", message))
        }
        (None, None) => {
            let distance = (i128::from(high) - i128::from(low)) as f64;
            Ok(low.saturating_add((distance * part) as i64))
        }
    }
}

/// Converts dates to timestamps in microseconds.
fn moments_of_dates(dates: &PrimitiveArray<Date32Type>) -> Result<ArrayRef> {
    let moments = dates.try_unary::<_, Int64Type, _>(|days| match days {
        i32::MAX => Ok(i64::MAX),
        i32::MIN => Ok(i64::MIN),
        days => i64::from(days).checked_mul(DAY).ok_or_else(|| {
            FunctionFailure::error("22008", "date out of range for timestamp".to_owned())
        }),
    })?;
    Ok(Arc::new(moments))
}

/// `low + (high - low) * part`, as in PostgreSQL.
fn between_intervals(
    low: IntervalMonthDayNano,
    high: IntervalMonthDayNano,
    part: f64,
) -> Result<IntervalMonthDayNano> {
    let of = || {
        let months = i64::from(high.months) - i64::from(low.months);
        let days = i64::from(high.days) - i64::from(low.days);
        let nanos = i128::from(high.nanoseconds) - i128::from(low.nanoseconds);
        let micros = (nanos / i128::from(NANOS_OF_MICRO)) as f64;
        let distance = interval_times((months as f64, days as f64, micros), part)?;
        Some(IntervalMonthDayNano::new(
            low.months.checked_add(distance.months)?,
            low.days.checked_add(distance.days)?,
            low.nanoseconds.checked_add(distance.nanoseconds)?,
        ))
    };
    of().ok_or_else(|| FunctionFailure::error("22008", "interval out of range".to_owned()))
}

/// Interpolates between two decimals, with the digits of both, rounded to the nearest.
fn between_decimals(low: i128, high: i128, part: f64) -> Result<i128> {
    // A double from 0 to 1 has no more significant digits than this.
    const PARTS: f64 = (1_u64 << 53) as f64;
    let (low, parts) = (i256::from_i128(low), i256::from_i128((part * PARTS) as i128));
    let distance = i256::from_i128(high) - low;
    let all = i256::from_i128(PARTS as i128);
    let half = i256::from_i128(PARTS as i128 / 2);
    let scaled = distance * parts;
    let rounded = match scaled < i256::ZERO {
        true => (scaled - half) / all,
        false => (scaled + half) / all,
    };
    let between = (low + rounded).to_i128();
    between.ok_or_else(|| exec_datafusion_err!("a decimal between two is out of range"))
}

/// Between dates the result is a timestamp, between decimals a decimal, otherwise a double; also for HUGEINT,
/// whose decimals have no digits left.
fn between_type(given: &[DataType]) -> DataType {
    let one = match given.first() {
        Some(DataType::Date32 | DataType::Date64) => {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        }
        Some(time @ (DataType::Timestamp(..) | DataType::Time64(_))) => time.clone(),
        Some(DataType::Time32(_)) => DataType::Time64(TimeUnit::Microsecond),
        Some(interval @ DataType::Interval(IntervalUnit::MonthDayNano)) => interval.clone(),
        Some(DataType::Decimal128(precision, scale))
            if *precision < DECIMAL128_MAX_PRECISION || *scale > 0 =>
        {
            let digits = precision.saturating_add(MORE_DIGITS).min(DECIMAL128_MAX_PRECISION);
            DataType::Decimal128(digits, scale.saturating_add((digits - precision) as i8))
        }
        _ => DataType::Float64,
    };
    as_asked(given, one)
}

/// The same; for types without interpolation, the type itself.
fn median_type(given: &[DataType]) -> DataType {
    match as_first(given) {
        other if has_between(&other) => between_type(&[other]),
        other => other,
    }
}

fn has_between(of: &DataType) -> bool {
    of.is_numeric()
        || of.is_null()
        || matches!(
            of,
            DataType::Date32
                | DataType::Date64
                | DataType::Timestamp(..)
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Interval(IntervalUnit::MonthDayNano)
        )
}

fn median(groups: &Groups<'_>) -> Result<ArrayRef> {
    match has_between(groups.result) {
        true => quantile_cont(groups),
        false => quantile_disc(groups),
    }
}

pub(super) static ENTRIES: &[GatheredEntry] = &[
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
                // Each share of a list gets the values in the order that the previous one left.
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

    #[test]
    fn interpolated_decimals_keep_all_digits() {
        let most = 10_i128.pow(38) - 1;
        assert_eq!(between_decimals(-most, most, 0.5).unwrap(), 0);
        assert_eq!(between_decimals(most - 3, most - 1, 0.5).unwrap(), most - 2);
        assert_eq!(between_decimals(10, 0, 0.25).unwrap(), 7);
        assert_eq!(between_decimals(0, 10, 0.25).unwrap(), 3);
    }

    #[test]
    fn interpolating_the_largest_floats_stays_finite() {
        assert_eq!(between_floats(-f64::MAX, f64::MAX, 0.5), 0.0);
        assert_eq!(between_floats(1.0, 2.0, 0.25), 1.25);
    }

    #[test]
    fn interpolating_with_an_infinity_returns_it() {
        assert_eq!(between_moments(i64::MIN, 5, 0.5).unwrap(), i64::MIN);
        assert_eq!(between_moments(5, i64::MAX, 0.5).unwrap(), i64::MAX);
        assert_eq!(between_moments(0, 3_600, 0.5).unwrap(), 1_800);
    }
}
