//! Rows of all shapes on machines of all shapes.

use arrow_schema::DataType;
use atoll_primitives::aggregate::{Aggregate, Function, Query, Variant};
use atoll_primitives::{Part, hash};
use atoll_testkit::machines;
use atoll_topology::Bytes;

use super::data::{Spread, batch, column, numbers, sparse, with_nulls};
use super::meeting::Meeting;
use super::{assert_right, context, parts, run, sum_by, two_workers};

/// Rows of a key and a value, keys far apart or near.
fn rows(
    count: usize,
    spread: Spread,
    far: bool,
) -> (arrow_schema::SchemaRef, arrow_array::RecordBatch) {
    let keys = numbers(1, count, spread).into_iter();
    let keys: Vec<Option<u64>> =
        keys.map(|key| Some(if far { sparse(key) } else { key })).collect();
    let values = with_nulls(2, &numbers(2, count, Spread::Uniform(1000)), 0.0);
    batch(vec![column(&DataType::Int64, &keys), column(&DataType::Int64, &values)])
}

#[test]
fn no_rows_and_no_parts_have_no_groups() {
    let context = two_workers();
    let (schema, none) = rows(0, Spread::Distinct, false);
    let (_, one) = rows(1, Spread::Distinct, false);
    for parts in [
        vec![],
        vec![Part::new(None, none.clone())],
        vec![Part::new(None, none.clone()), Part::new(None, one.clone()), Part::new(None, none)],
        vec![Part::new(None, one)],
    ] {
        assert_right(&context, &sum_by(1), &schema, &parts);
        let count = Aggregate { function: Function::CountRows, column: 0 };
        assert_right(&context, &Query { keys: vec![], aggregates: vec![count] }, &schema, &parts);
    }
}

#[test]
fn keys_of_every_spread() {
    let context = two_workers();
    for spread in [
        Spread::Uniform(1),
        Spread::Uniform(3000),
        Spread::Zipf(3000),
        Spread::Hot(3000),
        Spread::Distinct,
        Spread::Sorted(2000),
        Spread::Reversed(2000),
    ] {
        for far in [false, true] {
            let (schema, rows) = rows(6000, spread, far);
            for count in [1, 300] {
                assert_right(&context, &sum_by(1), &schema, &parts(&rows, count, &[None]));
            }
        }
    }
}

#[test]
fn machines_of_every_shape_and_parts_of_every_home() {
    let (schema, rows) = rows(3000, Spread::Zipf(900), true);
    for machine in machines::all() {
        let ids: Vec<u32> = machine.nodes.iter().map(|node| node.id.0).collect();
        let context = context(machine, None, None);
        let mut homes: Vec<Option<u32>> = ids.into_iter().map(Some).collect();
        homes.extend([None, Some(77)]);
        assert_right(&context, &sum_by(1), &schema, &parts(&rows, 20, &homes));
    }
}

#[test]
fn more_workers_than_rows() {
    let context = context(machines::one_node(), Some(24), None);
    for count in [1, 5, 23] {
        let (schema, rows) = rows(count, Spread::Uniform(4), true);
        assert_right(&context, &sum_by(1), &schema, &parts(&rows, 3, &[None]));
    }
}

#[test]
fn a_hot_keys_piece_is_shared_by_all_workers() {
    let context = two_workers();
    let (schema, rows) = rows(400_000, Spread::Hot(2000), true);
    let parts = [Part::new(None, rows)];
    let expected = super::reference::group(&sum_by(1), &parts).expect("nothing overflows");
    let outcome = run(&context, &sum_by(1), &schema, &parts, Variant::Ring).expect("it runs");
    let found = super::reference::rows(1, &outcome.batches);
    super::reference::assert_same(&found, &expected, &outcome.reason);
}

#[test]
fn dense_tables_of_many_groups_are_merged_by_all_workers() {
    let context = context(machines::one_node(), Some(3), Some(Meeting::for_workers(3)));
    let (schema, rows) = rows(600_000, Spread::Uniform(60_000), false);
    let parts = parts(&rows, 12, &[None]);
    let expected = super::reference::group(&sum_by(1), &parts).expect("nothing overflows");
    let outcome = run(&context, &sum_by(1), &schema, &parts, Variant::Local).expect("it runs");
    assert!(outcome.batches.len() > 3, "{} batches", outcome.batches.len());
    let found = super::reference::rows(1, &outcome.batches);
    super::reference::assert_same(&found, &expected, &outcome.reason);
}

/// The sample sees close keys, the rest has others: the expectation is wrong.
fn surprise(
    count: usize,
    other: impl Fn(u64) -> u64,
) -> (arrow_schema::SchemaRef, arrow_array::RecordBatch) {
    // The sample takes every third of 100 000 rows, by the hash of their number.
    let is_sampled = |row: u64| row % 3 == hash::word(row / 3) % 3;
    let key = |row| if is_sampled(row) { row / 3 % 90 } else { other(row) };
    let keys = (0..count as u64).map(|row| Some(key(row)));
    let values = with_nulls(2, &numbers(2, count, Spread::Uniform(1000)), 0.0);
    let keys: Vec<Option<u64>> = keys.collect();
    batch(vec![column(&DataType::Int64, &keys), column(&DataType::Int64, &values)])
}

#[test]
fn keys_outside_of_the_expected_range_are_found() {
    let context = two_workers();
    let (schema, rows) = surprise(100_000, |row| if row > 50_000 { sparse(row) } else { 5 });
    assert_right(&context, &sum_by(1), &schema, &parts(&rows, 1, &[None]));
}

#[test]
fn far_more_groups_than_expected_are_aggregated() {
    let context = two_workers();
    let (schema, rows) = surprise(100_000, |row| sparse(row) | 1 << 62);
    let parts = parts(&rows, 1, &[None]);
    assert_right(&context, &sum_by(1), &schema, &parts);
    let outcome = run(&context, &sum_by(1), &schema, &parts, Variant::Auto).expect("it runs");
    assert!(outcome.reason.contains(" 90 groups expected"), "{}", outcome.reason);
}

/// Remote and total bytes of the aggregation if each of 16 workers has partitioned rows of its own node.
fn bytes(variant: Variant) -> (Bytes, Bytes) {
    let context = context(machines::four_nodes(), None, Some(Meeting::for_workers(16)));
    let (schema, rows) = rows(40_000, Spread::Uniform(9000), true);
    let homes = [Some(0), Some(1), Some(2), Some(3)];
    let parts = parts(&rows, 16, &homes);
    let outcome = run(&context, &sum_by(1), &schema, &parts, variant).expect("it runs");
    let phase = outcome.phases.iter().find(|phase| phase.name == "aggregate").expect("it is there");
    let spent = phase.spent.expect("the time is split");
    assert!(spent.read + spent.update > std::time::Duration::ZERO);
    assert_eq!(spent.copy > std::time::Duration::ZERO, variant == Variant::MigrateCopy);
    (phase.bytes.remote(), phase.bytes.total())
}

#[test]
fn migration_reads_pieces_where_they_lie_and_a_copied_table_once_for_each_step() {
    let pieces = Bytes(40_000 * 16);
    let (remote, total) = bytes(Variant::Ring);
    assert!(remote > Bytes(0) && total >= pieces, "{remote} of {total}");
    assert_eq!(bytes(Variant::Migrate).0, Bytes(0));
    let (remote, total) = bytes(Variant::MigrateCopy);
    assert!(remote > Bytes(0) && total > pieces, "{remote} of {total}");
}
