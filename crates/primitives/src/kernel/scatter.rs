//! Radix scatter with software write-combining: rows wait in a small buffer for each partition until they are written
//! as whole cache lines with streaming stores (Balkesen, Teubner, Alonso, Özsu: "Main-memory hash joins on multi-core
//! CPUs", ICDE 2013, section 5; Polychroniou and Ross, SIGMOD 2014).
//!
//! Rows go to chains of blocks, so that they need not be counted in advance.

use std::ptr;

use atoll_placement::{Arena, NodeBuffer, PlacementError};
use atoll_topology::NodeId;

use super::fan_out::FanOut;
use super::pieces::{PieceBlock, Pieces};
use super::stream;

/// Size of the last and largest blocks of a chain, bytes; a chain's blocks double up to it.
const BLOCK_BYTES_MAX: usize = 16 << 10;
/// Size of a slab from which blocks are cut, bytes, if the number of rows is unknown. Slabs double.
const SLAB_BYTES_MIN: usize = 64 << 10;
/// Largest slab, bytes.
const SLAB_BYTES_MAX: usize = 64 << 20;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Scatters rows of `W` words over partitions.
pub(crate) struct Scatter<const W: usize> {
    fan_out: FanOut,
    /// Rows of a write-combining buffer, a power of two from 8 to 64: whatever `W`, whole lines.
    buffer_rows: usize,
    /// Number of buffered rows of each partition.
    waiting: Vec<u32>,
    /// Write-combining buffers, one for each partition.
    buffers: NodeBuffer,
    /// Next write position of each partition.
    heads: Vec<Head>,
    /// Blocks of each partition, the open one last.
    chains: Vec<Vec<PieceBlock>>,
    slabs: Slabs,
    /// Whether full buffers are written with streaming stores.
    is_streaming: bool,
}

/// Address of the next row in the open block of a partition, and of the block's end; both null before the first.
#[derive(Clone, Copy)]
struct Head {
    next: *mut u64,
    end: *mut u64,
}

// SAFETY: the pointers go to slabs that the same scatter owns exclusively.
unsafe impl<const W: usize> Send for Scatter<W> {}

/// Memory for blocks, on one node.
struct Slabs {
    arena: Arena,
    home: Option<NodeId>,
    memory: Vec<NodeBuffer>,
    /// Used bytes of the last slab.
    used: usize,
    next: usize,
}

impl<const W: usize> Scatter<W> {
    /// A scatter with rows on `home`, or without one, where the calling thread's first touch puts them. `rows` is the
    /// expected number of rows.
    pub(crate) fn new(
        arena: &Arena,
        home: Option<NodeId>,
        fan_out: FanOut,
        buffer_rows: usize,
        rows: usize,
    ) -> Result<Self, PlacementError> {
        let buffer_rows = buffer_rows.clamp(8, 64).next_power_of_two();
        let partitions = fan_out.partitions();
        let buffers = arena.allocate(home, partitions * buffer_rows * W * 8)?;
        // Half-full blocks at the ends of the chains take extra space.
        let expected = rows.saturating_mul(W * 8 + W * 2);
        Ok(Self {
            fan_out,
            buffer_rows,
            waiting: vec![0; partitions],
            buffers,
            heads: vec![Head { next: ptr::null_mut(), end: ptr::null_mut() }; partitions],
            chains: vec![Vec::new(); partitions],
            slabs: Slabs {
                arena: arena.clone(),
                home,
                memory: Vec::new(),
                used: 0,
                next: expected.clamp(SLAB_BYTES_MIN, SLAB_BYTES_MAX),
            },
            is_streaming: stream::is_used(),
        })
    }

    /// Adds `rows` rows: for each its partition (higher bits are cut off) and its words. After an error the scatter
    /// holds the rows before.
    #[inline]
    pub(crate) fn extend(
        &mut self,
        rows: usize,
        mut row: impl FnMut(usize) -> (usize, [u64; W]),
    ) -> Result<(), PlacementError> {
        let mask = self.fan_out.partitions() - 1;
        let full = self.buffer_rows;
        let buffers: *mut [u64; W] = self.buffers.as_mut_slice().as_mut_ptr().cast();
        let waiting = self.waiting.as_mut_ptr();
        for at in 0..rows {
            let (digit, words) = row(at);
            let digit = digit & mask;
            // SAFETY: `digit` is smaller than the number of partitions, which is the length of
            // `waiting`; `waiting` is smaller than `full` between calls of `flush`, so the row lies
            // in the buffer of its partition. `buffers` has room for `full` rows a partition and is
            // not used otherwise while this loop runs but by `flush`, through the same allocation.
            let count = unsafe {
                let waiting = waiting.add(digit);
                let count = *waiting as usize;
                *buffers.add(digit * full + count) = words;
                *waiting = (count + 1) as u32;
                count + 1
            };
            if count == full {
                self.flush(digit)?;
            }
        }
        Ok(())
    }

    /// Adds rows whose words are in columns, and the partition of each.
    ///
    /// # Panics
    /// When a column does not have a word for each row.
    pub(crate) fn extend_columns(
        &mut self,
        digits: &[u32],
        columns: [&[u64]; W],
    ) -> Result<(), PlacementError> {
        for column in columns {
            assert_eq!(column.len(), digits.len(), "a word for each row");
        }
        self.extend(digits.len(), |row| {
            // SAFETY: `row` counts up to the number of digits, which is the length of every column.
            unsafe {
                let words = columns.map(|column| *column.get_unchecked(row));
                (*digits.get_unchecked(row) as usize, words)
            }
        })
    }

    /// Writes a full buffer to its chain.
    #[inline]
    fn flush(&mut self, digit: usize) -> Result<(), PlacementError> {
        let words = self.buffer_rows * W;
        if self.heads[digit].next == self.heads[digit].end {
            // On an error the row that filled the buffer is removed, so that it can be added again.
            self.open(digit).inspect_err(|_| self.waiting[digit] -= 1)?;
        }
        let head = &mut self.heads[digit];
        let from = self.buffers.as_slice()[digit * words * 8..][..words * 8].as_ptr();
        // SAFETY: the buffer holds `words` words; blocks are whole multiples of a buffer, so an open
        // block that is not at its end has room for one. Buffers and blocks are multiples of lines at
        // starts that are.
        unsafe {
            stream::copy(from.cast(), head.next, words, self.is_streaming);
            head.next = head.next.add(words);
        }
        self.waiting[digit] = 0;
        Ok(())
    }

    /// Opens the next block of a chain.
    #[cold]
    fn open(&mut self, digit: usize) -> Result<(), PlacementError> {
        let buffer = self.buffer_rows * W * 8;
        let last = self.chains[digit].last().map_or(0, |block| block.bytes);
        let bytes = (last * 2).min(BLOCK_BYTES_MAX / buffer * buffer).max(buffer);
        let (block, start) = self.slabs.cut(bytes)?;
        self.chains[digit].push(block);
        self.heads[digit] = Head { next: start.cast(), end: start.wrapping_add(bytes).cast() };
        Ok(())
    }

    /// Returns the rows by partition.
    pub(crate) fn finish(mut self) -> Result<Pieces<W>, PlacementError> {
        stream::fence();
        for digit in 0..self.chains.len() {
            self.close(digit);
            self.append(digit)?;
        }
        Ok(Pieces::new(self.fan_out, self.slabs.home, self.slabs.memory, self.chains))
    }

    /// Counts the rows of a chain's blocks: all are full but the open one.
    fn close(&mut self, digit: usize) {
        let row_bytes = W * 8;
        let head = self.heads[digit];
        let unused = (head.end as usize - head.next as usize) / row_bytes;
        for block in &mut self.chains[digit] {
            block.rows = block.bytes / row_bytes;
        }
        if let Some(last) = self.chains[digit].last_mut() {
            last.rows -= unused;
        }
    }

    /// Appends the buffered rows of a partition to its chain, in a new block if the last one is full.
    fn append(&mut self, digit: usize) -> Result<(), PlacementError> {
        let bytes = self.waiting[digit] as usize * W * 8;
        if bytes == 0 {
            return Ok(());
        }
        let chain = &mut self.chains[digit];
        if self.heads[digit].next == self.heads[digit].end {
            chain.push(self.slabs.cut(bytes.next_multiple_of(LINE))?.0);
        }
        let block = chain.last_mut().expect("a chain that is not at its end has a block");
        let slab = self.slabs.memory[block.slab].as_mut_slice();
        let from = &self.buffers.as_slice()[digit * self.buffer_rows * W * 8..][..bytes];
        slab[block.offset + block.rows * W * 8..][..bytes].copy_from_slice(from);
        block.rows += self.waiting[digit] as usize;
        Ok(())
    }
}

impl Slabs {
    /// The next block of this size, a multiple of a line, and its first byte.
    fn cut(&mut self, bytes: usize) -> Result<(PieceBlock, *mut u8), PlacementError> {
        let room = self.memory.last().map_or(0, |slab| slab.len() - self.used);
        if room < bytes {
            let slab = self.arena.allocate(self.home, self.next.max(bytes))?;
            self.memory.push(slab);
            self.next = (self.next * 2).min(SLAB_BYTES_MAX);
            self.used = 0;
        }
        let slab = self.memory.len() - 1;
        let block = PieceBlock { slab, offset: self.used, bytes, rows: 0 };
        let start = self.memory[slab].as_mut_slice()[self.used..][..bytes].as_mut_ptr();
        self.used += bytes;
        Ok((block, start))
    }
}
