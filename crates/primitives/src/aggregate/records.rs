//! Rows partitioned by piece: one word for the key, one for each value.
//!
//! Blocks with nulls, or with integers beyond 64 bits, are stored separately, as wide records with a word of flags and
//! two words for each value that may need them. Nearly all others are narrow.

use std::fmt;

use atoll_placement::{Arena, PlacementError};
use atoll_topology::NodeId;

use super::lane::{self, LaneValues, ValueBlock};
use super::plan::AggregatePlan;
use crate::kernel::scatter::Scatter;
use crate::partition::{FanOut, Pieces};

/// Maximum number of words of a record.
pub(super) const WORDS_MAX: usize = 16;
/// Maximum number of values whose flags fit one word.
pub(super) const VALUES_MAX: usize = 64;

/// Type of a value when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueSlot {
    Int,
    /// Two words in wide records.
    Wide,
    Float,
}

impl ValueSlot {
    /// Words of it in a wide record.
    pub(super) fn words(self) -> usize {
        if self == Self::Wide { 2 } else { 1 }
    }
}

/// Layout of the records of a query.
#[derive(Clone, Debug)]
pub(super) struct RecordLayout {
    slots: Vec<ValueSlot>,
}

impl RecordLayout {
    /// The layout of a query; None if its records would be too long.
    pub(super) fn new(plan: &AggregatePlan) -> Option<Self> {
        let slots: Vec<ValueSlot> = plan
            .values
            .iter()
            .map(|(_, data_type)| match data_type {
                float if lane::is_float(float) => ValueSlot::Float,
                wide if lane::may_be_wide(wide) => ValueSlot::Wide,
                _ => ValueSlot::Int,
            })
            .collect();
        let layout = Self { slots };
        let fits = layout.wide_words() <= WORDS_MAX && layout.slots.len() <= VALUES_MAX;
        fits.then_some(layout)
    }

    /// Words of a narrow record.
    pub(super) fn words(&self) -> usize {
        1 + self.slots.len()
    }

    fn wide_words(&self) -> usize {
        2 + self.slots.iter().map(|slot| slot.words()).sum::<usize>()
    }

    /// What the values are.
    pub(super) fn slots(&self) -> &[ValueSlot] {
        &self.slots
    }
}

/// One worker's records, partitioned into pieces.
pub(super) struct InputRecords {
    layout: RecordLayout,
    narrow: Box<dyn RecordScatter>,
    wide: Option<Box<dyn RecordScatter>>,
    arena: Arena,
    home: Option<NodeId>,
    fan_out: FanOut,
    buffer_rows: usize,
    columns: Vec<Vec<u64>>,
}

/// Records of one worker, by piece.
pub(super) struct DealtRecords {
    layout: RecordLayout,
    pub(super) home: Option<NodeId>,
    pieces: usize,
    narrow: Box<dyn RecordStore>,
    wide: Option<Box<dyn RecordStore>>,
}

impl InputRecords {
    pub(super) fn new(
        layout: &RecordLayout,
        fan_out: FanOut,
        buffer_rows: usize,
        rows: usize,
        (arena, home): (&Arena, Option<NodeId>),
    ) -> Result<Self, PlacementError> {
        let narrow = sink(layout.words(), arena, home, fan_out, buffer_rows, rows)?;
        Ok(Self {
            layout: layout.clone(),
            narrow,
            wide: None,
            arena: arena.clone(),
            home,
            fan_out,
            buffer_rows,
            columns: Vec::new(),
        })
    }

    /// Adds a block: the piece, the key's word and the values of each row.
    pub(super) fn push(
        &mut self,
        digits: &[u32],
        words: &[u64],
        values: &[ValueBlock<'_>],
    ) -> Result<(), PlacementError> {
        let plain = |block: &ValueBlock<'_>| {
            block.valid.is_none() && !matches!(block.values, LaneValues::Wide(_))
        };
        if values.iter().all(plain) {
            let mut columns: Vec<&[u64]> = Vec::with_capacity(1 + values.len());
            columns.push(words);
            columns.extend(values.iter().map(|block| match block.values {
                LaneValues::Int(ints) => crate::kernel::words::of_ints(ints),
                LaneValues::Float(floats) => crate::kernel::words::of_floats(floats),
                LaneValues::Wide(_) => unreachable!("looked at above"),
            }));
            return self.narrow.push(digits, &columns);
        }
        self.push_wide(digits, words, values)
    }

    fn push_wide(
        &mut self,
        digits: &[u32],
        words: &[u64],
        values: &[ValueBlock<'_>],
    ) -> Result<(), PlacementError> {
        if self.wide.is_none() {
            let (arena, count) = (&self.arena, self.layout.wide_words());
            self.wide = Some(sink(count, arena, self.home, self.fan_out, self.buffer_rows, 0)?);
        }
        self.columns.clear();
        let mut flags = vec![0; words.len()];
        for (at, block) in values.iter().enumerate() {
            match block.valid {
                None => flags.iter_mut().for_each(|flags| *flags |= 1 << at),
                Some(valid) => flags
                    .iter_mut()
                    .zip(valid)
                    .for_each(|(flags, valid)| *flags |= u64::from(*valid) << at),
            }
        }
        self.columns.push(flags);
        for (slot, block) in self.layout.slots.iter().zip(values) {
            wide_columns(*slot, block, &mut self.columns);
        }
        let mut columns: Vec<&[u64]> = vec![words];
        columns.extend(self.columns.iter().map(Vec::as_slice));
        self.wide.as_mut().expect("made above").push(digits, &columns)
    }

    pub(super) fn finish(self) -> Result<DealtRecords, PlacementError> {
        let wide = self.wide.map(|wide| wide.finish()).transpose()?;
        let pieces = self.fan_out.partitions();
        let (layout, home, narrow) = (self.layout, self.home, self.narrow.finish()?);
        Ok(DealtRecords { layout, home, pieces, narrow, wide })
    }
}

impl fmt::Debug for InputRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("home", &self.home).finish_non_exhaustive()
    }
}

impl fmt::Debug for DealtRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dealt").field("home", &self.home).finish_non_exhaustive()
    }
}

/// The words of a value in a wide record.
fn wide_columns(slot: ValueSlot, block: &ValueBlock<'_>, to: &mut Vec<Vec<u64>>) {
    match (slot, block.values) {
        (ValueSlot::Float, LaneValues::Float(values)) => {
            to.push(values.iter().map(|value| value.to_bits()).collect());
        }
        (ValueSlot::Wide, LaneValues::Wide(values)) => {
            to.push(values.iter().map(|value| *value as u64).collect());
            to.push(values.iter().map(|value| (*value >> 64) as u64).collect());
        }
        (ValueSlot::Wide, LaneValues::Int(values)) => {
            to.push(values.iter().map(|value| *value as u64).collect());
            to.push(values.iter().map(|value| (*value >> 63) as u64).collect());
        }
        (_, LaneValues::Int(values)) => to.push(values.iter().map(|value| *value as u64).collect()),
        (slot, values) => unreachable!("a {slot:?} column gives {values:?}"),
    }
}

/// A decoded block of records.
#[derive(Debug, Default)]
pub(super) struct RecordColumns {
    pub(super) words: Vec<u64>,
    values: Vec<RecordColumn>,
}

#[derive(Debug, Default)]
struct RecordColumn {
    scratch: lane::LaneScratch,
    slot: Option<ValueSlot>,
    valid: bool,
}

impl RecordColumns {
    /// The values as blocks.
    pub(super) fn blocks(&self) -> Vec<ValueBlock<'_>> {
        self.values
            .iter()
            .map(|column| ValueBlock {
                values: match column.slot {
                    Some(ValueSlot::Float) => LaneValues::Float(&column.scratch.float),
                    Some(ValueSlot::Wide) if column.valid => LaneValues::Wide(&column.scratch.wide),
                    _ => LaneValues::Int(&column.scratch.int),
                },
                valid: column.valid.then_some(&column.scratch.valid[..]),
            })
            .collect()
    }

    fn clear(&mut self, layout: &RecordLayout, wide: bool) {
        self.words.clear();
        self.values.resize_with(layout.slots.len(), RecordColumn::default);
        for (column, slot) in self.values.iter_mut().zip(&layout.slots) {
            column.slot = Some(*slot);
            column.valid = wide;
            column.scratch.int.clear();
            column.scratch.wide.clear();
            column.scratch.float.clear();
            column.scratch.valid.clear();
        }
    }
}

impl DealtRecords {
    /// Number of pieces.
    pub(super) fn pieces(&self) -> usize {
        self.pieces
    }

    /// Rows of a piece.
    pub(super) fn rows(&self, piece: usize) -> usize {
        self.narrow.rows(piece) + self.wide.as_ref().map_or(0, |wide| wide.rows(piece))
    }

    /// Bytes of a piece.
    pub(super) fn bytes(&self, piece: usize) -> usize {
        let wide = self.wide.as_ref().map_or(0, |wide| wide.rows(piece));
        self.narrow.rows(piece) * self.layout.words() * 8 + wide * self.layout.wide_words() * 8
    }

    /// Decodes a piece, `rows` rows at a time; if several workers share it, only blocks `part` of `parts`, in turn.
    pub(super) fn read<E>(
        &self,
        piece: usize,
        rows: usize,
        (part, parts): (usize, usize),
        columns: &mut RecordColumns,
        mut take: impl FnMut(&RecordColumns) -> Result<(), E>,
    ) -> Result<(), E> {
        let stores = [Some((&self.narrow, false)), self.wide.as_ref().map(|wide| (wide, true))];
        for (store, wide) in stores.into_iter().flatten() {
            columns.clear(&self.layout, wide);
            let mut from = part;
            while from < store.blocks(piece) {
                store.take_apart(piece, from, &self.layout, wide, columns);
                from += parts;
                if columns.words.len() >= rows || from >= store.blocks(piece) {
                    take(columns)?;
                    columns.clear(&self.layout, wide);
                }
            }
        }
        Ok(())
    }
}

/// Scatters records of any number of words.
trait RecordScatter: Send {
    fn push(&mut self, digits: &[u32], columns: &[&[u64]]) -> Result<(), PlacementError>;
    fn finish(self: Box<Self>) -> Result<Box<dyn RecordStore>, PlacementError>;
}

/// Records of any number of words, by piece.
trait RecordStore: Send + Sync {
    fn rows(&self, piece: usize) -> usize;
    /// Blocks of a piece.
    fn blocks(&self, piece: usize) -> usize;
    /// Appends a block's records to columns.
    fn take_apart(
        &self,
        piece: usize,
        block: usize,
        layout: &RecordLayout,
        wide: bool,
        to: &mut RecordColumns,
    );
}

impl<const W: usize> RecordScatter for Scatter<W> {
    fn push(&mut self, digits: &[u32], columns: &[&[u64]]) -> Result<(), PlacementError> {
        // Pads records with the key to a length for which there is code.
        let columns = std::array::from_fn(|at| columns.get(at).copied().unwrap_or(columns[0]));
        self.extend_columns(digits, columns)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn RecordStore>, PlacementError> {
        Ok(Box::new((*self).finish()?))
    }
}

impl<const W: usize> RecordStore for Pieces<W> {
    fn rows(&self, piece: usize) -> usize {
        Pieces::rows(self, piece)
    }

    fn blocks(&self, piece: usize) -> usize {
        self.block_count(piece)
    }

    fn take_apart(
        &self,
        piece: usize,
        block: usize,
        layout: &RecordLayout,
        wide: bool,
        to: &mut RecordColumns,
    ) {
        let rows = self.block(piece, block);
        to.words.extend(rows.iter().map(|row| row[0]));
        let mut at = 1 + usize::from(wide);
        for (value, (slot, column)) in layout.slots.iter().zip(&mut to.values).enumerate() {
            let word = at.min(W - 1);
            let scratch = &mut column.scratch;
            if wide {
                scratch.valid.extend(rows.iter().map(|row| (row[1.min(W - 1)] >> value & 1) as u8));
            }
            match (slot, wide) {
                (ValueSlot::Float, _) => {
                    scratch.float.extend(rows.iter().map(|row| f64::from_bits(row[word])));
                }
                (ValueSlot::Wide, true) => {
                    let high = (at + 1).min(W - 1);
                    scratch.wide.extend(
                        rows.iter().map(|row| {
                            (i128::from(row[high] as i64) << 64) | i128::from(row[word])
                        }),
                    );
                    at += 1;
                }
                _ => scratch.int.extend(rows.iter().map(|row| row[word] as i64)),
            }
            at += 1;
        }
    }
}

/// A scatter of records of at least this many words.
fn sink(
    words: usize,
    arena: &Arena,
    home: Option<NodeId>,
    fan_out: FanOut,
    buffer_rows: usize,
    rows: usize,
) -> Result<Box<dyn RecordScatter>, PlacementError> {
    macro_rules! of {
        ($($words:literal),*) => {
            $(if words <= $words {
                let scatter = Scatter::<$words>::new(arena, home, fan_out, buffer_rows, rows)?;
                return Ok(Box::new(scatter));
            })*
        };
    }
    of!(1, 2, 3, 4, 6, 8, 12);
    Ok(Box::new(Scatter::<WORDS_MAX>::new(arena, home, fan_out, buffer_rows, rows)?))
}
