//! Stages, collectors and outputs driven by hand: late, uneven and empty inputs.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use atoll_placement::FixedBudget;
use atoll_primitives::aggregate::{
    Collector, Ended, Expected, Gathered, Next, Outputs, Stage, Variant,
};
use atoll_primitives::{Context, Part, PrimitiveError};
use atoll_testkit::machines;
use atoll_topology::{Bytes, NodeId};

use super::data::{Spread, batch, column, numbers, sparse, with_nulls};
use super::streaming::{Shape, assert_streams_right, far_keys, gathered, stream};
use super::{context, reference, sum_by, two_workers};

fn stage(context: &Context, rows: &RecordBatch, outputs: usize, variant: Variant) -> Arc<Stage> {
    let expected = Expected::default();
    let stage =
        Stage::new(context.clone(), &sum_by(1), &rows.schema(), outputs, &expected, variant);
    Arc::new(stage.expect("it can be made"))
}

/// The groups of all outputs; outputs take turns, one step each.
fn drain(gathered: &Arc<Gathered>, outputs: usize) -> Vec<RecordBatch> {
    let output = |at| Outputs::new(Arc::clone(gathered), at, None, 1000);
    let mut open: Vec<Outputs> = (0..outputs).map(output).collect();
    let mut batches = Vec::new();
    while !open.is_empty() {
        open.retain_mut(|output| match output.advance().expect("nothing overflows") {
            Next::Visit(_) => output.visit().is_ok(),
            Next::Batch(batch) => {
                batches.push(batch);
                true
            }
            Next::End => false,
        });
    }
    batches
}

#[track_caller]
fn assert_same(rows: &[RecordBatch], batches: &[RecordBatch], what: &str) {
    let parts: Vec<Part> = rows.iter().map(|rows| Part::new(None, rows.clone())).collect();
    let expected = reference::group(&sum_by(1), &parts).expect("nothing overflows");
    reference::assert_same(&reference::rows(1, batches), &expected, what);
}

/// Inputs end with one row, with none, and with many; the first rows of the longest input decide, in any order.
#[test]
fn an_input_that_ends_early_decides_nothing() {
    let context = two_workers();
    let many = far_keys(120_000, 100_000);
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let inputs = [many.slice(0, 1), many.slice(0, 0), many.clone()];
        let stage = stage(&context, &many, 2, Variant::Auto);
        let mut ended = Vec::new();
        for at in order {
            let mut collector = Collector::new(Arc::clone(&stage), None);
            collector.push(&inputs[at]).expect("it takes its rows");
            ended.push(collector.end().expect("it ends"));
            let decided = stage.chosen().is_some();
            assert_eq!(decided, order[..ended.len()].contains(&2), "{order:?}, {at}");
        }
        stage.settle(&ended).expect("it settles");
        let finish = |ended: Ended| ended.finish().expect("it finishes");
        let collected = ended.into_iter().map(finish).collect();
        let gathered = Arc::new(Gathered::new(Arc::clone(&stage), collected));
        assert_same(&inputs, &drain(&gathered, 2), &format!("{order:?}"));
        let (variant, reason) = stage.chosen().expect("it was decided");
        assert_eq!(variant, Variant::Ring, "{reason}");
    }
}

/// Inputs are shorter than a collector's sample: all their rows decide.
#[test]
fn inputs_that_are_all_short_decide_together() {
    let context = two_workers();
    let rows = far_keys(3 * 30_000, 80_000);
    let stage = stage(&context, &rows, 4, Variant::Auto);
    let inputs: Vec<_> = (0..3).map(|at| rows.slice(at * 30_000, 30_000)).collect();
    let mut collectors = Vec::new();
    for rows in &inputs {
        let mut collector = Collector::new(Arc::clone(&stage), None);
        collector.push(rows).expect("it takes its rows");
        collectors.push(collector);
    }
    assert_eq!(stage.chosen(), None);
    let gathered = gathered(&stage, collectors).expect("it settles");
    assert_same(&inputs, &drain(&gathered, 4), "short inputs");
    let (_, reason) = stage.chosen().expect("it was decided");
    assert!(reason.contains("80000 groups expected"), "{reason}");
}

#[test]
fn no_rows_give_no_groups_and_no_decision() {
    let context = two_workers();
    let rows = far_keys(10, 10);
    let stage = stage(&context, &rows, 3, Variant::Auto);
    let collector = |_| Collector::new(Arc::clone(&stage), None);
    let gathered = gathered(&stage, (0..4).map(collector).collect()).expect("it settles");
    assert!(drain(&gathered, 3).is_empty());
    assert_eq!(stage.chosen(), None);
}

/// One output takes all pieces, including shared ones, and the others find nothing left.
#[test]
fn outputs_may_be_read_one_after_the_other() {
    let context = two_workers();
    for (keys, variant) in [(50_000, Variant::Ring), (50_000, Variant::Local), (2, Variant::Ring)] {
        let rows = far_keys(if keys == 2 { 540_000 } else { 60_000 }, keys);
        let stage = stage(&context, &rows, 3, variant);
        let mut collector = Collector::new(Arc::clone(&stage), None);
        collector.push(&rows).expect("it takes its rows");
        let gathered = gathered(&stage, vec![collector]).expect("it settles");
        let mut batches = Vec::new();
        for output in 0..3 {
            let mut output = Outputs::new(Arc::clone(&gathered), output, None, 1 << 20);
            loop {
                match output.advance().expect("it goes on") {
                    Next::Visit(_) => output.visit().expect("it reads"),
                    Next::Batch(batch) => batches.push(batch),
                    Next::End => break,
                }
            }
        }
        assert_same(&[rows], &batches, &format!("{keys} keys, {variant}"));
    }
}

/// Outputs read a piece with nearly all rows in parts, in turn.
#[test]
fn a_hot_keys_piece_is_shared_by_outputs() {
    let context = two_workers();
    let keys: Vec<Option<u64>> = (0..320_000_u64)
        .map(|row| Some(sparse(if row % 10 == 0 { row % 5000 } else { 7 })))
        .collect();
    let values = with_nulls(2, &numbers(2, keys.len(), Spread::Uniform(1000)), 0.0);
    let (_, rows) = batch(vec![column(&DataType::Int64, &keys), column(&DataType::Int64, &values)]);
    let stage = stage(&context, &rows, 3, Variant::Ring);
    let halves = [rows.slice(0, 120_000), rows.slice(120_000, 200_000)];
    let mut collectors = Vec::new();
    for half in &halves {
        let mut collector = Collector::new(Arc::clone(&stage), None);
        collector.push(half).expect("it takes its rows");
        collectors.push(collector);
    }
    let gathered = gathered(&stage, collectors).expect("it settles");
    assert_same(&halves, &drain(&gathered, 3), "hot");
}

/// Bytes of all visits, of those to which the thread travels, and of tables that move along, with an input and an
/// output on every node.
fn visited(variant: Variant) -> [usize; 3] {
    let context = context(machines::four_nodes(), None, None);
    let rows = far_keys(40_000, 9000);
    let stage = stage(&context, &rows, 4, variant);
    let collector = |node: u32| {
        let mut collector = Collector::new(Arc::clone(&stage), Some(NodeId(node)));
        let rows = rows.slice(node as usize * 10_000, 10_000);
        collector.push(&rows).expect("it takes its rows");
        collector
    };
    let gathered = gathered(&stage, (0..4).map(collector).collect()).expect("it settles");
    let mut bytes = [0; 3];
    for at in 0..4 {
        let home = Some(NodeId(at as u32));
        let mut output = Outputs::new(Arc::clone(&gathered), at, home, 1 << 20);
        loop {
            match output.advance().expect("it goes on") {
                Next::Visit(visit) => {
                    bytes[0] += visit.bytes;
                    bytes[1] += if visit.travels { visit.bytes } else { 0 };
                    bytes[2] += visit.copied.map_or(0, |(_, bytes)| bytes);
                    output.visit().expect("it reads");
                }
                Next::Batch(_) => {}
                Next::End => break,
            }
        }
    }
    bytes
}

#[test]
fn threads_migrate_to_all_rows_and_only_those_that_copy_take_their_tables_along() {
    let all = 40_000 * 16;
    for variant in [Variant::Naive, Variant::Ring] {
        assert_eq!(visited(variant), [all, 0, 0], "{variant}");
    }
    assert_eq!(visited(Variant::Migrate), [all, all, 0]);
    let [read, travelled, copied] = visited(Variant::MigrateCopy);
    assert_eq!((read, travelled), (all, all));
    assert!(copied > 0, "{copied}");
}

/// Long keys arrive in one input after all others have collected words.
#[test]
fn a_long_key_may_arrive_in_any_input_at_any_time() {
    let context = two_workers();
    let short = |row: u64| Some(row % 3000);
    let text = |long: bool| {
        let keys: Vec<Option<u64>> = (0..60_000).map(short).collect();
        let texts: arrow_array::StringViewArray = keys
            .iter()
            .map(|key| {
                key.map(|key| if long { format!("a long key {key}") } else { format!("{key}") })
            })
            .collect();
        batch(vec![Arc::new(texts), column(&DataType::Int64, &keys)]).1
    };
    let (few, many) = (text(false), text(true));
    for variant in [Variant::Auto, Variant::Local, Variant::Ring, Variant::MigrateCopy] {
        for last in [many.slice(0, 3), many.clone()] {
            let inputs = [few.clone(), few.slice(0, 9), last.clone()];
            let stage = stage(&context, &few, 3, variant);
            let mut collectors = Vec::new();
            for rows in &inputs {
                let mut collector = Collector::new(Arc::clone(&stage), None);
                collector.push(rows).expect("it takes its rows");
                collectors.push(collector);
            }
            let gathered = gathered(&stage, collectors).expect("it settles");
            assert_same(&inputs, &drain(&gathered, 3), &format!("{variant}"));
        }
    }
}

/// Too many long keys for a table: tables are set aside piece by piece.
#[test]
fn more_long_keys_than_the_caches_hold_are_grouped() {
    let context = two_workers();
    let keys: Vec<Option<u64>> =
        (0..400_000_u64).map(|row| Some(row.wrapping_mul(7919) % 150_000)).collect();
    let texts: arrow_array::StringViewArray =
        keys.iter().map(|key| key.map(|key| format!("customer {key:09}"))).collect();
    let (_, rows) = batch(vec![Arc::new(texts), column(&DataType::Int64, &keys)]);
    // More rows are expected than arrive, and so are groups.
    let expected = Expected { rows: Some(1 << 40), ..Expected::default() };
    for inputs in [1, 2] {
        let shape = Shape {
            inputs,
            outputs: 3,
            batch_in: 50_000,
            expected: expected.clone(),
            ..Shape::plain(Variant::Auto)
        };
        assert_streams_right(&context, &sum_by(1), &rows, &shape);
    }
}

/// Rows of a small range, and then others, for dense tables and for pieces by range.
#[test]
fn keys_outside_of_the_range_of_the_first_rows_are_found() {
    let context = two_workers();
    let key = |row: u64| {
        if row > 90_000 { sparse(row % 40_000) } else { row.wrapping_mul(7919) % 40_000 }
    };
    let keys: Vec<Option<u64>> = (0..200_000).map(|row| Some(key(row))).collect();
    let values = with_nulls(2, &numbers(2, keys.len(), Spread::Uniform(1000)), 0.1);
    let (_, rows) = batch(vec![column(&DataType::Int64, &keys), column(&DataType::Int64, &values)]);
    for variant in Variant::ALL {
        for inputs in [1, 3] {
            let shape = Shape {
                inputs,
                outputs: 3,
                batch_in: 40_000,
                expected: Expected { keys: vec![(false, None)], ..Expected::default() },
                ..Shape::plain(variant)
            };
            assert_streams_right(&context, &sum_by(1), &rows, &shape);
        }
    }
}

/// A failing input releases its memory to the budget.
#[test]
fn an_input_that_runs_out_of_memory_releases_everything() {
    let rows = far_keys(200_000, 150_000);
    for variant in Variant::ALL {
        let budget = Arc::new(FixedBudget::new(Bytes(3 << 20)));
        let context = context(machines::one_node(), Some(2), Some(budget.clone()));
        let shape = Shape { batch_in: 50_000, ..Shape::plain(variant) };
        let error = stream(&context, &sum_by(1), &rows, &shape).expect_err("it is too much");
        assert!(matches!(error, PrimitiveError::Memory(_)), "{variant}: {error}");
        assert_eq!(budget.used(), Bytes(0), "{variant}");
    }
}
