//! Keys of any type, as bytes that are equal where the keys are (Arrow's row format).

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::DataType;
use atoll_placement::{Arena, PlacementError};
use atoll_topology::NodeId;

use crate::kernel::groups::{EMPTY, GroupIds};
use crate::kernel::room::Room;
use crate::{PrimitiveError, hash};

/// Slots for each group, at least.
const SLOTS_PER_GROUP: usize = 2;
/// Slots of an empty table.
const SLOTS_MIN: usize = 1024;

/// Turns key columns into rows of bytes and back.
#[derive(Clone)]
pub(in crate::aggregate) struct Encoder(Arc<RowConverter>);

impl Encoder {
    /// An encoder of columns of these types.
    pub(in crate::aggregate) fn new(types: &[DataType]) -> Result<Self, PrimitiveError> {
        let fields = types.iter().map(|data_type| SortField::new(data_type.clone())).collect();
        Ok(Self(Arc::new(RowConverter::new(fields)?)))
    }

    /// Rows of these columns.
    pub(in crate::aggregate) fn encode(
        &self,
        columns: &[ArrayRef],
    ) -> Result<Rows, PrimitiveError> {
        let columns: Vec<ArrayRef> = columns.iter().map(one_zero).collect();
        Ok(self.0.convert_columns(&columns)?)
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encoder")
    }
}

/// Both zeros as one: they are the same group.
fn one_zero(column: &ArrayRef) -> ArrayRef {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, Float64Type};
    match column.data_type() {
        DataType::Float64 => {
            Arc::new(column.as_primitive::<Float64Type>().unary::<_, Float64Type>(|v| v + 0.0))
        }
        DataType::Float32 => {
            Arc::new(column.as_primitive::<Float32Type>().unary::<_, Float32Type>(|v| v + 0.0))
        }
        _ => Arc::clone(column),
    }
}

/// Groups of encoded keys, numbered as they come.
#[derive(Debug)]
pub(in crate::aggregate) struct Encoded {
    encoder: Encoder,
    slots: Room<u32>,
    hashes: Room<u64>,
    /// Bytes of all groups' keys, and where each ends.
    bytes: Room<u8>,
    ends: Room<u64>,
}

impl Encoded {
    pub(in crate::aggregate) fn new(
        encoder: Encoder,
        arena: &Arena,
        home: Option<NodeId>,
    ) -> Result<Self, PlacementError> {
        let mut slots = Room::new(arena, home);
        slots.grow(SLOTS_MIN, EMPTY)?;
        let (hashes, ends) = (Room::new(arena, home), Room::new(arena, home));
        Ok(Self { encoder, slots, hashes, bytes: Room::new(arena, home), ends })
    }

    /// What encodes its keys.
    pub(in crate::aggregate) fn encoder(&self) -> Encoder {
        self.encoder.clone()
    }

    pub(in crate::aggregate) fn groups(&self) -> usize {
        self.hashes.len()
    }

    /// Finds the groups of `len` encoded rows from `start`; new keys become groups.
    pub(in crate::aggregate) fn find(
        &mut self,
        rows: &Rows,
        (start, len): (usize, usize),
        ids: &mut GroupIds,
    ) -> Result<(), PlacementError> {
        let mut found = Vec::with_capacity(len);
        for row in start..start + len {
            found.push(self.find_one(rows.row(row).as_ref())?);
        }
        ids.take(found.into_iter(), self.groups());
        Ok(())
    }

    /// Finds the groups of some of another table's keys.
    pub(in crate::aggregate) fn find_groups(
        &mut self,
        other: &Encoded,
        chosen: &[u32],
        ids: &mut GroupIds,
    ) -> Result<(), PlacementError> {
        let mut found = Vec::with_capacity(chosen.len());
        for group in chosen.iter().map(|group| *group as usize) {
            found.push(self.find_hashed(other.hashes.as_slice()[group], other.key(group))?);
        }
        ids.take(found.into_iter(), self.groups());
        Ok(())
    }

    fn find_one(&mut self, key: &[u8]) -> Result<u32, PlacementError> {
        self.find_hashed(hash_bytes(key), key)
    }

    fn find_hashed(&mut self, hash: u64, key: &[u8]) -> Result<u32, PlacementError> {
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match slots[slot] {
                EMPTY => return self.add(hash, key, slot),
                group => {
                    let group = group as usize - 1;
                    if self.hashes.as_slice()[group] == hash && self.key(group) == key {
                        return Ok(group as u32);
                    }
                    slot = (slot + 1) & mask;
                }
            }
        }
    }

    #[inline(never)]
    fn add(&mut self, hash: u64, key: &[u8], slot: usize) -> Result<u32, PlacementError> {
        let group = self.hashes.len() as u32;
        let start = self.bytes.len();
        self.bytes.grow(start + key.len(), 0)?;
        self.bytes.as_mut_slice()[start..].copy_from_slice(key);
        self.ends.push((start + key.len()) as u64)?;
        self.hashes.push(hash)?;
        self.slots.as_mut_slice()[slot] = group + 1;
        if self.hashes.len() * SLOTS_PER_GROUP > self.slots.len() {
            self.spread()?;
        }
        Ok(group)
    }

    fn spread(&mut self) -> Result<(), PlacementError> {
        let len = self.slots.len() * 4;
        let mut slots = self.slots.beside();
        slots.grow(len, EMPTY)?;
        let to = slots.as_mut_slice();
        for (group, hash) in self.hashes.as_slice().iter().enumerate() {
            let mut slot = *hash as usize & (len - 1);
            while to[slot] != EMPTY {
                slot = (slot + 1) & (len - 1);
            }
            to[slot] = group as u32 + 1;
        }
        self.slots = slots;
        Ok(())
    }

    fn key(&self, group: usize) -> &[u8] {
        let ends = self.ends.as_slice();
        let start = if group == 0 { 0 } else { ends[group - 1] as usize };
        &self.bytes.as_slice()[start..ends[group] as usize]
    }

    /// Hash of each group.
    pub(in crate::aggregate) fn hashes(&self) -> &[u64] {
        self.hashes.as_slice()
    }

    /// Key columns of groups.
    pub(in crate::aggregate) fn columns(
        &self,
        chosen: &[u32],
    ) -> Result<Vec<ArrayRef>, PrimitiveError> {
        let parser = self.encoder.0.parser();
        let rows = chosen.iter().map(|group| parser.parse(self.key(*group as usize)));
        Ok(self.encoder.0.convert_rows(rows)?)
    }

    pub(in crate::aggregate) fn memory_bytes(&self) -> usize {
        let rooms = self.slots.memory_bytes() + self.hashes.memory_bytes();
        rooms + self.bytes.memory_bytes() + self.ends.memory_bytes()
    }
}

/// Hash of a key's bytes, eight at a time.
fn hash_bytes(key: &[u8]) -> u64 {
    let chunks = key.chunks_exact(8);
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    let words = chunks.map(|chunk| u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
    let hash = words.fold(hash::word(key.len() as u64), hash::then);
    hash::then(hash, u64::from_le_bytes(last))
}
