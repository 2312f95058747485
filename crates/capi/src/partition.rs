//! Radix partitioning into the caller's buffers.

use std::ffi::c_int;
use std::sync::Arc;

use arrow_buffer::ScalarBuffer;
use atoll_primitives::partition::{FanOut, Partitioner, Pieces};
use atoll_primitives::{PrimitiveError, TaskFn, hash};
use atoll_runtime::{TaskContext, WorkerId};

use crate::context::{self, Context};
use crate::failure::{CallFailure, guard};
use crate::foreign::{self, CallerBuffer, addresses, apart};

/// Tasks per worker when pieces are written out: enough to balance the load.
const TASKS_PER_WORKER: usize = 8;

/// Rows to partition, in the caller's memory.
struct PartitionInput {
    keys: ScalarBuffer<u64>,
    payloads: Option<ScalarBuffer<u64>>,
    fan_out: FanOut,
}

fn fan_out(bits: u32) -> Result<FanOut, CallFailure> {
    let most = FanOut::BITS_MAX;
    match bits <= most {
        true => Ok(FanOut::of_bits(bits)),
        false => Err(CallFailure::invalid(format!(
            "2^{bits} pieces are too many; at most 2^{most} in one \
                                          call"
        ))),
    }
}

/// Deals rows to pieces, each worker an equal share of them, in their order.
async fn deal(
    context: &atoll_primitives::Context,
    input: PartitionInput,
) -> Result<Vec<Pieces<2>>, PrimitiveError> {
    let (own, workers) = (context.clone(), context.runtime().worker_count());
    let deal = move |worker: WorkerId, task: &TaskContext| {
        let rows = input.keys.len();
        let share = |worker: usize| (rows as u128 * worker as u128 / workers as u128) as usize;
        let (start, end) = (share(worker.index()), share(worker.index() + 1));
        let home = Some(task.node());
        let mut partitioner = Partitioner::<2>::new(&own, home, input.fan_out, end - start)?;
        let block = own.tuning().block_rows.max(1);
        for start in (start..end).step_by(block) {
            task.check()?;
            let keys = &input.keys[start..end.min(start + block)];
            let digit = |key: u64| input.fan_out.digit(hash::word(key));
            match &input.payloads {
                Some(payloads) => {
                    let payloads = &payloads[start..start + keys.len()];
                    let row = |at: usize| (digit(keys[at]), [keys[at], payloads[at]]);
                    partitioner.extend(keys.len(), row)?;
                }
                None => {
                    let row = |at: usize| (digit(keys[at]), [keys[at], (start + at) as u64]);
                    partitioner.extend(keys.len(), row)?;
                }
            }
        }
        partitioner.finish()
    };
    Ok(context.on_workers("partition", deal).await?.0)
}

/// Writes pieces out, those of all workers one after another, by tasks that have rooms of their own.
async fn write_out(
    context: &atoll_primitives::Context,
    pieces: Vec<Pieces<2>>,
    starts: &[usize],
    (mut keys, mut payloads): (CallerBuffer<u64>, CallerBuffer<u64>),
) -> Result<(), PrimitiveError> {
    let pieces = Arc::new(pieces);
    let partitions = starts.len() - 1;
    let tasks = partitions.min(context.runtime().worker_count() * TASKS_PER_WORKER);
    let mut work: Vec<(_, TaskFn<()>)> = Vec::with_capacity(tasks);
    for task in 0..tasks {
        let range = partitions * task / tasks..partitions * (task + 1) / tasks;
        let rows = starts[range.end] - starts[range.start];
        let (keys_here, keys_behind) = keys.split(rows);
        let (payloads_here, payloads_behind) = payloads.split(rows);
        (keys, payloads) = (keys_behind, payloads_behind);
        let (pieces, mut rooms) = (Arc::clone(&pieces), (keys_here, payloads_here));
        let write = move |task: &TaskContext| {
            let mut end = 0;
            for piece in range {
                for block in pieces.iter().flat_map(|pieces| pieces.blocks(piece)) {
                    task.check()?;
                    rooms.0.write(end, block.iter().map(|row| row[0]));
                    rooms.1.write(end, block.iter().map(|row| row[1]));
                    end += block.len();
                }
            }
            Ok(())
        };
        work.push((None, Box::new(write)));
    }
    context.on_nodes("write pieces", work).await.map(drop)
}

/// Deals rows to pieces.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_partition_u64(
    context: *mut Context,
    keys: *const u64,
    payloads: *const u64,
    rows: usize,
    bits: u32,
    keys_out: *mut u64,
    payloads_out: *mut u64,
    starts: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise, here and below.
        let context = unsafe { context::of_call(context)? };
        let fan_out = fan_out(bits)?;
        let places = fan_out.partitions() + 1;
        let outputs = [
            ("keys_out", addresses(keys_out, rows)),
            ("payloads_out", addresses(payloads_out, rows)),
            ("starts", addresses(starts, places)),
        ];
        let payload_rows = if payloads.is_null() { 0 } else { rows };
        let inputs =
            [("keys", addresses(keys, rows)), ("payloads", addresses(payloads, payload_rows))];
        // SAFETY: the same; what is lent is read by tasks that end before the function returns.
        let keys = unsafe { foreign::lend_numbers(foreign::slice("keys", keys, rows)?) };
        // SAFETY: the same.
        let lent =
            unsafe { foreign::lend_numbers(foreign::slice("payloads", payloads, payload_rows)?) };
        let payloads = (!payloads.is_null()).then_some(lent);
        // SAFETY: the same, and exclusive by the check below, before anything is written.
        let rooms = unsafe {
            (
                CallerBuffer::new("keys_out", keys_out, rows)?,
                CallerBuffer::new("payloads_out", payloads_out, rows)?,
            )
        };
        // SAFETY: the same.
        let mut starts = unsafe { CallerBuffer::new("starts", starts, places)? };
        apart(&outputs, &inputs)?;

        let pieces =
            context::wait(&context, deal(&context, PartitionInput { keys, payloads, fan_out }))?;
        let mut found = vec![0; places];
        for piece in 0..fan_out.partitions() {
            let rows: usize = pieces.iter().map(|pieces| pieces.rows(piece)).sum();
            found[piece + 1] = found[piece] + rows;
        }
        starts.write(0, found.iter().copied());
        context::wait(&context, write_out(&context, pieces, &found, rooms))
    })
}

/// Piece of a key; 0 for bits beyond the most.
#[unsafe(no_mangle)]
pub extern "C" fn atoll_piece_u64(key: u64, bits: u32) -> u32 {
    fan_out(bits).map_or(0, |fan_out| fan_out.digit(hash::word(key)) as u32)
}
