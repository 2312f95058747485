//! The hash table of a join: rows in the order of their slots, and a directory of where each slot's rows begin (Birler,
//! Schmidt, Fent, Neumann: "Simple, efficient, and robust hash tables for join processing", DaMoN 2024, without its
//! tags). Rows of one key are adjacent, however many there are, and a probe scans a block of keys several times without
//! data-dependent branches.

use std::sync::atomic::{AtomicU8, Ordering};

use atoll_placement::{Arena, NodeBuffer, PlacementError};
use atoll_topology::NodeId;

use super::stream::prefetch;
use super::words;
use crate::hash;

/// Maximum number of rows of one probe.
pub(crate) const PROBE_ROWS: usize = 512;
/// Maximum number of buffered pairs.
const PAIRS_MAX: usize = 2 * PROBE_ROWS;
/// With fewer rows left than this, each is followed to its end separately.
const FEW: usize = 32;

/// Probe rows: key and payload of each.
pub(crate) trait ProbeRows: Copy {
    /// Number of rows.
    fn len(self) -> usize;
    /// Key and payload of a row.
    ///
    /// # Safety
    /// There are more rows than `row`.
    unsafe fn row(self, row: usize) -> [u64; 2];
    /// Payload of a row.
    fn payload(self, row: usize) -> u64;
    /// The rows from `start` on, up to [`PROBE_ROWS`] of them.
    fn cut(self, start: usize) -> Self;
}

impl ProbeRows for &[[u64; 2]] {
    #[inline(always)]
    fn len(self) -> usize {
        <[_]>::len(self)
    }
    #[inline(always)]
    unsafe fn row(self, row: usize) -> [u64; 2] {
        // SAFETY: as the caller promises.
        *unsafe { self.get_unchecked(row) }
    }
    #[inline(always)]
    fn payload(self, row: usize) -> u64 {
        self[row][1]
    }
    #[inline(always)]
    fn cut(self, start: usize) -> Self {
        &self[start..self.len().min(start + PROBE_ROWS)]
    }
}

impl ProbeRows for (&[u64], &[u64]) {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len().min(self.1.len())
    }
    #[inline(always)]
    unsafe fn row(self, row: usize) -> [u64; 2] {
        // SAFETY: as the caller promises; the length is the smaller of both.
        unsafe { [*self.0.get_unchecked(row), *self.1.get_unchecked(row)] }
    }
    #[inline(always)]
    fn payload(self, row: usize) -> u64 {
        self.1[row]
    }
    #[inline(always)]
    fn cut(self, start: usize) -> Self {
        let rows = start..ProbeRows::len(self).min(start + PROBE_ROWS);
        (&self.0[rows.clone()], &self.1[rows])
    }
}

/// Matching pairs of payloads on their way to a consumer.
#[derive(Debug)]
pub(crate) struct Pairs {
    build: Vec<u64>,
    probe: Vec<u64>,
    count: usize,
}

impl Pairs {
    fn new() -> Self {
        Self { build: vec![0; PAIRS_MAX], probe: vec![0; PAIRS_MAX], count: 0 }
    }

    /// Passes all pairs to the consumer.
    fn flush<E>(&mut self, to: &mut impl FnMut(&[u64], &[u64]) -> Result<(), E>) -> Result<(), E> {
        let count = std::mem::take(&mut self.count);
        if count == 0 { Ok(()) } else { to(&self.build[..count], &self.probe[..count]) }
    }

    /// Makes room for `rows` more pairs.
    #[inline(always)]
    pub(super) fn reserve<E>(
        &mut self,
        rows: usize,
        to: &mut impl FnMut(&[u64], &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        assert!(rows <= PAIRS_MAX);
        if self.count + rows > PAIRS_MAX { self.flush(to) } else { Ok(()) }
    }

    /// A writer of pairs; its pairs count after [`close`](Self::close).
    #[inline(always)]
    pub(super) fn open(&mut self) -> OpenPairs {
        let (build, probe) = (self.build.as_mut_ptr(), self.probe.as_mut_ptr());
        OpenPairs { build, probe, count: self.count }
    }

    /// Takes the written pairs.
    #[inline(always)]
    pub(super) fn close(&mut self, open: OpenPairs) {
        assert!(open.count <= PAIRS_MAX);
        self.count = open.count;
    }
}

/// A write position, kept in registers while a loop runs.
pub(super) struct OpenPairs {
    build: *mut u64,
    probe: *mut u64,
    count: usize,
}

impl OpenPairs {
    /// Writes a pair, which counts if `keep` is true.
    ///
    /// # Safety
    /// There is room, made by [`reserve`](Pairs::reserve), and the pairs still exist and are not used
    /// otherwise.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, build: u64, probe: u64, keep: bool) {
        // SAFETY: both vectors have a length of PAIRS_MAX, and the caller made room below it.
        unsafe {
            *self.build.add(self.count) = build;
            *self.probe.add(self.count) = probe;
        }
        self.count += usize::from(keep);
    }
}

/// A row with remaining candidates at positions `at` to `end`.
#[derive(Clone, Copy, Debug, Default)]
struct ProbeCursor {
    row: u32,
    at: u32,
    end: u32,
}

/// Scratch space of a worker's probes, reused between blocks.
#[derive(Debug)]
pub(crate) struct ProbeScratch {
    cursors: Vec<ProbeCursor>,
    pub(super) found: Vec<u8>,
    pub(super) pairs: Pairs,
}

impl ProbeScratch {
    /// For blocks of up to [`PROBE_ROWS`] rows.
    pub(crate) fn new() -> Self {
        Self {
            cursors: vec![ProbeCursor::default(); PROBE_ROWS],
            found: vec![0; PROBE_ROWS],
            pairs: Pairs::new(),
        }
    }

    /// For each row of the last block probed with `FOUND`, 1 if it has a match.
    pub(crate) fn found(&self) -> &[u8] {
        &self.found
    }

    /// Passes the buffered pairs to the consumer.
    pub(crate) fn flush<E>(
        &mut self,
        mut to: impl FnMut(&[u64], &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pairs.flush(&mut to)
    }
}

/// Rows of (key, payload) by the hash of the key.
#[derive(Debug)]
pub(crate) struct JoinTable {
    directory: NodeBuffer,
    rows: NodeBuffer,
    /// Marks of matched rows, if requested.
    marks: Option<NodeBuffer>,
    mask: usize,
    len: usize,
}

impl JoinTable {
    /// Maximum number of rows.
    pub(crate) const ROWS_MAX: usize = (u32::MAX / 2) as usize;

    /// Bytes of a table of this many rows, without marks.
    pub(crate) fn bytes(rows: usize) -> usize {
        rows * 16 + slots(rows) * 4
    }

    /// An empty table with room for `rows` rows.
    pub(crate) fn new(
        arena: &Arena,
        home: Option<NodeId>,
        rows: usize,
        marked: bool,
    ) -> Result<Self, PlacementError> {
        let directory = arena.allocate(home, (slots(rows) + 1) * 4)?;
        let marks = marked.then(|| arena.allocate(home, rows)).transpose()?;
        let rows = arena.allocate(home, (rows + 1) * 16)?;
        Ok(Self { directory, rows, marks, mask: 0, len: 0 })
    }

    /// Bytes of its rows and slots.
    pub(crate) fn bytes_filled(&self) -> usize {
        Self::bytes(self.len)
    }

    /// Rows it has room for.
    pub(crate) fn room(&self) -> usize {
        self.rows.len() / 16 - 1
    }

    /// Refills it with the rows of these blocks, which the caller passes twice.
    ///
    /// # Panics
    /// When there are more rows than it has room for.
    pub(crate) fn fill<'a, I: Iterator<Item = &'a [[u64; 2]]>>(&mut self, blocks: impl Fn() -> I) {
        let len: usize = blocks().map(<[_]>::len).sum();
        assert!(len <= self.room() && len <= Self::ROWS_MAX);
        self.len = 0;
        let mask = slots(len) - 1;
        let directory = &mut u32s_mut(self.directory.as_mut_slice())[..mask + 2];
        directory.fill(0);
        for [key, _] in blocks().flatten() {
            directory[hash::word(*key) as usize & mask] += 1;
        }
        let mut end = 0;
        for slot in directory.iter_mut() {
            end += *slot;
            *slot = end;
        }
        let rows = &mut words::rows_mut::<2>(self.rows.as_mut_slice())[..len];
        for row in blocks().flatten() {
            let slot = &mut directory[hash::word(row[0]) as usize & mask];
            *slot = slot.wrapping_sub(1);
            rows[*slot as usize] = *row;
        }
        (self.mask, self.len) = (mask, len);
        if let Some(marks) = &mut self.marks {
            marks.as_mut_slice()[..len].fill(0);
        }
    }

    /// Its rows, each flagged if it is marked.
    pub(crate) fn marked_rows(&self) -> impl Iterator<Item = (&[u64; 2], bool)> {
        let marks = self.marks();
        let rows = &words::rows::<2>(self.rows.as_slice())[..self.len];
        let mark =
            move |at: usize| marks.is_some_and(|marks| marks[at].load(Ordering::Relaxed) != 0);
        rows.iter().enumerate().map(move |(at, row)| (row, mark(at)))
    }

    fn marks(&self) -> Option<&[AtomicU8]> {
        let marks = self.marks.as_ref()?;
        // SAFETY: after `fill`, which has the table to itself, the marks are read and written through
        // this function only, so that every access is atomic; the buffer holds `len` bytes or more.
        Some(unsafe { std::slice::from_raw_parts(marks.as_ptr().cast::<AtomicU8>(), self.len) })
    }

    /// Finds the matches of up to [`PROBE_ROWS`] rows and passes their pairs of payloads to the consumer, in blocks;
    /// the last ones stay in the scratch. Candidates with equal words match if `same` returns true. `PAIRS`: pairs are
    /// wanted; `FOUND`: matched rows are wanted; `far`: the table exceeds the second-level cache.
    #[inline(always)]
    pub(crate) fn probe<const PAIRS: bool, const FOUND: bool, R: ProbeRows, E>(
        &self,
        input: R,
        far: bool,
        scratch: &mut ProbeScratch,
        same: impl Fn(u64, u64) -> bool,
        mut to: impl FnMut(&[u64], &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        assert!(input.len() <= PROBE_ROWS);
        let ProbeScratch { cursors, found, pairs } = scratch;
        if FOUND {
            found[..input.len()].fill(0);
        }
        if self.len == 0 {
            return Ok(());
        }
        let directory = u32s(self.directory.as_slice());
        let marks = self.marks();
        // One row more than there are: what the first of no candidates is read from.
        let rows = &words::rows::<2>(self.rows.as_slice())[..=self.len];
        assert!(cursors.len() >= input.len() && directory.len() >= self.mask + 2);
        if far {
            self.prefetch_slots(input);
            self.prefetch_rows(input);
        }
        let found = found.as_mut_ptr();
        let visit = |cursor: ProbeCursor, mut pairs: OpenPairs| {
            let ProbeCursor { row, at, end } = cursor;
            // SAFETY: the directory holds no `at` beyond `len`, and rows one more; cursors hold rows of
            // the input.
            let ([key, build], [probe_key, probe]) =
                unsafe { (*rows.get_unchecked(at as usize), input.row(row as usize)) };
            let equal = (at < end) & (key == probe_key) && same(build, probe);
            if FOUND {
                // SAFETY: cursors hold rows below PROBE_ROWS, the length of `found`.
                unsafe { *found.add(row as usize) |= u8::from(equal) };
            }
            if let Some(marks) = marks
                && equal
            {
                marks[at as usize].store(1, Ordering::Relaxed);
            }
            if PAIRS {
                // SAFETY: room for one pair a cursor is made before each pass.
                unsafe { pairs.push(build, probe, equal) };
            }
            pairs
        };
        pairs.reserve(input.len(), &mut to)?;
        let (mut open, mut active) = (pairs.open(), 0);
        for row in 0..input.len() {
            // SAFETY: `row` is below the length.
            let [key, _] = unsafe { input.row(row) };
            let slot = hash::word(key) as usize & self.mask;
            // SAFETY: `slot <= mask`, and the directory has `mask + 2` entries.
            let (at, end) =
                unsafe { (*directory.get_unchecked(slot), *directory.get_unchecked(slot + 1)) };
            let cursor = ProbeCursor { row: row as u32, at, end };
            open = visit(cursor, open);
            // SAFETY: `active <= row`, which is smaller than the length of `cursors`.
            *unsafe { cursors.get_unchecked_mut(active) } =
                ProbeCursor { at: at.wrapping_add(1), ..cursor };
            active += usize::from(at.wrapping_add(1) < end);
        }
        pairs.close(open);
        while active > FEW {
            pairs.reserve(active, &mut to)?;
            let (mut open, mut left) = (pairs.open(), 0);
            let list = cursors.as_mut_ptr();
            for at in 0..active {
                // SAFETY: `left <= at < active <= PROBE_ROWS`, the length of `cursors`.
                let cursor = unsafe { *list.add(at) };
                open = visit(cursor, open);
                let next = ProbeCursor { at: cursor.at + 1, ..cursor };
                // SAFETY: as above.
                unsafe { *list.add(left) = next };
                left += usize::from(next.at < next.end);
            }
            pairs.close(open);
            active = left;
        }
        for cursor in &cursors[..active] {
            let mut cursor = *cursor;
            while cursor.at < cursor.end {
                let stop = cursor.end.min(cursor.at + PROBE_ROWS as u32);
                pairs.reserve(PROBE_ROWS, &mut to)?;
                let mut open = pairs.open();
                while cursor.at < stop {
                    open = visit(cursor, open);
                    cursor.at += 1;
                }
                pairs.close(open);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn prefetch_slots<R: ProbeRows>(&self, input: R) {
        let directory: *const u32 = self.directory.as_ptr().cast();
        for row in 0..input.len() {
            // SAFETY: `row` is below the length.
            let [key, _] = unsafe { input.row(row) };
            prefetch(directory.wrapping_add(hash::word(key) as usize & self.mask));
        }
    }

    #[inline(always)]
    fn prefetch_rows<R: ProbeRows>(&self, input: R) {
        let directory = &u32s(self.directory.as_slice())[..=self.mask];
        let first: *const [u64; 2] = self.rows.as_ptr().cast();
        for row in 0..input.len() {
            // SAFETY: `row` is below the length.
            let [key, _] = unsafe { input.row(row) };
            let at = directory[hash::word(key) as usize & self.mask];
            prefetch(first.wrapping_add(at as usize));
        }
    }
}

/// Slots for this many rows: two to four each.
fn slots(rows: usize) -> usize {
    (rows * 2).next_power_of_two().max(16)
}

fn u32s(bytes: &[u8]) -> &[u32] {
    assert!(bytes.as_ptr().cast::<u32>().is_aligned());
    // SAFETY: any bits are a valid u32, the start is aligned, and the end is not reached.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / 4) }
}

fn u32s_mut(bytes: &mut [u8]) -> &mut [u32] {
    assert!(bytes.as_ptr().cast::<u32>().is_aligned());
    // SAFETY: as above, and the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / 4) }
}
