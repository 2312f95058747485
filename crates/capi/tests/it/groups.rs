//! Aggregation.

use std::collections::BTreeMap;

use atoll::{Aggregation, Function, RowsPart, atoll_aggregate, atoll_aggregate_sum_i64};

use crate::lent::{
    BOOL, DECIMAL128, FLOAT64, Found, INT32, INT64, Open, UINT64, fixed, found, nullable, part,
    texts,
};

const COUNT_ROWS: u32 = 0;
const COUNT: u32 = 1;
const SUM: u32 = 2;
const MIN: u32 = 3;
const MAX: u32 = 4;
const AVG: u32 = 5;

/// An aggregation of some parts.
pub(crate) fn aggregation(parts: &[RowsPart], keys: &[u32], functions: &[Function]) -> Aggregation {
    Aggregation {
        parts: parts.as_ptr(),
        part_count: parts.len(),
        keys: keys.as_ptr(),
        key_count: keys.len(),
        functions: functions.as_ptr(),
        function_count: functions.len(),
        variant: 0,
    }
}

#[track_caller]
fn aggregated(context: &Open, aggregation: &Aggregation) -> Found {
    // SAFETY: made of slices that live.
    found(|to| unsafe { atoll_aggregate(context.0, aggregation, to) }).unwrap()
}

fn function(function: u32, column: u32) -> Function {
    Function { function, column }
}

#[test]
fn a_sum_by_key_is_that_of_a_plain_loop_whether_few_groups_or_many() {
    let context = Open::new(3);
    for groups in [1, 100, 300_000] {
        let keys: Vec<i64> = (0..400_000).map(|row| row * 7919 % groups - 50).collect();
        let values: Vec<i64> = (0..400_000).map(|row| row - 200_000).collect();
        let mut expected = BTreeMap::<i64, i64>::new();
        for (key, value) in keys.iter().zip(&values) {
            *expected.entry(*key).or_default() += value;
        }
        let (at, rows) = ((keys.as_ptr(), values.as_ptr()), keys.len());
        // SAFETY: both have so many values.
        let sum = |to| unsafe { atoll_aggregate_sum_i64(context.0, at.0, at.1, rows, to) };
        let sums = found(sum).unwrap();
        // What was lent may go before the result is read.
        drop((keys, values));
        let keys = sums.values::<i64>(0).into_iter().flatten();
        let found: Vec<(i64, i64)> =
            keys.zip(sums.values::<i64>(1).into_iter().flatten()).collect();
        assert_eq!(found.len(), expected.len());
        assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected);
    }
}

#[test]
fn all_functions_leave_nulls_out_and_null_keys_are_a_group() {
    let context = Open::new(2);
    let names = texts("onetwoonetwo", &[0, 3, 6, 6, 9, 12]);
    let names_there = [0b11011];
    let names = atoll::Column { validity: names_there.as_ptr(), ..names };
    let values = [4_i32, 5, 6, 7, 9];
    let values_there = [0b10101];
    let columns = [names, nullable(INT32, &values, &values_there)];
    let functions = [COUNT_ROWS, COUNT, SUM, MIN, MAX, AVG].map(|number| function(number, 1));
    let (parts, keys) = ([part(&columns)], [0]);
    let groups = aggregated(&context, &aggregation(&parts, &keys, &functions));
    let (rows, counts) = (groups.values::<i64>(1), groups.values::<i64>(2));
    let (sums, means) = (groups.values::<i64>(3), groups.values::<f64>(6));
    let (least, largest) = (groups.values::<i32>(4), groups.values::<i32>(5));
    let found: BTreeMap<_, _> = groups
        .texts(0)
        .into_iter()
        .enumerate()
        .map(|(at, name)| {
            let mean = means[at].map(|mean| mean.to_string());
            (name, (rows[at], counts[at], sums[at], least[at], largest[at], mean))
        })
        .collect();
    let text = |text: &str| Some(text.to_owned());
    let expected = BTreeMap::from([
        (None, (Some(1), Some(1), Some(6), Some(6), Some(6), text("6"))),
        (text("one"), (Some(2), Some(1), Some(4), Some(4), Some(4), text("4"))),
        (text("two"), (Some(2), Some(1), Some(9), Some(9), Some(9), text("9"))),
    ]);
    assert_eq!(found, expected);
    assert!(!groups.reason().is_empty());
}

#[test]
fn parts_are_put_together_and_every_variant_says_the_same() {
    let context = Open::new(2);
    let keys = [(0..5000_u64).map(|row| row % 700).collect::<Vec<_>>(), vec![], vec![3, 699]];
    let values: Vec<Vec<f64>> = keys.iter().map(|keys| vec![0.5; keys.len()]).collect();
    let columns: Vec<_> = keys
        .iter()
        .zip(&values)
        .map(|(keys, values)| [fixed(UINT64, keys), fixed(FLOAT64, values)])
        .collect();
    let parts: Vec<RowsPart> = columns.iter().map(|columns| part(columns)).collect();
    let (by, functions) = ([0], [function(SUM, 1)]);
    for variant in 0..6 {
        let query = Aggregation { variant, ..aggregation(&parts, &by, &functions) };
        let groups = aggregated(&context, &query);
        let sum: f64 = groups.values::<f64>(1).into_iter().flatten().sum();
        let found = (groups.values::<u64>(0).len(), sum);
        assert_eq!(found, (700, 2501.0), "variant {variant}: {}", groups.reason());
    }
}

#[test]
fn decimals_booleans_and_no_keys_at_all() {
    let context = Open::new(1);
    // 1.50, -0.25, 2.00 and 7.75, not aligned to anything but their type.
    let amounts = [150_i128, -25, 200, 775];
    let columns = [
        atoll::Column { precision: 10, scale: 2, ..fixed(DECIMAL128, &amounts) },
        atoll::Column { length: 4, ..fixed(BOOL, &[0b0110_u8]) },
    ];
    let (parts, functions) = ([part(&columns)], [function(SUM, 0), function(AVG, 0)]);
    let by_bool = aggregated(&context, &aggregation(&parts, &[1], &functions));
    let sum = by_bool.column(0, 1);
    assert_eq!((sum.data_type, sum.precision, sum.scale), (DECIMAL128, 20, 2));
    let mut sums: Vec<_> = by_bool.values::<i128>(1).into_iter().flatten().collect();
    sums.sort_unstable();
    assert_eq!(sums, [175, 925]);
    let keys = by_bool.column(0, 0);
    assert_eq!((keys.data_type, keys.length), (BOOL, 2));

    let all = aggregated(&context, &aggregation(&parts, &[], &functions));
    assert_eq!(all.values::<i128>(0), [Some(1100)]);
    assert_eq!((all.column(0, 1).precision, all.column(0, 1).scale), (24, 16));
    assert_eq!(all.values::<i128>(1), [Some(27_500_000_000_000_000)]);

    let none = [atoll::Column { length: 0, values: std::ptr::null(), ..columns[0] }];
    let none = [part(&none)];
    let empty = aggregated(&context, &aggregation(&none, &[0], &[function(COUNT, 0)]));
    assert_eq!(empty.values::<i64>(1).len(), 0);
}

#[test]
fn a_result_is_a_column_for_the_next_call() {
    let context = Open::new(2);
    let keys: Vec<i64> = (0..10_000).map(|row| row % 100).collect();
    let columns = [fixed(INT64, &keys)];
    let parts = [part(&columns)];
    let first = aggregated(&context, &aggregation(&parts, &[0], &[function(COUNT_ROWS, 0)]));
    // Group the groups by their count.
    let columns: Vec<_> = (0..first.blocks()).map(|block| [first.column(block, 1)]).collect();
    let parts: Vec<RowsPart> = columns.iter().map(|columns| part(columns)).collect();
    let second = aggregated(&context, &aggregation(&parts, &[0], &[function(COUNT_ROWS, 0)]));
    assert_eq!(
        (second.values::<i64>(0), second.values::<i64>(1)),
        (vec![Some(100)], vec![Some(100)])
    );
}
