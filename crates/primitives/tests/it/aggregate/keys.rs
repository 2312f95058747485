//! Keys of all types, one and several.

use arrow_schema::{DataType, TimeUnit};
use atoll_primitives::aggregate::{Aggregate, Function, Query, Variant};
use proptest::prelude::*;

use super::data::{Spread, batch, column, numbers, sparse, with_nulls};
use super::{assert_right, parts, run, sum_by, two_workers};

fn key_types() -> Vec<DataType> {
    use DataType as T;
    let dictionary = T::Dictionary(Box::new(T::Int32), Box::new(T::Utf8));
    vec![
        T::Int8,
        T::Int64,
        T::UInt16,
        T::UInt64,
        T::Date32,
        T::Timestamp(TimeUnit::Microsecond, None),
        T::Decimal128(9, 2),
        T::Decimal128(38, 10),
        T::Float32,
        T::Float64,
        T::Boolean,
        T::Utf8,
        dictionary,
    ]
}

#[test]
fn keys_of_every_type_with_and_without_nulls_near_and_far_apart() {
    let context = two_workers();
    let keys = numbers(1, 2000, Spread::Zipf(300));
    let values =
        column(&DataType::Int64, &with_nulls(2, &numbers(2, 2000, Spread::Uniform(99)), 0.2));
    for data_type in key_types() {
        for nulls in [0.0, 0.1, 1.0] {
            for far in [false, true] {
                let keys: Vec<u64> =
                    keys.iter().map(|key| if far { sparse(*key) } else { *key }).collect();
                let key = column(&data_type, &with_nulls(3, &keys, nulls));
                let (schema, rows) = batch(vec![key, values.clone()]);
                assert_right(&context, &sum_by(1), &schema, &parts(&rows, 3, &[None]));
            }
        }
    }
}

#[test]
fn several_keys_whether_or_not_a_word_holds_them() {
    let context = two_workers();
    let types = key_types();
    let values =
        column(&DataType::Int64, &with_nulls(2, &numbers(2, 1500, Spread::Uniform(99)), 0.0));
    for (at, first) in types.iter().enumerate() {
        for second in [&types[(at + 1) % types.len()], &types[(at + 5) % types.len()], first] {
            let key = |seed: u64, data_type: &DataType| {
                let keys = numbers(seed, 1500, Spread::Uniform(20));
                column(data_type, &with_nulls(seed, &keys, 0.1))
            };
            let columns =
                vec![key(1, first), key(2, second), key(3, &DataType::Int8), values.clone()];
            let (schema, rows) = batch(columns);
            assert_right(&context, &sum_by(3), &schema, &parts(&rows, 2, &[None]));
        }
    }
}

#[test]
fn wide_columns_of_small_numbers_are_packed() {
    let context = two_workers();
    let key = |seed: u64| with_nulls(seed, &numbers(seed, 1500, Spread::Uniform(900)), 0.1);
    let columns = vec![
        column(&DataType::Int64, &key(1)),
        column(&DataType::Decimal128(12, 2), &key(2)),
        column(&DataType::Int64, &key(3)),
    ];
    let (schema, rows) = batch(columns);
    let parts = parts(&rows, 2, &[None]);
    assert_right(&context, &sum_by(2), &schema, &parts);
    let outcome = run(&context, &sum_by(2), &schema, &parts, Variant::Ring).expect("it runs");
    assert_eq!((outcome.variant, &*outcome.reason), (Variant::Ring, "ring: asked for"));
}

#[test]
fn all_workers_merge_many_long_keys() {
    let context = super::context(atoll_testkit::machines::four_nodes(), None, None);
    let keys = numbers(4, 60_000, Spread::Distinct);
    let key = column(&DataType::Utf8, &with_nulls(1, &keys, 0.01));
    let value = column(&DataType::Int64, &with_nulls(5, &keys, 0.0));
    let (schema, rows) = batch(vec![key, value]);
    let parts = parts(&rows, 40, &[Some(0), Some(1), Some(2), Some(3)]);
    let outcome = run(&context, &sum_by(1), &schema, &parts, Variant::Auto).expect("it runs");
    assert!(outcome.batches.len() > 8, "{} batches", outcome.batches.len());
    let expected = super::reference::group(&sum_by(1), &parts).expect("nothing overflows");
    let found = super::reference::rows(1, &outcome.batches);
    super::reference::assert_same(&found, &expected, &outcome.reason);
}

#[test]
fn the_same_column_as_key_and_value_and_twice_as_key() {
    let context = two_workers();
    let keys = with_nulls(1, &numbers(1, 1000, Spread::Hot(50)), 0.1);
    let (schema, rows) = batch(vec![column(&DataType::Int32, &keys)]);
    let max = Aggregate { function: Function::Max, column: 0 };
    let query = Query { keys: vec![0, 0], aggregates: vec![max] };
    assert_right(&context, &query, &schema, &parts(&rows, 2, &[None]));
}

#[test]
fn no_keys_give_one_group_and_no_aggregates_give_distinct_keys() {
    let context = two_workers();
    let keys = with_nulls(1, &numbers(1, 1000, Spread::Uniform(50)), 0.1);
    let (schema, rows) = batch(vec![column(&DataType::Int64, &keys)]);
    let count = Aggregate { function: Function::Count, column: 0 };
    let sum = Aggregate { function: Function::Sum, column: 0 };
    for query in [
        Query { keys: vec![], aggregates: vec![count, sum] },
        Query { keys: vec![0], aggregates: vec![] },
    ] {
        assert_right(&context, &query, &schema, &parts(&rows, 2, &[None]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_keys_and_values_come_to_what_the_reference_comes_to(
        seed in any::<u64>(),
        first in 0_usize..13,
        second in proptest::option::of(0_usize..13),
        value in 0_usize..12,
        rows in 0_usize..1500,
        cut in 1_usize..6,
        spread in prop_oneof![
            (1_u64..5000).prop_map(Spread::Uniform),
            (2_u64..5000).prop_map(Spread::Zipf),
            (1_u64..5000).prop_map(Spread::Hot),
            Just(Spread::Distinct),
        ],
        nulls in prop_oneof![Just(0.0), 0.0..1.0_f64],
        far in any::<bool>(),
    ) {
        let context = two_workers();
        let types = key_types();
        let mut columns = Vec::new();
        for (at, key) in [Some(first), second].into_iter().flatten().enumerate() {
            let mut keys = numbers(seed ^ at as u64, rows, spread);
            if far {
                keys.iter_mut().for_each(|key| *key = sparse(*key));
            }
            columns.push(column(&types[key], &with_nulls(seed ^ at as u64, &keys, nulls)));
        }
        let keys = columns.len();
        let values = numbers(seed ^ 77, rows, Spread::Uniform(u64::MAX));
        let data_type = &super::data::value_types()[value];
        columns.push(column(data_type, &with_nulls(seed, &values, nulls)));
        let functions = [Function::Sum, Function::Min, Function::Avg, Function::Count];
        let aggregates = functions.map(|function| Aggregate { function, column: keys }).to_vec();
        let query = Query { keys: (0..keys).collect(), aggregates };
        let (schema, batch) = batch(columns);
        assert_right(&context, &query, &schema, &parts(&batch, cut, &[None]));
    }
}
