//! Shuffles of pieces that lie in the caller's memory.

use std::ffi::c_int;

use atoll_primitives::shuffle::{Coordination, Moved, Order, Schedule, Shuffle, batches};

use crate::context::{self, Context};
use crate::failure::CallFailure;
use crate::part::{RowsPart, parts};
use crate::result::{ResultBlock, Rows, giving};

/// Seed of `ATOLL_ORDER_RANDOM`.
const SEED: u64 = 1;

/// Copies pieces to their target workers.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_shuffle(
    context: *mut Context,
    pieces: *const RowsPart,
    piece_count: usize,
    order: u32,
    result: *mut *mut Rows,
) -> c_int {
    let work = || {
        // SAFETY: the caller's promise, here and below.
        let context = unsafe { context::of_call(context)? };
        let orders = [Order::Naive, Order::Random(SEED), Order::Ring];
        let order = orders.get(order as usize).copied().ok_or_else(|| {
            CallFailure::invalid(format!(
                "unknown shuffle order {order}; expected ATOLL_ORDER_NAIVE (0) to \
                 ATOLL_ORDER_RING (2)"
            ))
        })?;
        let workers = context.runtime().worker_count();
        if piece_count != workers * workers {
            let expected = workers * workers;
            let text = format!(
                "wrong number of pieces {piece_count}; expected {expected}, one from each of the \
                 {workers} workers to each"
            );
            return Err(CallFailure::invalid(text));
        }
        // SAFETY: the same.
        let (parts, schema) = unsafe { parts(context.runtime().machine(), pieces, piece_count)? };
        let by_source = parts.chunks(workers).map(<[_]>::to_vec).collect();
        // Moving threads or pulling would pass on the caller's memory, which a result must not hold.
        let shuffle = Shuffle { order, moved: Moved::Pushed, coordination: Coordination::Loose };
        let schedule = Schedule::for_runtime(context.runtime(), shuffle);
        let (got, _) = context::wait(&context, batches(&context, &schedule, by_source))?;
        let blocks = got.iter().flatten().map(|part| ResultBlock::from_batch(&part.rows));
        let blocks: Result<Vec<ResultBlock>, CallFailure> = blocks.collect();
        Ok(Rows::new(blocks?, schema.fields().len(), &shuffle.to_string()))
    };
    // SAFETY: the same.
    unsafe { giving(result, work) }
}
