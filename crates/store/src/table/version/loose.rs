//! Rows by themselves: newer values of a chunk's rows, and rows that are in no chunk yet.

use std::sync::{Arc, OnceLock};

use imbl::OrdMap;

use super::super::chunk::Chunk;
use super::super::row::Row;
use super::super::row_ids::RowIds;
use super::super::writer::ChunkWriter;
use super::entry::RowHome;
use super::{Result, Shared};
use crate::ids::RowId;
use atoll_topology::NodeId;

/// Rows by id, and, once they were asked for, the same rows as chunks.
#[derive(Clone, Debug, Default)]
pub(super) struct LooseRows {
    rows: OrdMap<RowId, Row>,
    /// Bytes of the rows.
    bytes: usize,
    encoded: Arc<OnceLock<Arc<[EncodedRows]>>>,
}

/// Rows as a chunk.
#[derive(Clone, Debug)]
pub(super) struct EncodedRows {
    pub(super) ids: RowIds,
    pub(super) chunk: Arc<Chunk>,
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

    /// Ids of rows from one to another.
    pub(super) fn ids_between(&self, first: RowId, last: RowId) -> impl Iterator<Item = RowId> {
        self.rows.range(first..=last).map(|(id, _)| *id)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a row, in place of one with the same id, which is returned.
    pub(super) fn insert(&mut self, id: RowId, row: Row) -> Option<Row> {
        self.encoded = Arc::default();
        self.bytes += row.memory_bytes();
        let before = self.rows.insert(id, row);
        self.bytes -= before.as_ref().map_or(0, Row::memory_bytes);
        before
    }

    pub(super) fn remove(&mut self, id: RowId) -> Option<Row> {
        self.encoded = Arc::default();
        let before = self.rows.remove(&id);
        self.bytes -= before.as_ref().map_or(0, Row::memory_bytes);
        before
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
        let rows: Vec<Row> = self.rows.values().cloned().collect();
        let batch = shared.codec.decode(&rows)?;
        let (name, schema) = (Arc::clone(&shared.name), Arc::clone(shared.codec.schema()));
        let writer = ChunkWriter::new(name, schema, shared.destination.clone(), node, 0);
        let mut writer = writer.with_home(home.memory);
        writer.write(&batch)?;
        let mut ids = self.rows.keys().copied();
        let encoded = writer.finish()?.into_iter().filter_map(|chunk| {
            let ids = RowIds::new(ids.by_ref().take(chunk.rows).collect())?;
            Some(EncodedRows { ids, chunk: Arc::new(chunk) })
        });
        Ok(encoded.collect())
    }
}
