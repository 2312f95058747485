//! Rows with encoded keys, partitioned by piece: hash, values and key of each, one after another in the blocks of its
//! piece. A row is written once, sequentially, and read once when its group is looked up. This pays for keys that
//! repeat so rarely that a table for all of them would exceed the caches.
//!
//! ```text
//! hash │ bytes of the key, which values there are │ values, a word or two each │ key │ up to a full word
//! ```

use atoll_placement::{Arena, NodeBuffer, PlacementError};
use atoll_topology::NodeId;

use super::keys::{EncodedKeys, is_same};
use super::lane::{LaneScratch, LaneValues, ValueBlock};
use super::records::{RecordLayout, ValueSlot};
use super::table::{Check, GroupTable};
use crate::PrimitiveError;
use crate::partition::FanOut;

/// Bytes of a word.
const WORD: usize = 8;
/// Words in front of the values.
const HEAD: usize = 2;
/// Bytes of a piece's first block; each block is twice as long as the one before, up to a limit. Longer records have a
/// block of their own.
const BLOCK_BYTES_MIN: usize = 512;
const BLOCK_BYTES_MAX: usize = 8 << 10;
/// Bytes of the first slab for blocks; slabs double as well.
const SLAB_BYTES_MIN: usize = 64 << 10;
const SLAB_BYTES_MAX: usize = 2 << 20;
/// Records decoded at a time.
const TOGETHER: usize = 1024;

/// One input's rows, by piece.
#[derive(Debug)]
pub(super) struct KeyRecords {
    layout: RecordLayout,
    /// Bytes in front of the key.
    head: usize,
    fan_out: FanOut,
    slabs: Vec<NodeBuffer>,
    /// The current slab for blocks, and how much of it is used.
    open: Option<(usize, usize)>,
    pieces: Vec<Vec<RecordBlock>>,
    rows: usize,
    arena: Arena,
    home: Option<NodeId>,
}

/// Records of a piece: from `start` to `end` of a slab, with room up to `limit`.
#[derive(Clone, Copy, Debug)]
struct RecordBlock {
    slab: usize,
    start: usize,
    end: usize,
    limit: usize,
}

/// Decoded records of a piece.
#[derive(Debug, Default)]
pub(super) struct KeyColumns {
    columns: Vec<LaneScratch>,
}

/// Keys of records.
struct RecordKeys<'a> {
    records: &'a [&'a [u8]],
    head: usize,
}

impl KeyRecords {
    /// An empty partitioning into this many pieces by the high bits of the hash.
    pub(super) fn new(
        layout: &RecordLayout,
        fan_out: FanOut,
        arena: &Arena,
        home: Option<NodeId>,
    ) -> Self {
        let words = layout.slots().iter().map(|slot| slot.words());
        Self {
            head: (HEAD + words.sum::<usize>()) * WORD,
            layout: layout.clone(),
            fan_out,
            slabs: Vec::new(),
            open: None,
            pieces: vec![Vec::new(); fan_out.partitions()],
            rows: 0,
            arena: arena.clone(),
            home,
        }
    }

    /// Adds a block of rows.
    pub(super) fn push(
        &mut self,
        keys: &impl EncodedKeys,
        rows: usize,
        values: &[ValueBlock<'_>],
    ) -> Result<(), PlacementError> {
        let (head, layout) = (self.head, self.layout.clone());
        let slots = layout.slots();
        let of_rows = keys.of_rows();
        for row in 0..rows {
            let at = of_rows.map_or(row, |keys| keys[row] as usize);
            let (hash, bytes) = (keys.hash(at), keys.bytes(at));
            let record = self.room(self.fan_out.digit(hash), head + bytes)?;
            let (front, key) = record.split_at_mut(head);
            put_head(front, (hash, bytes), row, slots.iter().copied().zip(values.iter().copied()));
            keys.write(at, &mut key[..bytes]);
        }
        self.rows += rows;
        Ok(())
    }

    /// Memory for a record of a piece, rounded up to a full word.
    #[inline(always)]
    fn room(&mut self, piece: usize, bytes: usize) -> Result<&mut [u8], PlacementError> {
        let bytes = bytes.next_multiple_of(WORD);
        let fits = |block: &&RecordBlock| block.limit - block.end >= bytes;
        if self.pieces[piece].last().filter(fits).is_none() {
            let len = doubled(BLOCK_BYTES_MIN, self.pieces[piece].len(), BLOCK_BYTES_MAX);
            let block = self.block(len.max(bytes))?;
            self.pieces[piece].push(block);
        }
        let Some(block) = self.pieces[piece].last_mut() else { unreachable!("made above") };
        let start = block.end;
        block.end += bytes;
        Ok(&mut self.slabs[block.slab].as_mut_slice()[start..start + bytes])
    }

    /// Allocates a block of this many bytes.
    #[inline(never)]
    fn block(&mut self, bytes: usize) -> Result<RecordBlock, PlacementError> {
        let has_room = |at: usize, used: usize| used + bytes <= self.slabs[at].len();
        let (slab, start) = match self.open.filter(|(slab, used)| has_room(*slab, *used)) {
            Some(open) => open,
            None => {
                let len = doubled(SLAB_BYTES_MIN, self.slabs.len(), SLAB_BYTES_MAX);
                self.slabs.push(self.arena.allocate(self.home, len.max(bytes))?);
                (self.slabs.len() - 1, 0)
            }
        };
        let limit = start + bytes;
        self.open = Some((slab, limit));
        Ok(RecordBlock { slab, start, end: start, limit })
    }

    /// Rows of all pieces.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Home node of the memory.
    pub(super) fn home(&self) -> Option<NodeId> {
        self.home
    }

    /// Bytes of a piece.
    pub(super) fn bytes(&self, piece: usize) -> usize {
        self.pieces[piece].iter().map(|block| block.end - block.start).sum()
    }

    /// Aggregates a piece into a table of encoded keys, calling `check` now and then.
    pub(super) fn update(
        &self,
        table: &mut GroupTable,
        piece: usize,
        columns: &mut KeyColumns,
        check: Check<'_>,
    ) -> Result<(), PrimitiveError> {
        let mut records = Vec::with_capacity(TOGETHER);
        for block in &self.pieces[piece] {
            let mut rest = &self.slabs[block.slab].as_slice()[block.start..block.end];
            while !rest.is_empty() {
                let bytes = self.head + key_bytes(rest);
                let (record, behind) = rest.split_at(bytes.next_multiple_of(WORD));
                records.push(record);
                rest = behind;
                if records.len() == TOGETHER {
                    self.take(table, &records, columns, check)?;
                    records.clear();
                }
            }
        }
        self.take(table, &records, columns, check)
    }

    fn take(
        &self,
        table: &mut GroupTable,
        records: &[&[u8]],
        columns: &mut KeyColumns,
        check: Check<'_>,
    ) -> Result<(), PrimitiveError> {
        check()?;
        let values = columns.take_apart(self.layout.slots(), records);
        Ok(table.update_encoded(&RecordKeys { records, head: self.head }, &values)?)
    }
}

/// `least`, doubled this many times, up to `most`.
fn doubled(least: usize, times: usize, most: usize) -> usize {
    least << times.min((most / least).ilog2() as usize)
}

/// Writes the header in front of a key.
#[inline(always)]
fn put_head<'a>(
    head: &mut [u8],
    (hash, bytes): (u64, usize),
    row: usize,
    values: impl Iterator<Item = (ValueSlot, ValueBlock<'a>)>,
) {
    let (words, _) = head.as_chunks_mut::<WORD>();
    let (mut valid, mut next) = (0_u64, HEAD);
    for (at, (slot, block)) in values.enumerate() {
        valid |= block.valid.map_or(1, |valid| u64::from(valid[row])) << at;
        let (low, high) = match block.values {
            LaneValues::Int(ints) => (ints[row] as u64, (ints[row] >> 63) as u64),
            LaneValues::Wide(ints) => (ints[row] as u64, (ints[row] >> 64) as u64),
            LaneValues::Float(floats) => (floats[row].to_bits(), 0),
        };
        words[next] = low.to_le_bytes();
        if slot == ValueSlot::Wide {
            words[next + 1] = high.to_le_bytes();
        }
        next += slot.words();
    }
    words[0] = hash.to_le_bytes();
    words[1] = (valid << u32::BITS | bytes as u64).to_le_bytes();
}

/// A word of a record.
#[inline(always)]
fn word(record: &[u8], at: usize) -> u64 {
    let bytes = &record[at * WORD..][..WORD];
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// Length of the key of the first record.
#[inline(always)]
fn key_bytes(records: &[u8]) -> usize {
    word(records, 1) as u32 as usize
}

/// Whether a record has a value at this position.
#[inline(always)]
fn has_value(record: &[u8], at: usize) -> bool {
    word(record, 1) >> u32::BITS >> at & 1 == 1
}

impl KeyColumns {
    fn take_apart(&mut self, slots: &[ValueSlot], records: &[&[u8]]) -> Vec<ValueBlock<'_>> {
        self.columns.resize_with(slots.len(), LaneScratch::default);
        let mut first = HEAD;
        let columns = self.columns.iter_mut().zip(slots).enumerate();
        columns
            .map(|(at, (column, slot))| {
                let block = value_block(column, *slot, (at, first), records);
                first += slot.words();
                block
            })
            .collect()
    }
}

/// The values at a position, which start at the word `first`.
fn value_block<'a>(
    LaneScratch { int, wide, float, valid }: &'a mut LaneScratch,
    slot: ValueSlot,
    (at, first): (usize, usize),
    records: &[&[u8]],
) -> ValueBlock<'a> {
    let low = |record: &&[u8]| word(record, first) as i64;
    let high = |record: &&[u8]| word(record, first + 1) as i64;
    let is_wide =
        slot == ValueSlot::Wide && records.iter().any(|record| high(record) != low(record) >> 63);
    let values = match slot {
        ValueSlot::Float => {
            float.clear();
            float.extend(records.iter().map(|record| f64::from_bits(word(record, first))));
            LaneValues::Float(float)
        }
        _ if is_wide => {
            let whole =
                |record: &&[u8]| i128::from(high(record)) << 64 | i128::from(word(record, first));
            wide.clear();
            wide.extend(records.iter().map(whole));
            LaneValues::Wide(wide)
        }
        _ => {
            int.clear();
            int.extend(records.iter().map(low));
            LaneValues::Int(int)
        }
    };
    let has_all = records.iter().all(|record| has_value(record, at));
    valid.clear();
    if !has_all {
        valid.extend(records.iter().map(|record| u8::from(has_value(record, at))));
    }
    ValueBlock { values, valid: (!has_all).then_some(valid) }
}

impl EncodedKeys for RecordKeys<'_> {
    fn len(&self) -> usize {
        self.records.len()
    }

    #[inline(always)]
    fn hash(&self, at: usize) -> u64 {
        word(self.records[at], 0)
    }

    #[inline(always)]
    fn bytes(&self, at: usize) -> usize {
        key_bytes(self.records[at])
    }

    #[inline(always)]
    fn is_same(&self, at: usize, key: &[u8]) -> bool {
        is_same(&self.records[at][self.head..][..key.len()], key)
    }

    #[inline(always)]
    fn write(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.records[at][self.head..][..to.len()]);
    }
}
