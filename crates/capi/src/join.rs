//! Joins whose result goes to a callback block by block, or is kept.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll_placement::{Arena, NodeBuffer};
use atoll_primitives::PrimitiveError;
use atoll_primitives::join::{JoinInput, JoinKind, JoinReport, Matches, Payload, hash_join};
use atoll_runtime::{Cancelled, WorkerId};
use atoll_topology::{Machine, NodeId};

use crate::column::{Column, HeldColumn, UINT64};
use crate::context::{self, Context};
use crate::failure::{CallFailure, Code, calling_back, guard};
use crate::foreign;
use crate::part::{self, RowsPart, parts, positions};
use crate::result::{ResultBlock, Rows, giving};

/// `atoll_side`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Side {
    /// The rows.
    pub parts: *const RowsPart,
    /// Number of parts.
    pub part_count: usize,
    /// Positions of the key columns.
    pub keys: *const u32,
    /// Number of key columns.
    pub key_count: usize,
    /// Position of the payload, or `ATOLL_ROW_NUMBERS`.
    pub payload: i32,
}

/// `atoll_block_fn`.
pub type BlockFn = unsafe extern "C" fn(*mut c_void, u32, *const u64, *const u64, usize) -> c_int;

/// `ATOLL_ROW_NUMBERS`.
const ROW_NUMBERS: i32 = -1;

/// A side over the caller's memory.
///
/// # Safety
/// As atoll.h says of sides, for the time of the call.
unsafe fn side(machine: &Machine, name: &str, side: *const Side) -> Result<JoinInput, CallFailure> {
    // SAFETY: the caller's promise, here and below.
    let given = unsafe { foreign::one(name, side)? };
    // SAFETY: the same.
    let on = unsafe { positions("keys", given.keys, given.key_count) };
    let on = on.map_err(|failure| part::at(name, failure))?;
    // SAFETY: the same.
    let parts = unsafe { parts(machine, given.parts, given.part_count) };
    let (parts, _) = parts.map_err(|failure| part::at(name, failure))?;
    let payload = match usize::try_from(given.payload) {
        Ok(column) => Payload::Column(column),
        Err(_) if given.payload == ROW_NUMBERS => Payload::Row,
        Err(_) => {
            let text = format!(
                "{name}: invalid payload {}; expected the number of a column or \
                         ATOLL_ROW_NUMBERS",
                given.payload
            );
            return Err(CallFailure::invalid(text));
        }
    };
    Ok(JoinInput { parts, on, payload })
}

/// Both sides and the kind.
///
/// # Safety
/// As [`side`].
unsafe fn input(
    context: &atoll_primitives::Context,
    (left, right): (*const Side, *const Side),
    kind: u32,
) -> Result<(JoinInput, JoinInput, JoinKind), CallFailure> {
    let machine = context.runtime().machine();
    let kind = JoinKind::ALL.get(kind as usize).copied().ok_or_else(|| {
        CallFailure::invalid(format!(
            "unknown join kind {kind}; expected ATOLL_INNER (0) to \
                                  ATOLL_RIGHT_ANTI (7)"
        ))
    })?;
    // SAFETY: the caller's promise, here and below.
    let left = unsafe { side(machine, "left", left)? };
    // SAFETY: the same.
    let right = unsafe { side(machine, "right", right)? };
    Ok((left, right, kind))
}

/// Hands blocks to the caller's function.
struct Callback {
    take: BlockFn,
    user: *mut c_void,
    worker: u32,
    stopped: Arc<AtomicBool>,
}

// SAFETY: atoll.h asks that the function may be called by several workers at the same time, and `user` is
// only handed to it.
unsafe impl Send for Callback {}

impl Callback {
    fn call(&self, left: *const u64, right: *const u64, rows: usize) -> Result<(), PrimitiveError> {
        if rows == 0 {
            return Ok(());
        }
        // SAFETY: the caller's function, called as atoll.h says.
        match calling_back(|| unsafe { (self.take)(self.user, self.worker, left, right, rows) }) {
            0 => Ok(()),
            _ => {
                // Relaxed: read after the join of all workers.
                self.stopped.store(true, Ordering::Relaxed);
                Err(Cancelled.into())
            }
        }
    }
}

impl Matches for Callback {
    fn pairs(&mut self, left: &[u64], right: &[u64]) -> Result<(), PrimitiveError> {
        self.call(left.as_ptr(), right.as_ptr(), left.len().min(right.len()))
    }

    fn left_alone(&mut self, left: &[u64]) -> Result<(), PrimitiveError> {
        self.call(left.as_ptr(), std::ptr::null(), left.len())
    }

    fn right_alone(&mut self, right: &[u64]) -> Result<(), PrimitiveError> {
        self.call(std::ptr::null(), right.as_ptr(), right.len())
    }
}

/// Joins, block by block.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_join_blocks(
    context: *mut Context,
    left: *const Side,
    right: *const Side,
    kind: u32,
    take: Option<BlockFn>,
    user: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise, here and below.
        let context = unsafe { context::of_call(context)? };
        let take =
            take.ok_or_else(|| CallFailure::invalid("take: null pointer; pass a function"))?;
        // SAFETY: the same.
        let (left, right, kind) = unsafe { input(&context, (left, right), kind)? };
        let stopped = Arc::new(AtomicBool::new(false));
        let consumer = |worker: WorkerId| {
            let stopped = Arc::clone(&stopped);
            Callback { take, user, worker: worker.0, stopped }
        };
        let joined = hash_join(&context, &left, &right, kind, consumer);
        match context::wait(&context, joined) {
            Err(_) if stopped.load(Ordering::Relaxed) => {
                let text = "stopped: the atoll_block_fn returned a value other than 0";
                Err(CallFailure::new(Code::Stopped, text))
            }
            done => done.map(drop),
        }
    })
}

/// Payloads of the first kept block; each further block has twice as many, up to the maximum.
const BLOCK_ROWS_MIN: usize = 1 << 10;
const BLOCK_ROWS_MAX: usize = 1 << 20;

/// Keeps the matches of one worker, in blocks on its node that count towards the memory limit.
struct Keeper {
    arena: Arena,
    home: NodeId,
    /// By existing side: both, left, right.
    kept: [Vec<Filling>; 3],
}

/// A block being filled.
struct Filling {
    left: Option<NodeBuffer>,
    right: Option<NodeBuffer>,
    rows: usize,
    room: usize,
}

impl Filling {
    fn new(
        (arena, home): (&Arena, NodeId),
        (left, right): (bool, bool),
        room: usize,
    ) -> Result<Self, PrimitiveError> {
        let buffer = |wanted: bool| {
            let memory = wanted.then(|| arena.allocate(Some(home), room * size_of::<u64>()));
            memory.transpose()
        };
        Ok(Self { left: buffer(left)?, right: buffer(right)?, rows: 0, room })
    }

    fn push(&mut self, left: Option<&[u64]>, right: Option<&[u64]>) {
        for (memory, words) in [(&mut self.left, left), (&mut self.right, right)] {
            if let (Some(memory), Some(words)) = (memory, words) {
                let places =
                    memory.as_mut_slice()[self.rows * size_of::<u64>()..].as_chunks_mut().0;
                for (place, word) in places.iter_mut().zip(words) {
                    *place = word.to_ne_bytes();
                }
            }
        }
        self.rows += left.or(right).map_or(0, <[u64]>::len);
    }

    fn block(self) -> ResultBlock {
        let rows = self.rows;
        let column = |memory: Option<NodeBuffer>| match memory {
            None => HeldColumn::new(Column::fixed(UINT64, std::ptr::null(), rows), Arc::new(())),
            Some(memory) => {
                let column = Column::fixed(UINT64, memory.as_ptr().cast(), rows);
                HeldColumn::new(column, Arc::new(memory))
            }
        };
        ResultBlock::new(rows, vec![column(self.left), column(self.right)])
    }
}

impl Keeper {
    fn keep(&mut self, left: Option<&[u64]>, right: Option<&[u64]>) -> Result<(), PrimitiveError> {
        let sides = (left.is_some(), right.is_some());
        let blocks = match sides {
            (true, true) => &mut self.kept[0],
            (true, false) => &mut self.kept[1],
            _ => &mut self.kept[2],
        };
        let rows = left.or(right).map_or(0, <[u64]>::len);
        let mut taken = 0;
        while taken < rows {
            let full = blocks.last().is_none_or(|block| block.rows == block.room);
            if full {
                let room = blocks.last().map_or(BLOCK_ROWS_MIN, |block| block.room * 2);
                let memory = (&self.arena, self.home);
                blocks.push(Filling::new(memory, sides, room.min(BLOCK_ROWS_MAX))?);
            }
            let Some(block) = blocks.last_mut() else { continue };
            let end = rows.min(taken + block.room - block.rows);
            block.push(left.map(|words| &words[taken..end]), right.map(|words| &words[taken..end]));
            taken = end;
        }
        Ok(())
    }
}

impl Matches for Keeper {
    fn pairs(&mut self, left: &[u64], right: &[u64]) -> Result<(), PrimitiveError> {
        self.keep(Some(left), Some(right))
    }

    fn left_alone(&mut self, left: &[u64]) -> Result<(), PrimitiveError> {
        self.keep(Some(left), None)
    }

    fn right_alone(&mut self, right: &[u64]) -> Result<(), PrimitiveError> {
        self.keep(None, Some(right))
    }
}

/// Joins, keeping all.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_join(
    context: *mut Context,
    left: *const Side,
    right: *const Side,
    kind: u32,
    result: *mut *mut Rows,
) -> c_int {
    let work = || {
        // SAFETY: the caller's promise, here and below.
        let context = unsafe { context::of_call(context)? };
        // SAFETY: the same.
        let (left, right, kind) = unsafe { input(&context, (left, right), kind)? };
        let consumer = |worker: WorkerId| {
            let home = context.runtime().node_of(worker);
            Keeper { arena: context.arena().clone(), home, kept: Default::default() }
        };
        let joined = hash_join(&context, &left, &right, kind, consumer);
        let joined = context::wait(&context, joined)?;
        let JoinReport { variant, reason, .. } = joined.report;
        let blocks = joined.consumers.into_iter().flat_map(|keeper| keeper.kept).flatten();
        let reason = format!("{variant:?}: {reason}");
        Ok(Rows::new(blocks.map(Filling::block).collect(), 2, &reason))
    };
    // SAFETY: the same.
    unsafe { giving(result, work) }
}
