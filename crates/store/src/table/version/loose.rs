//! Loose rows: newer values of a chunk's rows, and rows that are not in a chunk yet.
//!
//! Scans read them as chunks, which are made on demand and kept: after a change the old chunks
//! are still used with the changed rows masked, and only those form another chunk, together with earlier chunks
//! that are at most twice as large. So each row is encoded only a few times, however
//! often scans and changes alternate.

use std::sync::{Arc, OnceLock};

use atoll_topology::NodeId;
use imbl::{OrdMap, OrdSet};

use super::super::chunk::Chunk;
use super::super::deleted::DeletedRows;
use super::super::row::Row;
use super::super::row_ids::RowIds;
use super::super::writer::ChunkWriter;
use super::home::RowHome;
use super::{Result, Shared};
use crate::ids::RowId;

/// A chunk is merged with the changed rows if it has at most this many times as many rows.
const MERGE_FACTOR: usize = 2;

/// Up to one in this many rows are removed one by one.
const FEW_OF_ROWS: usize = 8;

/// Rows by id, and, once requested, the same rows as chunks.
#[derive(Clone, Debug, Default)]
pub(super) struct LooseRows {
    rows: OrdMap<RowId, Row>,
    /// Size of the rows, in bytes.
    bytes: usize,
    encoded: Arc<OnceLock<Arc<[EncodedRows]>>>,
    before: Option<EncodedBefore>,
}

/// Rows as a chunk.
#[derive(Clone, Debug)]
pub(super) struct EncodedRows {
    pub(super) chunk: Arc<Chunk>,
    pub(super) ids: RowIds,
    /// Rows that are deleted or have newer values.
    pub(super) masked: Option<Arc<DeletedRows>>,
}

/// The chunks that were made before some rows changed.
#[derive(Clone, Debug)]
struct EncodedBefore {
    encoded: Arc<[EncodedRows]>,
    changed: OrdSet<RowId>,
}

impl LooseRows {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn get(&self, id: RowId) -> Option<&Row> {
        self.rows.get(&id)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (RowId, &Row)> {
        self.rows.iter().map(|(id, row)| (*id, row))
    }

    /// Ids of rows in a range.
    pub(super) fn ids_between(&self, first: RowId, last: RowId) -> impl Iterator<Item = RowId> {
        self.rows.range(first..=last).map(|(id, _)| *id)
    }

    /// Ids of rows that only one of the two has, or whose values differ.
    pub(super) fn differing(&self, other: &Self) -> Vec<RowId> {
        use imbl::ordmap::DiffItem;
        let id = |item: DiffItem<'_, '_, RowId, Row>| match item {
            DiffItem::Add(id, _) | DiffItem::Remove(id, _) => *id,
            DiffItem::Update { old: (id, _), .. } => *id,
        };
        self.rows.diff(&other.rows).map(id).collect()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let encoded = self.encoded.get().into_iter().flat_map(|encoded| encoded.iter());
        let copies = encoded.flat_map(|rows| &rows.chunk.copies);
        self.bytes + copies.map(|copy| copy.memory.capacity()).sum::<usize>()
    }

    /// Size of the rows, in bytes.
    pub(super) fn row_bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a row, replacing one with the same id, which is returned.
    pub(super) fn insert(&mut self, id: RowId, row: Row) -> Option<Row> {
        self.bytes += row.memory_bytes();
        let before = self.rows.insert(id, row);
        self.changed(id, before.as_ref());
        before
    }

    pub(super) fn remove(&mut self, id: RowId) -> Option<Row> {
        let before = self.rows.remove(&id);
        self.changed(id, before.as_ref());
        before
    }

    /// Removes rows, whose ids rise; returns those that were deleted or changed, with their old values.
    pub(super) fn take_out(&mut self, taken: &[(RowId, Row)]) -> Vec<(RowId, Option<Row>)> {
        let mut differing = Vec::new();
        if taken.len() < self.len() / FEW_OF_ROWS {
            for (id, before) in taken {
                let now = self.remove(*id);
                if now.as_ref().is_none_or(|now| !now.ptr_eq(before)) {
                    differing.push((*id, now));
                }
            }
            return differing;
        }
        // Each removal copies a path: copying the remaining rows once is cheaper.
        let (mut left, mut taken) = (Self::default(), taken.iter().peekable());
        for (id, now) in &self.rows {
            while let Some((gone, _)) = taken.next_if(|(taken, _)| taken < id) {
                differing.push((*gone, None));
            }
            match taken.next_if(|(taken, _)| taken == id) {
                Some((_, before)) if now.ptr_eq(before) => {}
                Some(_) => differing.push((*id, Some(now.clone()))),
                None => drop(left.insert(*id, now.clone())),
            }
        }
        differing.extend(taken.map(|(gone, _)| (*gone, None)));
        *self = left;
        differing
    }

    fn changed(&mut self, id: RowId, before: Option<&Row>) {
        self.bytes -= before.map_or(0, Row::memory_bytes);
        if let Some(encoded) = self.encoded.get().map(Arc::clone) {
            self.before = Some(EncodedBefore { encoded, changed: OrdSet::new() });
            self.encoded = Arc::default();
        } else if Arc::strong_count(&self.encoded) > 1 {
            // Another version has the old rows, and fills it.
            self.encoded = Arc::default();
        }
        if let Some(before) = &mut self.before {
            before.changed.insert(id);
            if before.changed.len() > self.rows.len() {
                self.before = None;
            }
        }
    }

    /// The rows as chunks in a place.
    pub(super) fn encoded(
        &self,
        shared: &Shared,
        node: NodeId,
        home: RowHome,
    ) -> Result<&[EncodedRows]> {
        if self.encoded.get().is_none() {
            let made = self.encode(shared, node, home)?;
            return Ok(self.encoded.get_or_init(|| made.into()));
        }
        Ok(self.encoded.get().map_or(&[], |encoded| encoded))
    }

    fn encode(&self, shared: &Shared, node: NodeId, home: RowHome) -> Result<Vec<EncodedRows>> {
        let Some(before) = &self.before else {
            return encode(self.rows.iter(), shared, node, home);
        };
        let mut kept: Vec<EncodedRows> =
            before.encoded.iter().filter_map(|rows| rows.without(&before.changed)).collect();
        let changed = before.changed.iter().filter_map(|id| self.rows.get_key_value(id));
        let mut again: Vec<(&RowId, &Row)> = changed.collect();
        while let Some(last) = kept.pop_if(|last| last.rows() <= MERGE_FACTOR * again.len()) {
            again.extend(last.live_ids().filter_map(|id| self.rows.get_key_value(&id)));
        }
        again.sort_unstable_by_key(|(id, _)| **id);
        kept.extend(encode(again.into_iter(), shared, node, home)?);
        Ok(kept)
    }
}

/// Rows, whose ids rise, as chunks in a place.
fn encode<'a>(
    rows: impl Iterator<Item = (&'a RowId, &'a Row)>,
    shared: &Shared,
    node: NodeId,
    home: RowHome,
) -> Result<Vec<EncodedRows>> {
    let (ids, rows): (Vec<RowId>, Vec<Row>) = rows.map(|(id, row)| (*id, row.clone())).unzip();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut writer = shared.writer(node).with_home(home.memory);
    writer.write(&shared.codec.decode(&rows)?)?;
    Ok(with_ids(ids, writer)?
        .map(|(ids, chunk)| EncodedRows { chunk, ids, masked: None })
        .collect())
}

/// The chunks of a writer with the ids of its rows.
pub(super) fn with_ids(
    ids: Vec<RowId>,
    writer: ChunkWriter,
) -> Result<impl Iterator<Item = (RowIds, Arc<Chunk>)>> {
    let mut ids = ids.into_iter();
    Ok(writer.finish()?.into_iter().filter_map(move |chunk| {
        Some((RowIds::new(ids.by_ref().take(chunk.rows).collect())?, Arc::new(chunk)))
    }))
}

impl EncodedRows {
    fn rows(&self) -> usize {
        self.chunk.rows - self.masked.as_ref().map_or(0, |masked| masked.count())
    }

    fn live_ids(&self) -> impl Iterator<Item = RowId> {
        let is_live = |at: &usize| self.masked.as_ref().is_none_or(|gone| !gone.is_deleted(*at));
        (0..self.chunk.rows).filter(is_live).map(|at| self.ids.at(at))
    }

    /// The same without some rows. Returns None if no row is left.
    fn without(&self, changed: &OrdSet<RowId>) -> Option<Self> {
        let at = |id: &RowId| self.ids.position(*id).map(|at| at as u32);
        let gone: Vec<u32> = changed.iter().filter_map(at).collect();
        let masked = match (&self.masked, gone.is_empty()) {
            (before, true) => before.clone(),
            (Some(before), false) => Some(Arc::new(before.with(&gone))),
            (None, false) => Some(Arc::new(DeletedRows::none(self.chunk.rows).with(&gone))),
        };
        let left = Self { masked, ..self.clone() };
        (left.rows() > 0).then_some(left)
    }
}
