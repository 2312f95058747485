//! Radix partitioning: every row once, in order, in the piece of its digit.

use std::sync::Arc;

use atoll_placement::{Arena, FixedBudget};
use atoll_primitives::partition::{FanOut, Partitioner, Pieces};
use atoll_primitives::{Context, PrimitiveError, Tuning, hash};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::{Bytes, NodeId};

fn context(budget: Option<Arc<FixedBudget>>, buffer_rows: usize) -> Context {
    let machine = Arc::new(machines::two_nodes());
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let options = RuntimeOptions { threads: Some(1), ..RuntimeOptions::default() };
    let runtime = Runtime::start(Arc::clone(&machine), kernel.clone(), options);
    let arena = Arena::new(machine, kernel, budget.map(|budget| budget as _));
    let tuning = Tuning { buffer_rows, ..Tuning::default() };
    Context::new(runtime.expect("the runtime starts"), arena).with_tuning(tuning)
}

/// Row `at`: its number, then words made of it.
fn row<const W: usize>(at: usize) -> [u64; W] {
    std::array::from_fn(|word| (at as u64).wrapping_mul(word as u64 * 1000 + 1))
}

fn partition<const W: usize>(
    context: &Context,
    fan_out: FanOut,
    rows: usize,
    digit: impl Fn(usize) -> usize,
) -> Result<Pieces<W>, PrimitiveError> {
    let mut partitioner = Partitioner::<W>::new(context, Some(NodeId(1)), fan_out, rows / 2)?;
    let mut given = 0;
    for step in [0, 1, 2, 7, 500, usize::MAX] {
        let count = step.min(rows - given);
        partitioner.extend(count, |at| (digit(given + at), row(given + at)))?;
        given += count;
    }
    partitioner.finish()
}

fn assert_whole<const W: usize>(
    context: &Context,
    bits: u32,
    rows: usize,
    digit: impl Fn(usize) -> usize + Copy,
) {
    let fan_out = FanOut::of_bits(bits);
    let pieces = partition::<W>(context, fan_out, rows, digit).expect("memory is there");
    assert_eq!(pieces.total_rows(), rows);
    assert_eq!(pieces.home(), Some(NodeId(1)));
    let mask = fan_out.partitions() - 1;
    for piece in 0..fan_out.partitions() {
        let found = pieces.blocks(piece).flatten().copied();
        let expected = (0..rows).filter(|at| digit(*at) & mask == piece).map(row::<W>);
        if pieces.rows(piece) > 0 || rows < 1000 {
            assert!(found.eq(expected), "{W} words, 2^{bits}, {rows} rows, piece {piece}");
        }
    }
}

#[test]
fn pieces_hold_each_row_once_and_in_order_whatever_the_number_of_words() {
    for buffer_rows in [0, 8, 32, 64, 1 << 20] {
        let context = context(None, buffer_rows);
        for rows in [0, 1, 7, 63, 64, 65, 3000] {
            let digit = |at: usize| hash::word(at as u64) as usize;
            assert_whole::<1>(&context, 3, rows, digit);
            assert_whole::<2>(&context, 3, rows, digit);
            assert_whole::<3>(&context, 3, rows, digit);
            assert_whole::<5>(&context, 3, rows, digit);
            assert_whole::<8>(&context, 3, rows, digit);
            assert_whole::<16>(&context, 3, rows, digit);
        }
    }
}

#[test]
fn fan_outs_from_one_to_the_largest() {
    let context = context(None, 8);
    for bits in [0, 1, 5, 10, 14, 40] {
        let rows = if bits > 10 { 900 } else { 5000 };
        assert_whole::<2>(&context, bits, rows, |at| hash::word(at as u64) as usize);
        assert_whole::<2>(&context, bits, rows, |_| usize::MAX);
    }
    assert_eq!(FanOut::of_bits(40).bits(), FanOut::BITS_MAX);
    assert_eq!(FanOut::at_least(0).partitions(), 1);
    assert_eq!(FanOut::at_least(1025).partitions(), 2048);
    assert_eq!(FanOut::of_bits(0).digit(u64::MAX), 0);
}

#[test]
fn many_rows_of_one_piece_are_a_chain_of_blocks() {
    let context = context(None, 32);
    assert_whole::<2>(&context, 2, 200_000, |at| if at % 50_000 == 1 { at } else { 3 });
}

#[test]
fn a_budget_that_is_too_small_is_an_error_and_gets_everything_back() {
    let mut failed = 0;
    for limit in (8..24).map(|power| Bytes(1 << power)) {
        let budget = Arc::new(FixedBudget::new(limit));
        let context = context(Some(Arc::clone(&budget)), 32);
        match partition::<2>(&context, FanOut::of_bits(6), 100_000, |at| at) {
            Ok(pieces) => assert_eq!(pieces.total_rows(), 100_000),
            Err(PrimitiveError::Memory(_)) => failed += 1,
            Err(other) => panic!("{other}"),
        }
        assert_eq!(budget.used(), Bytes(0));
    }
    assert!((4..16).contains(&failed), "{failed}");
}
