//! Whole queries checked against slow sums in 256 bits.
//!
//! | family | proves |
//! |---|---|
//! | `sums_agree…` | over random and extreme values, plain, grouped, filtered, distinct, in one partition and in four, with and without partial aggregation: the exact sum, or an error if it does not fit |
//! | `averages_agree…` | the same for averages |
//! | `windows_agree…` | each frame of a moving window has its own exact sum |
//! | the rest | single cases: order, nulls, empty input, messages, names |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_primitives::aggregate::quotient_type;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array, DurationSecondArray, Int64Array,
    RecordBatch, UInt64Array,
};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, DurationSecondType, Int64Type, TimeUnit, UInt64Type,
    i256,
};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::register;

/// A row: group, value, whether it passes the filter.
type Row = (Option<i64>, Option<i256>, bool);

/// Group to result; the error's text if the query failed.
type Outcome = Result<BTreeMap<Option<i64>, Option<i256>>, String>;

const TYPES: [DataType; 7] = [
    DataType::Int64,
    DataType::UInt64,
    DataType::Decimal128(15, 2),
    DataType::Decimal128(38, 4),
    DataType::Decimal256(50, 2),
    DataType::Decimal256(76, 0),
    DataType::Duration(TimeUnit::Second),
];

fn power_of_ten(exponent: u8) -> i256 {
    i256::from_i128(10).wrapping_pow(u32::from(exponent))
}

/// The smallest and the largest value of a type.
fn range(data_type: &DataType) -> (i256, i256) {
    match data_type {
        DataType::UInt64 => (i256::ZERO, i256::from_i128(u64::MAX.into())),
        DataType::Decimal128(precision, _) | DataType::Decimal256(precision, _) => {
            let max = power_of_ten(*precision).wrapping_sub(i256::ONE);
            (max.wrapping_neg(), max)
        }
        _ => (i256::from_i128(i64::MIN.into()), i256::from_i128(i64::MAX.into())),
    }
}

fn array(data_type: &DataType, values: &[Option<i256>]) -> ArrayRef {
    let narrow = |value: &Option<i256>| value.map(|value| value.to_i128().unwrap());
    let array: ArrayRef = match data_type {
        DataType::Int64 => {
            Arc::new(values.iter().map(|v| narrow(v).map(|v| v as i64)).collect::<Int64Array>())
        }
        DataType::UInt64 => {
            Arc::new(values.iter().map(|v| narrow(v).map(|v| v as u64)).collect::<UInt64Array>())
        }
        DataType::Duration(_) => Arc::new(
            values.iter().map(|v| narrow(v).map(|v| v as i64)).collect::<DurationSecondArray>(),
        ),
        DataType::Decimal128(..) => Arc::new(
            values
                .iter()
                .map(narrow)
                .collect::<Decimal128Array>()
                .with_data_type(data_type.clone()),
        ),
        _ => Arc::new(
            values.iter().copied().collect::<Decimal256Array>().with_data_type(data_type.clone()),
        ),
    };
    array
}

fn value(array: &dyn Array, row: usize) -> Option<i256> {
    let wide = |value: i128| i256::from_i128(value);
    array.is_valid(row).then(|| match array.data_type() {
        DataType::Int64 => wide(array.as_primitive::<Int64Type>().value(row).into()),
        DataType::UInt64 => wide(array.as_primitive::<UInt64Type>().value(row).into()),
        DataType::Duration(_) => wide(array.as_primitive::<DurationSecondType>().value(row).into()),
        DataType::Decimal128(..) => wide(array.as_primitive::<Decimal128Type>().value(row)),
        _ => array.as_primitive::<Decimal256Type>().value(row),
    })
}

/// Mostly small values, some at the ends of the range, some null; `hostility` is the share of extreme
/// values.
fn rows(data_type: &DataType, count: usize, hostility: f64, random: &mut StdRng) -> Vec<Row> {
    let (min, max) = range(data_type);
    let ends = [min, max, max, max.wrapping_sub(i256::ONE)];
    let signed = min != i256::ZERO;
    let value = |random: &mut StdRng| match random.random_bool(hostility) {
        true => *ends.choose(random).unwrap(),
        false => i256::from_i128(random.random_range(if signed { -50 } else { 0 }..50)),
    };
    (0..count)
        .map(|_| {
            let group = random.random_bool(0.9).then(|| random.random_range(0..20));
            let value = random.random_bool(0.8).then(|| value(random));
            (group, value, random.random_bool(0.7))
        })
        .collect()
}

/// A session with the rows in table `t (g, x, f)`, spread over `partitions`.
fn session(
    data_type: &DataType,
    rows: &[Row],
    partitions: usize,
    skip_partial: bool,
) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(64);
    if skip_partial {
        let options = &mut config.options_mut().execution;
        options.skip_partial_aggregation_probe_rows_threshold = 1;
        options.skip_partial_aggregation_probe_ratio_threshold = 0.0;
    }
    let context = SessionContext::new_with_config(config);
    register(&context);
    let batch = |rows: &[Row]| {
        let groups: Int64Array = rows.iter().map(|row| row.0).collect();
        let values: Vec<_> = rows.iter().map(|row| row.1).collect();
        let filter: Vec<_> = rows.iter().map(|row| Some(row.2)).collect();
        RecordBatch::try_from_iter_with_nullable([
            ("g", Arc::new(groups) as ArrayRef, true),
            ("x", array(data_type, &values), true),
            ("f", Arc::new(datafusion::arrow::array::BooleanArray::from(filter)), true),
        ])
        .unwrap()
    };
    let schema = batch(&[]).schema();
    let dealt: Vec<Vec<RecordBatch>> = (0..partitions)
        .map(|partition| {
            let mine: Vec<Row> = rows.iter().skip(partition).step_by(partitions).copied().collect();
            mine.chunks(50).map(batch).collect()
        })
        .collect();
    context.register_table("t", Arc::new(MemTable::try_new(schema, dealt).unwrap())).unwrap();
    context
}

/// Runs a query that returns a group and a result.
async fn outcome(context: &SessionContext, query: &str) -> Outcome {
    let frame = context.sql(query).await.map_err(|error| error.to_string())?;
    let batches = frame.collect().await.map_err(|error| error.to_string())?;
    let of_batch = |batch: &RecordBatch| {
        let groups = batch.column(0).as_primitive::<Int64Type>().clone();
        let results = batch.column(1).clone();
        (0..groups.len())
            .map(move |row| (groups.is_valid(row).then(|| groups.value(row)), value(&results, row)))
            .collect::<Vec<_>>()
    };
    Ok(batches.iter().flat_map(of_batch).collect())
}

/// Returns the exact sums by group, and the number of values in each.
fn totals(rows: &[Row], distinct: bool) -> BTreeMap<Option<i64>, (i256, i128)> {
    let mut groups = BTreeMap::<_, (i256, i128, BTreeSet<i256>)>::new();
    for (group, value, _) in rows {
        let (sum, count, seen) = groups.entry(*group).or_default();
        let Some(value) = *value else { continue };
        if !distinct || seen.insert(value) {
            *sum = sum.checked_add(value).expect("rows small enough for 256 bits");
            *count += 1;
        }
    }
    groups.into_iter().map(|(group, (sum, count, _))| (group, (sum, count))).collect()
}

/// Returns the expected sums by group.
fn expected_sums(data_type: &DataType, rows: &[Row], distinct: bool) -> Outcome {
    let result = match data_type {
        DataType::Decimal128(precision, scale) => {
            DataType::Decimal128((precision + 10).min(38), *scale)
        }
        DataType::Decimal256(precision, scale) => {
            DataType::Decimal256((precision + 10).min(76), *scale)
        }
        other => other.clone(),
    };
    let (min, max) = range(&result);
    let fits = |(group, (sum, count)): (Option<i64>, (i256, i128))| match sum {
        _ if count == 0 => Ok((group, None)),
        sum if (min..=max).contains(&sum) => Ok((group, Some(sum))),
        _ => Err("overflow".to_owned()),
    };
    totals(rows, distinct).into_iter().map(fits).collect()
}

fn assert_agree(actual: Outcome, expected: Outcome, what: &str) {
    match (actual, expected) {
        (Ok(actual), Ok(expected)) => assert_eq!(actual, expected, "{what}"),
        (Err(error), Err(_)) => assert!(error.contains(" overflows "), "{what}: {error}"),
        (actual, expected) => panic!("{what}: {actual:?} instead of {expected:?}"),
    }
}

/// Decimals of 76 digits leave room for five of the largest in the reference's 256 bits.
fn row_count(data_type: &DataType, hostility: f64) -> usize {
    match data_type {
        DataType::Decimal256(76, _) if hostility > 0.0 => 5,
        _ => 600,
    }
}

async fn check_sums(data_type: &DataType, hostility: f64, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let count = row_count(data_type, hostility);
    let rows = rows(data_type, count, hostility, &mut random);
    let passing: Vec<Row> = rows.iter().filter(|row| row.2).copied().collect();
    let groups: BTreeSet<_> = rows.iter().map(|row| row.0).collect();
    for (partitions, skip_partial) in [(1, false), (4, false), (4, true)] {
        let context = session(data_type, &rows, partitions, skip_partial);
        let what = format!("{data_type}, {partitions} partitions, skip {skip_partial}, {seed}");
        let plain = outcome(&context, "SELECT g, sum(x) FROM t GROUP BY g").await;
        assert_agree(plain, expected_sums(data_type, &rows, false), &what);

        let filtered = outcome(&context, "SELECT g, sum(x) FILTER (WHERE f) FROM t GROUP BY g");
        let expected = expected_sums(data_type, &passing, false).map(|mut sums| {
            groups.iter().for_each(|group| {
                sums.entry(*group).or_insert(None);
            });
            sums
        });
        assert_agree(filtered.await, expected, &format!("filter, {what}"));

        // The count keeps DataFusion from turning the distinct sum into a plain one over groups.
        let distinct = "SELECT g, sum(DISTINCT x), count(f) FROM t GROUP BY g";
        let expected = expected_sums(data_type, &rows, true);
        assert_agree(outcome(&context, distinct).await, expected, &format!("distinct, {what}"));

        let one: Vec<Row> = rows.iter().map(|row| (Some(0), row.1, row.2)).collect();
        let whole = outcome(&context, "SELECT arrow_cast(0, 'Int64'), sum(x) FROM t").await;
        assert_agree(whole, expected_sums(data_type, &one, false), &format!("whole, {what}"));
    }
}

#[tokio::test]
async fn sums_agree_with_wide_sums_over_tame_values() {
    for (seed, data_type) in TYPES.iter().enumerate() {
        check_sums(data_type, 0.0, seed as u64).await;
    }
}

#[tokio::test]
async fn sums_agree_with_wide_sums_over_hostile_values() {
    for seed in 0..6 {
        for data_type in &TYPES {
            check_sums(data_type, 0.02, seed).await;
            check_sums(data_type, 0.5, seed).await;
        }
    }
}

/// Returns the expected averages by group, with the additional digits of decimals, rounded.
fn expected_averages(data_type: &DataType, rows: &[Row], distinct: bool) -> Outcome {
    let digits = match data_type {
        DataType::Decimal128(digits, scale) => {
            quotient_type(38, (*digits, *scale), (1, 0)).1 - scale
        }
        DataType::Duration(_) => 0,
        _ => 4,
    };
    let is_duration = matches!(data_type, DataType::Duration(_));
    let average = |(group, (sum, count)): (Option<i64>, (i256, i128))| {
        let average = (count > 0).then(|| {
            let power = power_of_ten(digits.unsigned_abs());
            let scaled = sum.checked_mul(power).expect("room for the digits");
            let count = i256::from_i128(count);
            let half = if is_duration { i256::ZERO } else { count.wrapping_mul(scaled.signum()) };
            let twice = scaled.wrapping_mul(i256::from_i128(2)).wrapping_add(half);
            twice.wrapping_div(count.wrapping_mul(i256::from_i128(2)))
        });
        (group, average)
    };
    Ok(totals(rows, distinct).into_iter().map(average).collect())
}

#[tokio::test]
async fn averages_agree_with_wide_averages() {
    let types = [
        DataType::Decimal128(15, 2),
        DataType::Decimal128(34, 2),
        DataType::Decimal256(50, 2),
        DataType::Duration(TimeUnit::Second),
    ];
    for (seed, data_type) in types.iter().enumerate() {
        let mut random = StdRng::seed_from_u64(seed as u64);
        let rows = rows(data_type, 600, 0.3, &mut random);
        for (partitions, skip_partial) in [(1, false), (4, false), (4, true)] {
            let context = session(data_type, &rows, partitions, skip_partial);
            let what = format!("{data_type}, {partitions} partitions, skip {skip_partial}");
            let plain = outcome(&context, "SELECT g, avg(x) FROM t GROUP BY g").await;
            assert_agree(plain, expected_averages(data_type, &rows, false), &what);
            if !matches!(data_type, DataType::Duration(_)) {
                let distinct = "SELECT g, avg(DISTINCT x), count(f) FROM t GROUP BY g";
                let expected = expected_averages(data_type, &rows, true);
                assert_agree(outcome(&context, distinct).await, expected, &what);
            }
        }
    }
}

/// Values with their index as the group, for windows ordered by it.
fn numbered(values: &[Option<i256>]) -> Vec<Row> {
    (0..).map(Some).zip(values).map(|(at, value)| (at, *value, true)).collect()
}

#[tokio::test]
async fn windows_agree_with_wide_sums_of_each_frame() {
    let mut random = StdRng::seed_from_u64(1);
    for data_type in [DataType::Int64, DataType::Decimal128(38, 0), DataType::UInt64] {
        let values: Vec<_> =
            rows(&data_type, 200, 0.0, &mut random).iter().map(|row| row.1).collect();
        let context = session(&data_type, &numbered(&values), 1, false);
        for (name, distinct) in [("sum(x)", false), ("sum(DISTINCT x)", true)] {
            let query = format!(
                "SELECT g, {name} OVER (ORDER BY g ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING) FROM t"
            );
            let expected: BTreeMap<_, _> = (0..values.len())
                .map(|at| {
                    let frame = &values[at.saturating_sub(3)..(at + 2).min(values.len())];
                    let frame: Vec<Row> = frame.iter().map(|value| (None, *value, true)).collect();
                    let sums = expected_sums(&data_type, &frame, distinct).unwrap();
                    (Some(at as i64), sums[&None])
                })
                .collect();
            assert_agree(outcome(&context, &query).await, Ok(expected), &query);
        }
    }
}

#[tokio::test]
async fn a_window_may_pass_over_a_value_as_large_as_the_type() {
    let values = [Some(i64::MAX), None, Some(-1), Some(5)];
    let values = values.map(|value| value.map(|value| i256::from_i128(value.into())));
    let context = session(&DataType::Int64, &numbered(&values), 1, false);
    let frame = |rows| format!("SELECT g, sum(x) OVER (ORDER BY g ROWS BETWEEN {rows}) FROM t");
    let sums = outcome(&context, &frame("2 PRECEDING AND CURRENT ROW")).await.unwrap();
    assert_eq!(sums[&Some(3)], Some(i256::from_i128(4)));
    let error = outcome(&context, &frame("3 PRECEDING AND CURRENT ROW")).await.unwrap_err();
    assert!(error.contains("overflows BIGINT"), "{error}");
}

fn i64s(values: &[i64]) -> Vec<Row> {
    values.iter().map(|&value| (None, Some(i256::from_i128(value.into())), true)).collect()
}

#[tokio::test]
async fn an_overflow_that_later_rows_reverse_is_no_error_in_any_number_of_partitions() {
    let rows = i64s(&[i64::MAX, i64::MAX, i64::MIN, i64::MIN, 9]);
    for partitions in [1, 2, 3, 5] {
        for query in ["SELECT g, sum(x) FROM t GROUP BY g", "SELECT max(g), sum(x) FROM t"] {
            let context = session(&DataType::Int64, &rows, partitions, false);
            let sums = outcome(&context, query).await.unwrap();
            assert_eq!(sums[&None], Some(i256::from_i128(7)), "{query}, {partitions}");
        }
    }
}

#[tokio::test]
async fn the_error_names_the_argument_the_type_and_the_cast_that_helps() {
    let context = session(&DataType::Int64, &i64s(&[i64::MAX, 1]), 1, false);
    let error = outcome(&context, "SELECT g, sum(x) FROM t GROUP BY g").await.unwrap_err();
    assert!(
        error.contains("sum(t.x) overflows BIGINT; cast the argument to DECIMAL(38,0)"),
        "{error}"
    );
    let cast = outcome(&context, "SELECT g, sum(CAST(x AS DECIMAL(38,0))) FROM t GROUP BY g").await;
    assert_eq!(cast.unwrap()[&None], Some(i256::from_i128(1 << 63)));
}

#[tokio::test]
async fn sums_over_an_added_constant_fail_where_they_overflow() {
    let context = session(&DataType::Int64, &i64s(&[i64::MAX - 5, 4]), 1, false);
    let query = "SELECT g, sum(x + 1), sum(x + 2) FROM t GROUP BY g";
    let error = outcome(&context, query).await.unwrap_err();
    assert!(error.contains("overflows BIGINT"), "{error}");
}

#[tokio::test]
async fn no_rows_and_only_nulls_sum_to_null() {
    let none = session(&DataType::Decimal128(15, 2), &[], 2, false);
    let nulls = session(&DataType::Decimal128(15, 2), &[(None, None, true); 3], 2, false);
    for context in [none, nulls] {
        for aggregate in ["sum(x)", "avg(x)", "sum(DISTINCT x)", "mean(x)"] {
            let query = format!("SELECT max(g), {aggregate} FROM t");
            assert_eq!(outcome(&context, &query).await.unwrap(), BTreeMap::from([(None, None)]));
        }
    }
}

#[tokio::test]
async fn floats_sum_as_ever() {
    let context = session(&DataType::Int64, &i64s(&[1, 2]), 2, false);
    let frame = context.sql("SELECT sum(CAST(x AS DOUBLE)), avg(x) FROM t").await.unwrap();
    let batches = frame.collect().await.unwrap();
    let shown = datafusion::arrow::util::pretty::pretty_format_batches(&batches).unwrap();
    assert!(shown.to_string().contains("| 3.0 "), "{shown}");
    assert!(shown.to_string().contains("| 1.5 "), "{shown}");
}
