//! One side of a join, prepared for reading block by block.

use std::ops::Range;

use arrow_array::Array;
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use atoll_runtime::TaskContext;
use atoll_topology::{Bytes, NodeId};

use super::{EncodedKeys, WordKeys};
use crate::PrimitiveError;
use crate::join::input::{self, JoinInput, Payload};
use crate::work::Chunks;

/// Keys and payloads of a side.
#[derive(Debug)]
pub(in crate::join) struct SideColumns {
    pub(in crate::join) parts: Vec<SidePart>,
    pub(in crate::join) rows: usize,
}

/// Keys and payloads of a part.
#[derive(Debug)]
pub(in crate::join) struct SidePart {
    pub(in crate::join) home: Option<NodeId>,
    /// Number of its first row.
    first: u64,
    pub(in crate::join) rows: usize,
    keys: SideKeys,
    /// Which rows have a key; None for all.
    valid: Option<NullBuffer>,
    /// The payload; None for the row's number.
    payload: Option<ScalarBuffer<u64>>,
}

#[derive(Debug)]
enum SideKeys {
    Words(WordKeys),
    Encoded(EncodedKeys),
}

/// The keys, as words, and payloads of rows with a key; the payloads of rows without.
#[derive(Clone, Copy, Debug)]
pub(in crate::join) struct SideBlock<'a> {
    pub(in crate::join) keys: &'a [u64],
    pub(in crate::join) payloads: &'a [u64],
    pub(in crate::join) without_key: &'a [u64],
}

/// Scratch space for blocks that cannot be read in place.
#[derive(Debug, Default)]
pub(in crate::join) struct BlockScratch {
    keys: Vec<u64>,
    payloads: Vec<u64>,
    without_key: Vec<u64>,
}

impl SideColumns {
    /// A side whose keys fit words, or are encoded, with one [`EncodedKeys`] for each part.
    pub(in crate::join) fn new(
        name: &str,
        input: &JoinInput,
        encoded: Option<Vec<EncodedKeys>>,
    ) -> Result<Self, PrimitiveError> {
        let mut encoded = encoded.map(Vec::into_iter);
        let (mut parts, mut first) = (Vec::with_capacity(input.parts.len()), 0);
        for part in &input.parts {
            let columns = input.columns(name, part)?;
            let nulls: Vec<_> = columns.iter().map(|column| column.logical_nulls()).collect();
            let valid = NullBuffer::union_many(nulls.iter().map(Option::as_ref));
            let keys = match encoded.as_mut().and_then(Iterator::next) {
                Some(encoded) => SideKeys::Encoded(encoded),
                None => SideKeys::Words(WordKeys::from_columns(&columns)),
            };
            let payload = match input.payload {
                Payload::Row => None,
                Payload::Column(at) => Some(words_of(name, &input::column(name, part, at)?)?),
            };
            let rows = part.rows.num_rows();
            let valid = valid.filter(|valid| valid.null_count() > 0);
            parts.push(SidePart { home: part.home, first, rows, keys, valid, payload });
            first += rows as u64;
        }
        Ok(Self { parts, rows: first as usize })
    }

    /// Home and number of rows of each part.
    pub(in crate::join) fn lengths(&self) -> impl Iterator<Item = (Option<NodeId>, usize)> {
        self.parts.iter().map(|part| (part.home, part.rows))
    }

    /// Takes chunks until none is left, and reads them block by block.
    pub(in crate::join) fn read(
        &self,
        chunks: &Chunks,
        task: &TaskContext,
        mut block: impl FnMut(SideBlock<'_>) -> Result<(), PrimitiveError>,
    ) -> Result<(), PrimitiveError> {
        let mut scratch = BlockScratch::default();
        while let Some((part, rows)) = chunks.take(task.node()) {
            let part = &self.parts[part];
            for rows in chunks.blocks(rows.clone()) {
                task.check()?;
                block(part.block(rows, &mut scratch))?;
            }
            if let Some(home) = part.home {
                task.count_read(home, Bytes((rows.len() * part.row_bytes()) as u64));
            }
        }
        Ok(())
    }

    /// Whether some row has no key.
    pub(in crate::join) fn has_nulls(&self) -> bool {
        self.parts.iter().any(|part| part.valid.is_some())
    }

    /// Whether the encoded keys of two rows, one of this side and one of another, are equal.
    pub(in crate::join) fn same_key(&self, row: u64, other: &Self, other_row: u64) -> bool {
        self.encoded_key(row) == other.encoded_key(other_row)
    }

    fn encoded_key(&self, row: u64) -> Option<&[u8]> {
        let part =
            &self.parts[self.parts.partition_point(|part| part.first <= row).checked_sub(1)?];
        match &part.keys {
            SideKeys::Words(_) => None,
            SideKeys::Encoded(keys) => Some(keys.bytes((row - part.first) as usize)),
        }
    }
}

impl SidePart {
    /// Reads some rows.
    pub(in crate::join) fn block<'a>(
        &'a self,
        rows: Range<usize>,
        scratch: &'a mut BlockScratch,
    ) -> SideBlock<'a> {
        scratch.without_key.clear();
        if let Some(valid) = &self.valid {
            return self.block_with_nulls(rows, valid, scratch);
        }
        let BlockScratch { keys, payloads, without_key } = scratch;
        let keys = match &self.keys {
            SideKeys::Words(WordKeys::Plain(column)) => &column[rows.clone()],
            _ => self.read_keys(&rows, keys),
        };
        let payloads = match &self.payload {
            Some(column) => &column[rows],
            None => self.read_payloads(&rows, payloads),
        };
        SideBlock { keys, payloads, without_key }
    }

    fn block_with_nulls<'a>(
        &self,
        rows: Range<usize>,
        valid: &NullBuffer,
        scratch: &'a mut BlockScratch,
    ) -> SideBlock<'a> {
        let BlockScratch { keys, payloads, without_key } = scratch;
        self.read_keys(&rows, keys);
        self.read_payloads(&rows, payloads);
        let mut count = 0;
        for (at, row) in rows.enumerate() {
            if valid.is_valid(row) {
                (keys[count], payloads[count]) = (keys[at], payloads[at]);
                count += 1;
            } else {
                without_key.push(payloads[at]);
            }
        }
        SideBlock { keys: &keys[..count], payloads: &payloads[..count], without_key }
    }

    fn read_keys<'a>(&self, rows: &Range<usize>, keys: &'a mut Vec<u64>) -> &'a [u64] {
        keys.resize(rows.len(), 0);
        match &self.keys {
            SideKeys::Words(columns) => columns.read(rows.start, keys),
            SideKeys::Encoded(encoded) => encoded.hashes(rows.start, keys),
        }
        keys
    }

    fn read_payloads<'a>(&self, rows: &Range<usize>, payloads: &'a mut Vec<u64>) -> &'a [u64] {
        payloads.clear();
        match &self.payload {
            Some(column) => payloads.extend_from_slice(&column[rows.clone()]),
            None => payloads.extend(self.first + rows.start as u64..self.first + rows.end as u64),
        }
        payloads
    }

    /// Bytes read for a row.
    fn row_bytes(&self) -> usize {
        let keys = match &self.keys {
            SideKeys::Words(keys) => keys.width(),
            SideKeys::Encoded(_) => 8,
        };
        keys + if self.payload.is_some() { 8 } else { 0 }
    }
}

/// A 64-bit column as words.
fn words_of(side: &str, column: &dyn Array) -> Result<ScalarBuffer<u64>, PrimitiveError> {
    let supported = "any type of 64 bits; deliver row numbers instead";
    let data_type = column.data_type();
    if data_type.primitive_width() != Some(8) || matches!(data_type, DataType::Dictionary(..)) {
        let data_type = data_type.clone();
        return Err(PrimitiveError::Type { what: "a join's payload", data_type, supported });
    }
    if column.logical_null_count() > 0 {
        return Err(PrimitiveError::Shape {
            what: format!("payload column of the {side} side"),
            found: format!("{} nulls", column.logical_null_count()),
            expected: "no nulls, or row numbers as payload".into(),
        });
    }
    let data = column.to_data();
    Ok(ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len()))
}
