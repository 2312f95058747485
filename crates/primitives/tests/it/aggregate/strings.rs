//! Strings and bytes as keys, alone and with others, in tables and partitioned: nearly equal ones, inline views and
//! longer ones, very long ones, and rows that share views.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, Int64Array, LargeBinaryArray, LargeStringArray,
    StringArray, StringViewArray, UInt32Array,
};
use arrow_schema::DataType;
use atoll_placement::FixedBudget;
use atoll_primitives::aggregate::{Aggregate, Expected, Function, Query, Variant};
use atoll_primitives::{Part, PrimitiveError};
use atoll_testkit::machines;
use atoll_topology::Bytes;
use proptest::prelude::*;
use proptest::sample::select;

use super::data::{Spread, batch, column, numbers};
use super::streaming::{Shape, assert_streams_right, stream};
use super::{context, reference, two_workers};

/// Strings that are easily mistaken for each other.
fn alike() -> Vec<Option<String>> {
    let mut all = vec![None, Some(String::new()), Some("\0".into()), Some("\0\0".into())];
    for length in [1, 4, 7, 8, 11, 12, 13, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 200] {
        let text = "a".repeat(length);
        let changed = |at: usize| Some(format!("{}b{}", &text[..at], &text[at + 1..]));
        all.extend([changed(0), changed(length / 2), changed(length - 1), Some(text.clone())]);
    }
    all.push(Some("x".repeat(64 << 10)));
    all.push(Some(format!("{}y", "x".repeat((64 << 10) - 1))));
    all
}

/// A column of some of these strings, the chosen ones.
fn texts(data_type: &DataType, values: &[Option<String>], chosen: &[u32]) -> ArrayRef {
    use DataType as T;
    let texts = || chosen.iter().map(|at| values[*at as usize].as_deref());
    let bytes = || texts().map(|text| text.map(str::as_bytes));
    match data_type {
        T::Utf8 => Arc::new(texts().collect::<StringArray>()),
        T::LargeUtf8 => Arc::new(texts().collect::<LargeStringArray>()),
        T::Binary => Arc::new(bytes().collect::<BinaryArray>()),
        T::LargeBinary => Arc::new(bytes().collect::<LargeBinaryArray>()),
        T::BinaryView => Arc::new(bytes().collect::<BinaryViewArray>()),
        _ => Arc::new(texts().collect::<StringViewArray>()),
    }
}

/// The same, as decoded from a chunk's dictionary: rows with the same string have the same view.
fn decoded(values: &[Option<String>], chosen: &[u32]) -> ArrayRef {
    let values: StringViewArray = values.iter().map(Option::as_deref).collect();
    let codes = UInt32Array::from(chosen.to_vec());
    arrow_select::take::take(&values, &codes, None).expect("codes are in the dictionary")
}

fn all_functions(column: usize) -> Vec<Aggregate> {
    use Function as F;
    let all = [F::CountRows, F::Count, F::Sum, F::Avg, F::Min, F::Max];
    all.into_iter().map(|function| Aggregate { function, column }).collect()
}

/// Row counts that make all rows distinct keys and partitioned, or none.
fn told(is_many: bool) -> Expected {
    Expected { rows: Some(if is_many { 1 << 40 } else { 0 }), ..Expected::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..Default::default() })]

    #[test]
    fn strings_that_are_nearly_the_same_are_told_apart(
        seed in 0_u64..1 << 40,
        count in select(vec![1_usize, 40, 700, 3000]),
        data_type in select(vec![
            DataType::Utf8View, DataType::Utf8, DataType::LargeUtf8, DataType::Binary,
            DataType::LargeBinary, DataType::BinaryView,
        ]),
        others in select(vec![vec![], vec![DataType::Int64], vec![DataType::Utf8View, DataType::Int8]]),
        behind in any::<bool>(),
        is_decoded in any::<bool>(),
        value in select(vec![DataType::Int64, DataType::Float64, DataType::Decimal128(38, 10)]),
        is_many in any::<bool>(),
        (inputs, outputs) in (1_usize..4, 1_usize..4),
        batch_in in select(vec![3_usize, 600, 5000]),
    ) {
        let values = alike();
        let chosen = numbers(seed, count, Spread::Uniform(values.len() as u64));
        let chosen: Vec<u32> = chosen.into_iter().map(|at| at as u32).collect();
        let mut columns = vec![match is_decoded {
            true => decoded(&values, &chosen),
            false => texts(&data_type, &values, &chosen),
        }];
        for (at, other) in others.iter().enumerate() {
            let few = numbers(seed + at as u64 + 1, count, Spread::Uniform(4));
            let few: Vec<Option<u64>> = few.into_iter().map(|at| (at > 0).then_some(at)).collect();
            columns.push(column(other, &few));
        }
        if behind {
            columns.reverse();
        }
        let keys = columns.len();
        let nulls: Vec<Option<u64>> =
            numbers(seed + 9, count, Spread::Uniform(50)).into_iter().map(|at| at.checked_sub(9)).collect();
        columns.push(column(&value, &nulls));
        let (_, rows) = batch(columns);
        let query = Query { keys: (0..keys).collect(), aggregates: all_functions(keys) };
        let plain = Shape::plain(Variant::Auto);
        let shape = Shape { inputs, outputs, batch_in, expected: told(is_many), ..plain };
        assert_streams_right(&two_workers(), &query, &rows, &shape);
    }
}

/// Distinct strings of some kind, and a number for each.
fn distinct(count: usize, keys: u64) -> arrow_array::RecordBatch {
    let key = |row: u64| Some(format!("a rather long string with the number {}", row % keys));
    let keys: StringViewArray = (0..count as u64).map(key).collect();
    let values = Int64Array::from_iter_values(0..count as i64);
    batch(vec![Arc::new(keys), Arc::new(values)]).1
}

fn sums() -> Query {
    let sum = Aggregate { function: Function::Sum, column: 1 };
    Query { keys: vec![0], aggregates: vec![sum] }
}

/// The estimate is wrong both ways: all rows are one key although they were partitioned, and all are distinct although
/// few groups were expected, so that a table is set aside and the rest partitioned.
#[test]
fn one_key_and_many_whatever_was_expected() {
    let context = two_workers();
    for (keys, is_many) in [(1, true), (200_000, false), (200_000, true)] {
        let rows = distinct(200_000, keys);
        let shape = Shape { expected: told(is_many), ..Shape::plain(Variant::Auto) };
        assert_streams_right(&context, &sums(), &rows, &shape);
    }
}

#[test]
fn partitioned_rows_are_charged_and_released() {
    let rows = distinct(40_000, 40_000);
    let (mut failed, mut ran) = (0, 0);
    for limit in (14..26).map(|power| Bytes(1 << power)) {
        let budget = Arc::new(FixedBudget::new(limit));
        let context = context(machines::two_nodes(), Some(2), Some(budget.clone()));
        let shape = Shape { expected: told(true), ..Shape::plain(Variant::Auto) };
        match stream(&context, &sums(), &rows, &shape) {
            Ok(batches) => {
                let wanted = reference::group(&sums(), &[Part::new(None, rows.clone())]);
                let found = reference::rows(1, &batches);
                reference::assert_same(&found, &wanted.expect("no overflow"), "dealt");
                ran += 1;
            }
            Err(PrimitiveError::Memory(_)) => failed += 1,
            Err(other) => panic!("{limit}: {other}"),
        }
        assert_eq!(budget.used(), Bytes(0), "{limit}");
    }
    assert!(failed > 4 && ran > 2, "{failed} runs failed, {ran} did not");
}
