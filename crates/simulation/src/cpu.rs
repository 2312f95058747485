//! The state of each cpu.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::counters::{CounterBlocks, CounterLayout};
use crate::filter::AccessFilter;
use crate::layout::Requester;

/// Accesses of a cpu between two looks at the series.
pub(crate) const TICK: u32 = 256;

/// Ticks after which a filter is cleared. A kernel that moves a page, or another process on
/// the cpu, silently gives a virtual line another place: a line in a filter may be wrong for
/// this many ticks, and no longer.
const TICKS_TO_CLEAR: u32 = 64;

/// A marker's message about the cpu's next access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    Tag(u8),
    Witness { node: u8, physical: u64 },
}

/// A cpu.
pub(crate) struct SimulatedCpu {
    pub(crate) who: Requester,
    pub(crate) filter: Arc<AccessFilter>,
    pub(crate) blocks: CounterBlocks,
    /// Accesses to the next clearing of the filter.
    left: AtomicU32,
    is_marked: AtomicBool,
    mark: Mutex<Option<Mark>>,
    /// The digits of the number so far.
    said: Mutex<u64>,
}

impl SimulatedCpu {
    pub(crate) fn new(who: Requester, filter: Arc<AccessFilter>, counters: CounterLayout) -> Self {
        Self {
            who,
            filter,
            blocks: CounterBlocks::new(counters),
            left: AtomicU32::new(TICK * TICKS_TO_CLEAR),
            is_marked: AtomicBool::new(false),
            mark: Mutex::new(None),
            said: Mutex::new(0),
        }
    }

    /// Counts an access; true once every [`TICK`].
    #[inline]
    pub(crate) fn tick(&self) -> bool {
        let left = self.left.load(Relaxed).wrapping_sub(1);
        self.left.store(left, Relaxed);
        if !left.is_multiple_of(TICK) {
            return false;
        }
        if left == 0 {
            self.left.store(TICK * TICKS_TO_CLEAR, Relaxed);
            self.filter.forget_all();
        }
        true
    }

    /// Keeps a marker's message until the next access, which the filter must not answer.
    pub(crate) fn mark(&self, mark: Mark) {
        *self.mark.lock() = Some(mark);
        self.is_marked.store(true, Relaxed);
        self.filter.forget_all();
    }

    pub(crate) fn take_mark(&self) -> Option<Mark> {
        if !self.is_marked.load(Relaxed) {
            return None;
        }
        self.is_marked.store(false, Relaxed);
        self.mark.lock().take()
    }

    pub(crate) fn say(&self, nibble: u8) {
        let mut said = self.said.lock();
        *said = *said << 4 | u64::from(nibble & 15);
    }

    pub(crate) fn said(&self) -> u64 {
        *self.said.lock()
    }
}
