//! Sorting against the standard library, on random and hostile input.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int64Array, RecordBatch, StringArray, UInt64Array,
};
use atoll_placement::{Arena, FixedBudget};
use atoll_primitives::sort::{SortBy, float_word, integer_word, sort, sort_rows};
use atoll_primitives::{Context, Part, PrimitiveError};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::{Bytes, Machine};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

fn context(machine: Machine, budget: Option<Arc<FixedBudget>>) -> Context {
    let machine = Arc::new(machine);
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let runtime = Runtime::start(Arc::clone(&machine), kernel.clone(), RuntimeOptions::default());
    let budget = budget.map(|budget| budget as _);
    Context::new(runtime.expect("the runtime starts"), Arena::new(machine, kernel, budget))
}

fn sorted(mut rows: Vec<[u64; 2]>) -> Vec<[u64; 2]> {
    let mut scratch = vec![[0; 2]; rows.len()];
    sort_rows(&mut rows, &mut scratch, &mut || Ok::<(), ()>(())).expect("nothing fails");
    rows
}

fn compare(keys: Vec<u64>) {
    let rows: Vec<[u64; 2]> = keys.into_iter().zip(0..).map(|(key, row)| [key, row]).collect();
    let mut expected = rows.clone();
    expected.sort_by_key(|row| row[0]);
    assert!(sorted(rows) == expected);
}

#[test]
fn rows_of_any_keys_are_sorted_and_equal_ones_keep_their_order() {
    let mut rng = StdRng::seed_from_u64(1);
    for count in [0, 1, 2, 24, 25, 1000, 70_000] {
        compare((0..count).map(|_| rng.random()).collect());
        compare((0..count).map(|_| rng.random_range(0..10)).collect());
        compare((0..count).map(|_| u64::MAX - rng.random_range(0..300)).collect());
        compare((0..count).collect());
        compare((0..count).rev().collect());
        compare(vec![7; count as usize]);
        compare((0..count).map(|_| 1 << rng.random_range(0..64)).collect());
        compare((0..count).map(|row| if row % 10 == 0 { rng.random() } else { 42 }).collect());
        compare((0..count).map(|row| [0, u64::MAX][row as usize % 2]).collect());
    }
}

#[test]
fn an_error_ends_a_sort() {
    let mut rows: Vec<[u64; 1]> =
        (0..100_000_u64).map(|row| [row.wrapping_mul(0x9e37_79b9)]).collect();
    let mut scratch = vec![[0]; rows.len()];
    assert_eq!(sort_rows(&mut rows, &mut scratch, &mut || Err("enough")), Err("enough"));
}

#[test]
fn words_are_in_the_order_of_their_values() {
    let integers = [i64::MIN, -7, -1, 0, 1, i64::MAX];
    assert!(integers.map(integer_word).is_sorted());
    let floats =
        [-f64::NAN, f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
    assert!(floats.map(float_word).windows(2).all(|words| words[0] < words[1]));
}

/// Row numbers in the order of their values, by the standard library.
fn reference<T>(values: &[Option<T>], by: SortBy, order: impl Fn(&T, &T) -> Ordering) -> Vec<u64> {
    let mut rows: Vec<u64> = (0..values.len() as u64).collect();
    rows.sort_by(|one, other| {
        let side =
            |first: bool| if first == by.nulls_first { Ordering::Less } else { Ordering::Greater };
        match (&values[*one as usize], &values[*other as usize]) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => side(true),
            (Some(_), None) => side(false),
            (Some(one), Some(other)) if by.descending => order(other, one),
            (Some(one), Some(other)) => order(one, other),
        }
    });
    rows
}

fn orders() -> impl Iterator<Item = SortBy> {
    (0..4).map(|bits| SortBy {
        column: 0,
        descending: bits & 1 != 0,
        nulls_first: bits & 2 != 0,
        stable: true,
    })
}

fn parts(context: &Context, column: ArrayRef) -> Vec<Part> {
    let nodes = &context.runtime().machine().nodes;
    let rows =
        RecordBatch::try_from_iter_with_nullable([("value", column, true)]).expect("a batch");
    let cuts = [0, rows.num_rows() / 5, rows.num_rows() / 2, rows.num_rows()];
    let parts = cuts.windows(2).zip(nodes.iter().cycle());
    parts.map(|(cut, node)| Part::new(node.id, rows.slice(cut[0], cut[1] - cut[0]))).collect()
}

fn row_numbers(context: &Context, column: ArrayRef, by: SortBy) -> Vec<u64> {
    let sorted = context.runtime().block_on(sort(context, &parts(context, column), by));
    sorted.expect("the sort ends").row_numbers().collect()
}

#[test]
fn columns_of_all_types_are_sorted_both_ways_with_nulls_on_either_end() {
    let context = context(machines::two_nodes(), None);
    let mut rng = StdRng::seed_from_u64(2);
    let small: Vec<Option<i8>> =
        (0..2000).map(|_| rng.random_bool(0.9).then(|| rng.random_range(-5..6))).collect();
    let floats: Vec<Option<f64>> = small
        .iter()
        .map(|value| {
            value.map(|value| match value {
                5 => f64::NAN,
                -5 => f64::NEG_INFINITY,
                0 => -0.0,
                value => f64::from(value) / 2.0,
            })
        })
        .collect();
    let decimals = Decimal128Array::from_iter(small.iter().map(|value| value.map(i128::from)));
    let decimals = decimals.with_precision_and_scale(18, 2).expect("a decimal");
    let whole: [ArrayRef; 4] = [
        Arc::new(Int8Array::from(small.clone())),
        Arc::new(Int64Array::from_iter(small.iter().map(|value| value.map(i64::from)))),
        Arc::new(Date32Array::from_iter(small.iter().map(|value| value.map(i32::from)))),
        Arc::new(decimals),
    ];
    for by in orders() {
        for column in &whole {
            let expected = reference(&small, by, i8::cmp);
            assert_eq!(
                row_numbers(&context, Arc::clone(column), by),
                expected,
                "{:?}",
                column.data_type()
            );
        }
        let expected = reference(&floats, by, f64::total_cmp);
        let wide: ArrayRef = Arc::new(Float64Array::from(floats.clone()));
        assert_eq!(row_numbers(&context, wide, by), expected);
        let narrow: ArrayRef = Arc::new(Float32Array::from_iter(
            floats.iter().map(|value| value.map(|value| value as f32)),
        ));
        assert_eq!(row_numbers(&context, narrow, by), expected);
    }
}

#[test]
fn machines_of_all_shapes_sort_skewed_and_empty_input() {
    let mut rng = StdRng::seed_from_u64(3);
    let skewed: Vec<Option<u64>> =
        (0..5000)
            .map(|row| {
                if row % 10 == 0 { Some(rng.random()) } else { (row % 3 != 0).then_some(u64::MAX) }
            })
            .collect();
    for machine in machines::all() {
        let context = context(machine, None);
        for values in [vec![], vec![Some(1)], vec![None; 20], skewed.clone()] {
            for by in orders() {
                let column: ArrayRef = Arc::new(UInt64Array::from(values.clone()));
                assert_eq!(row_numbers(&context, column, by), reference(&values, by, u64::cmp));
            }
        }
    }
}

#[test]
fn unsupported_columns_are_refused() {
    let context = context(machines::one_node(), None);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let parts = parts(&context, texts);
    let block_on = |column| {
        let sorted = sort(&context, &parts, SortBy::column(column));
        context.runtime().block_on(sorted).map(|_| ())
    };
    assert!(matches!(block_on(0), Err(PrimitiveError::Type { .. })));
    assert!(matches!(block_on(3), Err(PrimitiveError::Shape { .. })));
}

#[test]
fn a_budget_too_small_for_the_runs_is_an_error_and_everything_is_released() {
    let budget = Arc::new(FixedBudget::new(Bytes(4096)));
    let context = context(machines::one_node(), Some(Arc::clone(&budget)));
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
    let sorted =
        context.runtime().block_on(sort(&context, &parts(&context, column), SortBy::column(0)));
    assert!(matches!(sorted, Err(PrimitiveError::Memory(_))));
    assert_eq!(budget.used(), Bytes(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn random_words_are_sorted(keys in proptest::collection::vec(any::<u64>(), 0..3000), bits in 0_u32..64) {
        compare(keys.into_iter().map(|key| key >> bits).collect());
    }
}
