//! Every kind of hash join, in every variant.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use atoll_primitives::join::{JoinInput, JoinKind, JoinVariant, RowPairs, hash_join};
use atoll_primitives::{Context, Part};
use atoll_testkit::data::{Keys, rows};
use atoll_testkit::machines;
use proptest::prelude::*;

use super::reference::nested_loops;
use super::{context, join, parts, small, tiny_tables};

fn keys(seed: u64, count: usize, keys: Keys) -> Vec<Option<i64>> {
    rows(seed, count, keys).into_iter().map(|(key, _)| key).collect()
}

/// The same keys, far apart: no range of them is dense.
fn sparse(keys: &[Option<i64>]) -> Vec<Option<i64>> {
    let far = |key: i64| key.wrapping_mul(0x4f1b_bcdc_bfa5_3e0b) ^ i64::MIN;
    keys.iter().map(|key| key.map(far)).collect()
}

/// Compares all kinds of joins, both ways round.
fn compare(context: &Context, left: &[Option<i64>], right: &[Option<i64>]) -> Vec<JoinVariant> {
    let (left_input, right_input) =
        (JoinInput::new(parts(context, left), [0]), JoinInput::new(parts(context, right), [0]));
    let mut variants = Vec::new();
    for kind in JoinKind::ALL {
        let (found, report) = join(context, &left_input, &right_input, kind);
        assert_eq!(found, nested_loops(left, right, kind), "{kind:?}, {:?}", report.variant);
        variants.push(report.variant);
        let (found, report) = join(context, &right_input, &left_input, kind);
        assert_eq!(found, nested_loops(right, left, kind), "{kind:?}, {:?}", report.variant);
    }
    variants
}

/// Keys of a side; None for null.
type SideKeys = Vec<Option<i64>>;

fn hostile() -> Vec<(SideKeys, SideKeys)> {
    let all = |key, count| vec![Some(key); count];
    vec![
        (vec![], vec![]),
        (vec![], keys(1, 50, Keys::Uniform(5))),
        (vec![Some(1)], vec![Some(1)]),
        (vec![None], vec![None]),
        (vec![None; 30], keys(2, 300, Keys::Uniform(5))),
        (all(7, 60), all(7, 300)),
        (all(7, 60), all(8, 300)),
        (keys(3, 100, Keys::Unique), keys(4, 900, Keys::Uniform(100))),
        (keys(3, 100, Keys::Unique), keys(4, 900, Keys::Uniform(2000))),
        (keys(5, 90, Keys::Uniform(30)), keys(6, 400, Keys::Uniform(40))),
        (keys(7, 200, Keys::Unique), keys(8, 900, Keys::Skewed(200))),
        (keys(9, 60, Keys::Skewed(20)), keys(10, 300, Keys::Skewed(20))),
        (vec![Some(i64::MIN), Some(i64::MAX), Some(0), Some(-1)], keys(11, 40, Keys::Uniform(3))),
        (vec![Some(i64::MIN), Some(i64::MAX)], vec![Some(i64::MAX), None, Some(i64::MIN)]),
    ]
}

#[test]
fn every_kind_finds_what_nested_loops_find_on_hostile_keys() {
    let whole = small();
    let pieces = small().with_tuning(tiny_tables());
    for (left, right) in hostile() {
        for context in [&whole, &pieces] {
            compare(context, &left, &right);
            compare(context, &sparse(&left), &sparse(&right));
        }
    }
}

#[test]
fn dense_unique_keys_are_joined_directly_and_others_are_hashed() {
    let (dense, probe) = (keys(1, 300, Keys::Unique), keys(2, 900, Keys::Uniform(400)));
    let variants = compare(&small(), &dense, &probe);
    assert!(variants.iter().all(|variant| matches!(variant, JoinVariant::Direct { .. })));
    let variants = compare(&small(), &sparse(&dense), &sparse(&probe));
    assert!(variants.iter().all(|variant| *variant == JoinVariant::OneTable), "{variants:?}");
    let pieces = small().with_tuning(tiny_tables());
    let variants = compare(&pieces, &sparse(&dense), &sparse(&probe));
    assert!(
        variants.iter().all(|variant| matches!(variant, JoinVariant::Pieces { pieces: 32, .. }))
    );
}

#[test]
fn a_filter_drops_rows_without_a_match_if_most_have_none() {
    let pieces = small().with_tuning(tiny_tables());
    let (build, probe) = (keys(1, 200, Keys::Unique), keys(2, 3000, Keys::Uniform(4000)));
    let passed = |variant: &JoinVariant| match variant {
        JoinVariant::Pieces { passed, .. } => *passed,
        _ => None,
    };
    let variants = compare(&pieces, &sparse(&build), &sparse(&probe));
    assert!(variants.iter().all(|variant| passed(variant).is_some_and(|share| share < 0.3)));
    let probe = keys(2, 3000, Keys::Uniform(200));
    let variants = compare(&pieces, &sparse(&build), &sparse(&probe));
    assert!(variants.iter().all(|variant| passed(variant).is_none()), "{variants:?}");
}

#[test]
fn machines_of_all_shapes_find_the_same() {
    let (left, right) = (keys(1, 120, Keys::Uniform(90)), keys(2, 700, Keys::Skewed(120)));
    for machine in machines::all() {
        let context = context(machine, None);
        compare(&context, &left, &right);
        compare(&context.with_tuning(tiny_tables()), &sparse(&left), &sparse(&right));
    }
}

#[test]
fn more_workers_than_rows_find_the_same() {
    let context = context(machines::two_nodes(), Some(16));
    compare(&context, &[Some(1), None, Some(2)], &[Some(2), Some(2), Some(3), Some(1)]);
}

#[test]
fn a_column_is_carried_along_as_payload_whatever_its_range() {
    let context = small().with_tuning(tiny_tables());
    let keys: Vec<Option<i64>> = (0..300).map(Some).collect();
    for (base, step) in [(0_u64, 1_u64), (u64::MAX - 300, 1), (0, u64::MAX / 300), (5, 1 << 40)] {
        let payloads: Vec<u64> = (0..300).map(|row| base.wrapping_add(step * row)).collect();
        for keys in [&keys, &sparse(&keys)] {
            let columns: [(&str, ArrayRef); 2] = [
                ("key", Arc::new(Int64Array::from(keys.clone()))),
                ("payload", Arc::new(UInt64Array::from(payloads.clone()))),
            ];
            let part = Part::new(None, RecordBatch::try_from_iter(columns).expect("a batch"));
            let side = JoinInput::new(vec![part], [0]).with_payload(1);
            let joined = hash_join(&context, &side, &side, JoinKind::Full, |_| RowPairs::default());
            let joined = context.runtime().block_on(joined).expect("the join ends");
            let mut pairs = super::found(joined.consumers).0;
            pairs.sort_by_key(|(left, _)| payloads.iter().position(|payload| payload == left));
            assert!(pairs.iter().all(|(left, right)| left == right));
            assert_eq!(pairs.into_iter().map(|(left, _)| left).collect::<Vec<_>>(), payloads);
        }
    }
}

#[test]
fn a_hot_key_is_probed_by_all_workers() {
    let context = small().with_tuning(tiny_tables());
    let build = sparse(&keys(1, 400, Keys::Unique));
    let hot = build.iter().position(Option::is_some).expect("a key that is not null");
    let of = |row: usize| if row.is_multiple_of(20) { row % 400 } else { hot };
    let probe: Vec<_> = (0..300_000).map(|row| build[of(row)]).collect();
    let (left, right) = (
        JoinInput::new(parts(&context, &build), [0]),
        JoinInput::new(parts(&context, &probe), [0]),
    );
    let ((pairs, ..), report) = join(&context, &left, &right, JoinKind::Inner);
    let expected = probe.iter().filter(|key| key.is_some()).count();
    assert!(
        pairs.len() <= expected
            && pairs.iter().all(|(l, r)| build[*l as usize] == probe[*r as usize])
    );
    assert_eq!(pairs.len(), expected);
    let names: Vec<_> = report.steps.iter().map(|step| step.name.as_str()).collect();
    assert!(names.contains(&"probe shared piece"), "{names:?}");
    let ((_, alone, _), _) = join(&context, &left, &right, JoinKind::LeftSemi);
    assert!(alone.windows(2).all(|rows| rows[0] < rows[1]), "each row once");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_keys_find_what_nested_loops_find(
        left in proptest::collection::vec(proptest::option::weighted(0.9, -20_i64..40), 0..120),
        right in proptest::collection::vec(proptest::option::weighted(0.9, 0_i64..60), 0..240),
        spread in any::<bool>(),
        tiny in any::<bool>(),
    ) {
        let context = if tiny { small().with_tuning(tiny_tables()) } else { small() };
        if spread {
            compare(&context, &sparse(&left), &sparse(&right));
        } else {
            compare(&context, &left, &right);
        }
    }
}
