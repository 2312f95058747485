//! The short cut of one cpu: lines that it has just used.
//!
//! A slot holds a virtual line, and only while three things are so: the line is the one used last in
//! its set of the core's first-level cache, its page is the one used last in its set of the core's
//! DTLB, and the cell of its page is the one written there. A hit is therefore a hit in both, changes
//! the order in neither, and needs to be counted only. The event that ends one of the three clears the slot:
//! slots are filled and cleared under the core's lock, and read by the cpu without one.
//!
//! The slot of a line is given by the bits that a line has in its page, which are the same in its
//! virtual and its linear address.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::PAGE;
use crate::counters::CounterCell;
use crate::ram::LineNumber;

/// Slots at most: one for each bit of a word.
const SLOTS: usize = 64;

/// Bits of an entry below the line: the cell (nodes × tags are at most 1024).
const CELL_BITS: u32 = 10;
const CELL: u64 = (1 << CELL_BITS) - 1;
/// The core may write the line without asking.
const WRITABLE: u64 = 1 << CELL_BITS;
/// The slot is in use.
const USED: u64 = 1 << (CELL_BITS + 1);
const LINE_SHIFT: u32 = CELL_BITS + 2;

/// Lines just used by a cpu.
pub(crate) struct AccessFilter {
    slots: [AtomicU64; SLOTS],
    mask: usize,
}

impl AccessFilter {
    pub(crate) fn new(line: u64) -> Self {
        let slots = ((PAGE / line) as usize).min(SLOTS);
        Self { slots: std::array::from_fn(|_| AtomicU64::new(0)), mask: slots - 1 }
    }

    #[inline]
    fn slot(&self, line: u64) -> usize {
        line as usize & self.mask & (SLOTS - 1)
    }

    /// Cell of the page of a virtual line that may be accessed without further checks.
    #[inline]
    pub(crate) fn get(&self, line: u64, is_store: bool) -> Option<CounterCell> {
        let entry = self.slots[self.slot(line)].load(Relaxed);
        let same = entry >> (LINE_SHIFT - 1) == line << 1 | 1;
        (same && (!is_store || entry & WRITABLE != 0))
            .then_some(CounterCell((entry & CELL) as usize))
    }

    /// Adds a virtual line; returns the number of its slot, or None for lines at addresses that do not fit.
    pub(crate) fn put(&self, line: u64, writable: bool, cell: CounterCell) -> Option<usize> {
        if line >> (u64::BITS - LINE_SHIFT) != 0 {
            return None;
        }
        let entry = line << LINE_SHIFT | USED | cell.0 as u64 & CELL;
        let slot = self.slot(line);
        self.slots[slot].store(if writable { entry | WRITABLE } else { entry }, Relaxed);
        Some(slot)
    }

    /// Clears the slot of a line of RAM.
    pub(crate) fn forget(&self, line: LineNumber) {
        self.forget_slot(self.slot(line.0));
    }

    pub(crate) fn forget_slot(&self, slot: usize) {
        self.slots[slot & (SLOTS - 1)].store(0, Relaxed);
    }

    pub(crate) fn forget_all(&self) {
        for slot in &self.slots {
            slot.store(0, Relaxed);
        }
    }
}
