//! The sort-merge join through every shuffle, on machines of several shapes.

use atoll_primitives::join::mpsm::{MpsmOptions, MpsmReport, Remote, mpsm_join};
use atoll_primitives::join::{JoinInput, JoinKind, RowPairs};
use atoll_primitives::shuffle::{Coordination, Moved, Order, Shuffle};
use atoll_primitives::{Context, PrimitiveError};
use atoll_testkit::data::{Keys, rows};
use atoll_testkit::machines;
use proptest::prelude::*;

use super::reference::nested_loops;
use super::{Found, context, found, parts, small};

const RING: Shuffle =
    Shuffle { order: Order::Ring, moved: Moved::Pulled, coordination: Coordination::Tight };

fn shuffles() -> impl Iterator<Item = Shuffle> {
    let orders = [Order::Naive, Order::Random(7), Order::Ring];
    orders.into_iter().flat_map(|order| {
        Moved::ALL.into_iter().flat_map(move |moved| {
            [Coordination::Tight, Coordination::Loose].map(|coordination| Shuffle {
                order,
                moved,
                coordination,
            })
        })
    })
}

fn mpsm(
    context: &Context,
    fact: &[Option<i64>],
    dimension: &[Option<i64>],
    options: MpsmOptions,
) -> (Found, MpsmReport) {
    let fact = JoinInput::new(parts(context, fact), [0]);
    let dimension = JoinInput::new(parts(context, dimension), [0]);
    let join = mpsm_join(context, &fact, &dimension, options, |_| RowPairs::default());
    let (consumers, report) = context.runtime().block_on(join).expect("the join ends");
    (found(consumers), report)
}

fn compare(context: &Context, fact: &[Option<i64>], dimension: &[Option<i64>], shuffle: Shuffle) {
    for remote in [None, Some(Remote::Dimension), Some(Remote::Fact)] {
        let (found, _) = mpsm(context, fact, dimension, MpsmOptions { shuffle, remote });
        let expected = nested_loops(fact, dimension, JoinKind::Inner);
        assert_eq!(found, expected, "{shuffle:?}, {remote:?}");
    }
}

fn keys(seed: u64, count: usize, keys: Keys) -> Vec<Option<i64>> {
    rows(seed, count, keys).into_iter().map(|(key, _)| key).collect()
}

#[test]
fn every_shuffle_and_both_readings_find_what_nested_loops_find() {
    let (fact, dimension) = (keys(1, 400, Keys::Skewed(50)), keys(2, 80, Keys::Uniform(70)));
    let context = context(machines::two_nodes(), Some(5));
    for shuffle in shuffles() {
        compare(&context, &fact, &dimension, shuffle);
    }
}

#[test]
fn machines_of_all_shapes_and_hostile_keys_find_the_same() {
    let all = |key, count| vec![Some(key); count];
    for machine in machines::all() {
        let context = context(machine, None);
        compare(&context, &keys(1, 300, Keys::Uniform(99)), &keys(2, 90, Keys::Unique), RING);
        compare(&context, &[], &keys(2, 9, Keys::Unique), RING);
        compare(&context, &all(5, 50), &all(5, 20), RING);
        compare(&context, &[None, None], &[None, Some(i64::MIN)], RING);
        compare(
            &context,
            &[Some(i64::MIN), Some(i64::MAX), Some(-1)],
            &[Some(-1), Some(i64::MAX)],
            RING,
        );
    }
}

#[test]
fn the_report_has_four_phases_and_the_cheaper_reading_is_taken() {
    let context = context(machines::two_nodes(), Some(4));
    let (large, small) = (keys(1, 3000, Keys::Uniform(500)), keys(2, 60, Keys::Unique));
    let options = MpsmOptions { shuffle: RING, remote: None };
    let (_, report) = mpsm(&context, &large, &small, options);
    assert_eq!(report.remote, Remote::Dimension);
    assert!(report.remote_bytes[0] < report.remote_bytes[1]);
    assert!(report.phases.iter().all(|phase| phase.bytes.total().0 > 0), "{:?}", report.phases);
    let (_, report) = mpsm(&context, &small, &large, options);
    assert_eq!(report.remote, Remote::Fact);
}

#[test]
fn keys_that_fit_no_word_are_refused() {
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    let context = small();
    let texts: ArrayRef = std::sync::Arc::new(StringArray::from(vec!["a"]));
    let rows = RecordBatch::try_from_iter([("text", texts)]).expect("a batch");
    let side = JoinInput::new(vec![atoll_primitives::Part::new(None, rows)], [0]);
    let options = MpsmOptions { shuffle: RING, remote: None };
    let join = mpsm_join(&context, &side, &side, options, |_| RowPairs::default());
    let error = context.runtime().block_on(join).expect_err("text is refused");
    assert!(matches!(error, PrimitiveError::Type { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_keys_and_workers_find_what_nested_loops_find(
        fact in proptest::collection::vec(proptest::option::weighted(0.9, -20_i64..40), 0..300),
        dimension in proptest::collection::vec(proptest::option::weighted(0.9, 0_i64..60), 0..100),
        workers in 1_usize..9,
    ) {
        let context = context(machines::two_nodes(), Some(workers));
        compare(&context, &fact, &dimension, RING);
    }
}
