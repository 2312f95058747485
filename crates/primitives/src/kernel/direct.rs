//! A join's build side with dense, unique keys: an array of payloads by key. One access finds a row, without hashing or
//! comparing keys. Payloads that span less than 32 bits take 32.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use atoll_placement::{Arena, NodeBuffer, PlacementError};
use atoll_topology::NodeId;

use super::stream::prefetch;
use super::table::{PROBE_ROWS, ProbeRows, ProbeScratch};

/// Payloads by key. Workers fill and probe it concurrently.
#[derive(Debug)]
pub(crate) struct Direct {
    /// For each key its payload less `base`, or all ones without a row.
    payloads: NodeBuffer,
    /// Marks of matched keys, if requested.
    marks: Option<NodeBuffer>,
    wide: bool,
    key_min: u64,
    len: usize,
    base: u64,
}

/// An entry for a payload.
trait PayloadCell: Sync {
    fn get(&self) -> u64;
    /// Stores a value in an empty entry; returns false if it is taken.
    fn put(&self, value: u64) -> bool;
}

/// No row has this key.
const NONE: u64 = u64::MAX;

impl PayloadCell for AtomicU64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
    #[inline(always)]
    fn put(&self, value: u64) -> bool {
        self.compare_exchange(NONE, value, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl PayloadCell for AtomicU32 {
    #[inline(always)]
    fn get(&self) -> u64 {
        let value = self.load(Ordering::Relaxed);
        if value == u32::MAX { NONE } else { u64::from(value) }
    }
    #[inline(always)]
    fn put(&self, value: u64) -> bool {
        self.compare_exchange(u32::MAX, value as u32, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Direct {
    /// Allocates entries for `len` keys from `key_min` on, with payloads from `payload.0` to `payload.1`; returns None
    /// if those take all 64 bits. Call [`clear`](Self::clear) before use.
    pub(crate) fn new(
        arena: &Arena,
        home: Option<NodeId>,
        (key_min, len): (u64, usize),
        payload: (u64, u64),
        marked: bool,
    ) -> Result<Option<Self>, PlacementError> {
        let span = payload.1.wrapping_sub(payload.0);
        if span == NONE {
            return Ok(None);
        }
        let wide = span >= u64::from(u32::MAX);
        let payloads = arena.allocate(home, len * if wide { 8 } else { 4 })?;
        let marks = marked.then(|| arena.allocate(home, len)).transpose()?;
        Ok(Some(Self { payloads, marks, wide, key_min, len, base: payload.0 }))
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.payloads.as_mut_slice().fill(0xff);
        if let Some(marks) = &mut self.marks {
            marks.as_mut_slice().fill(0);
        }
    }

    /// Adds rows; returns false if two have the same key, or one is outside of the ranges.
    #[must_use]
    pub(crate) fn insert(&self, input: impl ProbeRows) -> bool {
        if self.wide {
            self.insert_into(self.cells::<AtomicU64>(), input)
        } else {
            self.insert_into(self.cells::<AtomicU32>(), input)
        }
    }

    fn insert_into<C: PayloadCell>(&self, cells: &[C], input: impl ProbeRows) -> bool {
        let limit = if self.wide { NONE } else { u64::from(u32::MAX) };
        let mut unique = true;
        const AHEAD: usize = 16;
        for row in 0..input.len() {
            // SAFETY: both are below the length.
            let ([key, payload], [next, _]) =
                unsafe { (input.row(row), input.row((row + AHEAD).min(input.len() - 1))) };
            let next = next.wrapping_sub(self.key_min).min(cells.len() as u64);
            prefetch(cells.as_ptr().wrapping_add(next as usize));
            let value = payload.wrapping_sub(self.base);
            let key = key.wrapping_sub(self.key_min) as usize;
            unique &= value < limit && cells.get(key).is_some_and(|cell| cell.put(value));
        }
        unique
    }

    /// As [`JoinTable::probe`](super::table::JoinTable::probe), for the rows of `input` from `start` on, up to
    /// [`PROBE_ROWS`] of them. Later rows are prefetched, `ahead` rows ahead.
    #[inline(always)]
    pub(crate) fn probe<const PAIRS: bool, const FOUND: bool, R: ProbeRows, E>(
        &self,
        input: R,
        (start, ahead): (usize, usize),
        scratch: &mut ProbeScratch,
        to: impl FnMut(&[u64], &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.wide {
            let cells = self.cells::<AtomicU64>();
            self.probe_cells::<PAIRS, FOUND, _, _, _>(cells, input, (start, ahead), scratch, to)
        } else {
            let cells = self.cells::<AtomicU32>();
            self.probe_cells::<PAIRS, FOUND, _, _, _>(cells, input, (start, ahead), scratch, to)
        }
    }

    #[inline(always)]
    fn probe_cells<const PAIRS: bool, const FOUND: bool, C: PayloadCell, R: ProbeRows, E>(
        &self,
        cells: &[C],
        input: R,
        (start, ahead): (usize, usize),
        scratch: &mut ProbeScratch,
        mut to: impl FnMut(&[u64], &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let rows = start..input.len().min(start + PROBE_ROWS);
        if rows.is_empty() || cells.is_empty() {
            scratch.found.fill(0);
            return Ok(());
        }
        scratch.pairs.reserve(rows.len(), &mut to)?;
        let (found, marks) = (scratch.found.as_mut_ptr(), self.marks());
        let (last_row, last) = (input.len() - 1, cells.len() as u64 - 1);
        let mut open = scratch.pairs.open();
        for row in rows {
            // SAFETY: both are below the length.
            let ([key, payload], [next, _]) =
                unsafe { (input.row(row), input.row((row + ahead).min(last_row))) };
            let next = next.wrapping_sub(self.key_min).min(last);
            prefetch(cells.as_ptr().wrapping_add(next as usize));
            let key = key.wrapping_sub(self.key_min);
            let at = key.min(last) as usize;
            // SAFETY: `at` is at most the last one.
            let value = unsafe { cells.get_unchecked(at) }.get();
            let equal = (key <= last) & (value != NONE);
            if FOUND {
                // SAFETY: `row - start < PROBE_ROWS`, the length of `found`.
                unsafe { *found.add(row - start) = u8::from(equal) };
            }
            if let Some(marks) = marks
                && equal
            {
                marks[at].store(1, Ordering::Relaxed);
            }
            if PAIRS {
                // SAFETY: room for all rows was made above.
                unsafe { open.push(self.base.wrapping_add(value), payload, equal) };
            }
        }
        scratch.pairs.close(open);
        Ok(())
    }

    /// Payloads of the rows, each flagged if it is marked.
    pub(crate) fn marked_payloads(&self) -> impl Iterator<Item = (u64, bool)> {
        let marks = self.marks();
        let value = |at: usize| match self.wide {
            true => self.cells::<AtomicU64>()[at].get(),
            false => self.cells::<AtomicU32>()[at].get(),
        };
        let mark =
            move |at: usize| marks.is_some_and(|marks| marks[at].load(Ordering::Relaxed) != 0);
        (0..self.len).filter_map(move |at| {
            let value = value(at);
            (value != NONE).then(|| (self.base.wrapping_add(value), mark(at)))
        })
    }

    fn cells<C: PayloadCell>(&self) -> &[C] {
        let len = self.payloads.len() / size_of::<C>();
        // SAFETY: `C` is an atomic word, whose bits are all valid, and a buffer starts at a multiple
        // of 64. Once the table is shared it is read and written through this function only.
        unsafe { std::slice::from_raw_parts(self.payloads.as_ptr().cast(), len) }
    }

    fn marks(&self) -> Option<&[AtomicU8]> {
        let marks = self.marks.as_ref()?;
        // SAFETY: as above.
        Some(unsafe { std::slice::from_raw_parts(marks.as_ptr().cast(), marks.len()) })
    }
}
