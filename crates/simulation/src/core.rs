//! The private parts of a core: first- and second-level cache and DTLB.
//!
//! A line that comes from the last-level cache goes into both levels, one that is found in the second
//! goes into the first; a hit in the first leaves the second as it is, and neither contains the other.
//! Evictions are silent. A copy is writable once the core has written it, until another core reads it.

use std::sync::Arc;

use crate::counters::CounterCell;
use crate::filter::AccessFilter;
use crate::lru::{Modulus, SetEntry, Sets, find, insert, promote, remove};
use crate::ram::LineNumber;
use crate::{CacheShape, Setup};

/// A level of private cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    First,
    Second,
}

/// A request of a core to the last-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A line that it does not have.
    Line,
    /// To write a line that it has.
    Permission,
}

/// A copy of a line: its number plus one, and whether it is writable in the lowest bit.
#[derive(Clone, Copy, Default)]
struct Copied(u64);

impl Copied {
    fn new(line: LineNumber, writable: bool) -> Self {
        Self((line.0 + 1) << 1 | u64::from(writable))
    }

    fn line(self) -> Option<LineNumber> {
        (self.0 >> 1).checked_sub(1).map(LineNumber)
    }

    fn writable(self) -> bool {
        self.0 & 1 != 0
    }
}

impl SetEntry for Copied {
    type Key = u64;

    fn has(self, key: u64) -> bool {
        self.0 >> 1 == key + 1
    }
}

struct PrivateCache {
    sets: Sets<Copied>,
    modulus: Modulus,
}

impl PrivateCache {
    fn new(shape: CacheShape) -> Self {
        Self {
            sets: Sets::new(shape.sets as usize, shape.ways),
            modulus: Modulus::new(shape.sets.into()),
        }
    }

    fn set(&mut self, line: LineNumber) -> &mut [Copied] {
        self.sets.set(self.modulus.remainder(line.0))
    }

    /// Allows or forbids writing a copy that may be here.
    fn allow(&mut self, line: LineNumber, writable: bool) {
        let set = self.set(line);
        if let Some(at) = find(set, line.0) {
            set[at] = Copied::new(line, writable);
        }
    }

    fn drop(&mut self, line: LineNumber) {
        let set = self.set(line);
        if let Some(at) = find(set, line.0) {
            remove(set, at);
        }
    }
}

/// A translation: the number of the virtual page plus one.
#[derive(Clone, Copy, Default)]
struct Translation(u64);

impl SetEntry for Translation {
    type Key = u64;

    fn has(self, key: u64) -> bool {
        self.0 == key + 1
    }
}

struct Dtlb {
    sets: Sets<Translation>,
    modulus: Modulus,
    /// For each set and each cpu of the core, the slots of its filter filled for the set's page used
    /// last.
    slots: Vec<u64>,
}

/// A use of a line by a cpu of the core.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    /// Which of the core's cpus.
    pub(crate) thread: usize,
    /// Virtual page and line.
    pub(crate) page: u64,
    pub(crate) virtual_line: u64,
    pub(crate) line: LineNumber,
    pub(crate) is_store: bool,
}

/// Private caches, DTLB and filters of a core's cpus.
pub(crate) struct SimulatedCore {
    l1: PrivateCache,
    l2: Option<PrivateCache>,
    dtlb: Dtlb,
    filters: Vec<Arc<AccessFilter>>,
}

impl SimulatedCore {
    pub(crate) fn new(setup: &Setup, filters: Vec<Arc<AccessFilter>>) -> Self {
        let sets = setup.dtlb.sets as usize;
        Self {
            l1: PrivateCache::new(setup.l1),
            l2: setup.l2.map(PrivateCache::new),
            dtlb: Dtlb {
                sets: Sets::new(sets, setup.dtlb.ways),
                modulus: Modulus::new(setup.dtlb.sets.into()),
                slots: vec![0; sets * filters.len()],
            },
            filters,
        }
    }

    /// Looks up a translation; false if it was missing. It is present afterwards.
    pub(crate) fn translate(&mut self, page: u64) -> bool {
        let number = self.dtlb.modulus.remainder(page);
        let set = self.dtlb.sets.set(number);
        let found = find(set, page);
        if found == Some(0) {
            return true;
        }
        match found {
            Some(at) => promote(set, at),
            None => drop(insert(set, Translation(page + 1))),
        }
        self.forget_page(number);
        found.is_some()
    }

    /// Another page is now the last used in a set of the DTLB.
    fn forget_page(&mut self, set: usize) {
        let threads = self.filters.len();
        for (slots, filter) in self.dtlb.slots[set * threads..].iter_mut().zip(&self.filters) {
            while *slots != 0 {
                filter.forget_slot(slots.trailing_zeros() as usize);
                *slots &= *slots - 1;
            }
        }
    }

    /// Uses a line that the core has, writable for a store. Nothing is changed if it has
    /// to request it from the last-level cache.
    #[inline]
    pub(crate) fn hit(&mut self, what: Use) -> Result<Level, Want> {
        let (line, set) = (what.line, self.l1.set(what.line));
        if let Some(at) = find(set, line.0) {
            if what.is_store && !set[at].writable() {
                return Err(Want::Permission);
            }
            self.promote_first(line, at);
            return Ok(Level::First);
        }
        let Some(l2) = &mut self.l2 else { return Err(Want::Line) };
        let set = l2.set(line);
        let Some(at) = find(set, line.0) else { return Err(Want::Line) };
        let copy = set[at];
        if what.is_store && !copy.writable() {
            return Err(Want::Permission);
        }
        promote(set, at);
        self.insert_first(copy, line);
        Ok(Level::Second)
    }

    /// Fills in the line that the last-level cache has granted; returns where the line was before. A
    /// store's line is writable. A line that the core did not have may have arrived meanwhile, but only by another
    /// cpu of the core.
    #[inline]
    pub(crate) fn fill(&mut self, what: Use, want: Want) -> Option<Level> {
        let line = what.line;
        if want == Want::Permission || self.filters.len() > 1 {
            if what.is_store {
                self.allow(line, true);
            }
            if let Ok(level) = self.hit(what) {
                return Some(level);
            }
        }
        let copy = Copied::new(line, what.is_store);
        self.insert_first(copy, line);
        if let Some(l2) = &mut self.l2 {
            insert(l2.set(line), copy);
        }
        None
    }

    /// Adds a line just used to the filter of the cpu.
    pub(crate) fn remember(&mut self, what: Use, cell: CounterCell) {
        let number = self.dtlb.modulus.remainder(what.page);
        let copy = self.l1.set(what.line)[0];
        let last = self.dtlb.sets.set(number)[0].has(what.page) && copy.has(what.line.0);
        if !last {
            return;
        }
        let slot = self.filters[what.thread].put(what.virtual_line, copy.writable(), cell);
        if let Some(slot) = slot {
            self.dtlb.slots[number * self.filters.len() + what.thread] |= 1 << slot;
        }
    }

    /// Loses a line to another core's store, or because the last-level cache gives it up.
    pub(crate) fn invalidate(&mut self, line: LineNumber) {
        self.l1.drop(line);
        if let Some(l2) = &mut self.l2 {
            l2.drop(line);
        }
        self.forget(line);
    }

    /// May no longer write a line, because another core reads it.
    pub(crate) fn downgrade(&mut self, line: LineNumber) {
        self.allow(line, false);
        self.forget(line);
    }

    /// Clears the filters of the core's cpus.
    pub(crate) fn forget_all(&self) {
        for filter in &self.filters {
            filter.forget_all();
        }
    }

    fn allow(&mut self, line: LineNumber, writable: bool) {
        self.l1.allow(line, writable);
        if let Some(l2) = &mut self.l2 {
            l2.allow(line, writable);
        }
    }

    fn promote_first(&mut self, line: LineNumber, at: usize) {
        if at > 0 {
            let set = self.l1.set(line);
            let last = set[0].line();
            promote(set, at);
            self.forget_last(last);
        }
    }

    fn insert_first(&mut self, copy: Copied, line: LineNumber) {
        let set = self.l1.set(line);
        let last = set[0].line();
        insert(set, copy);
        self.forget_last(last);
    }

    /// Another line is now the last used in a set of the first level.
    fn forget_last(&self, last: Option<LineNumber>) {
        if let Some(last) = last {
            self.forget(last);
        }
    }

    fn forget(&self, line: LineNumber) {
        for filter in &self.filters {
            filter.forget(line);
        }
    }
}
