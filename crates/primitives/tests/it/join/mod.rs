//! Joins against nested loops, on random and hostile input.
//!
//! - `hash`: every kind, by every way a hash join is done: directly, one table, pieces.
//! - `keys`: types of keys, several columns, strings, floats; what does not fit together.
//! - `batches`: record batches with the columns of both sides.
//! - `mpsm`: every shuffle, both readings of the fourth phase.
//! - `limits`: memory that runs out, cancelling, consumers that fail.

mod batches;
mod hash;
mod keys;
mod limits;
mod mpsm;
mod reference;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use atoll_placement::Arena;
use atoll_primitives::join::{JoinInput, JoinKind, JoinReport, RowPairs, hash_join};
use atoll_primitives::{Context, Part, Tuning};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::Machine;

/// Workers on a synthetic machine.
fn context(machine: Machine, threads: Option<usize>) -> Context {
    let machine = Arc::new(machine);
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let options = RuntimeOptions { threads, ..RuntimeOptions::default() };
    let runtime = Runtime::start(Arc::clone(&machine), kernel.clone(), options);
    Context::new(runtime.expect("the runtime starts"), Arena::new(machine, kernel, None))
}

fn small() -> Context {
    context(machines::one_node(), Some(3))
}

/// Tables so small that a few hundred rows are partitioned.
fn tiny_tables() -> Tuning {
    Tuning { table_bytes: 256, block_rows: 64, fan_out_bits_max: 5, ..Tuning::default() }
}

/// Keys in parts of uneven lengths, on the machine's nodes in turn.
fn parts(context: &Context, keys: &[Option<i64>]) -> Vec<Part> {
    let nodes = &context.runtime().machine().nodes;
    let mut parts = Vec::new();
    let (mut start, mut length) = (0, keys.len() / 7 + 1);
    while start < keys.len() || parts.is_empty() {
        let end = keys.len().min(start + length);
        let column: ArrayRef = Arc::new(Int64Array::from(keys[start..end].to_vec()));
        let rows =
            RecordBatch::try_from_iter_with_nullable([("key", column, true)]).expect("a batch");
        let home = (parts.len() % 3 != 2).then(|| nodes[parts.len() % nodes.len()].id);
        parts.push(Part::new(home, rows));
        (start, length) = (end, length * 2);
    }
    parts
}

/// What a join found, sorted: pairs, left rows alone, right rows alone.
type Found = (Vec<(u64, u64)>, Vec<u64>, Vec<u64>);

fn found(consumers: Vec<RowPairs>) -> Found {
    let (mut pairs, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
    for found in consumers {
        assert_eq!(found.left.len(), found.right.len());
        pairs.extend(found.left.into_iter().zip(found.right));
        left.extend(found.left_alone);
        right.extend(found.right_alone);
    }
    pairs.sort_unstable();
    left.sort_unstable();
    right.sort_unstable();
    (pairs, left, right)
}

fn join(
    context: &Context,
    left: &JoinInput,
    right: &JoinInput,
    kind: JoinKind,
) -> (Found, JoinReport) {
    let join = hash_join(context, left, right, kind, |_| RowPairs::default());
    let joined = context.runtime().block_on(join).expect("the join ends");
    (found(joined.consumers), joined.report)
}
