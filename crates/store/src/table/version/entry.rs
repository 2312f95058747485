//! A chunk of a table with its changes since it was made.

use std::sync::{Arc, OnceLock};

use arrow_array::ArrayRef;
use atoll_placement::ChunkHome;

use super::super::chunk::{BLOCK_ROWS, Chunk};
use super::super::column::{Selection, StoredColumn};
use super::super::deleted::DeletedRows;
use super::super::row::{Key, Row, RowCodec};
use super::super::row_ids::RowIds;
use super::Result;
use super::home::RowHome;
use super::loose::LooseRows;
use crate::ids::{ChunkFileId, RowId};

/// A chunk of a table with its changes since it was made.
#[derive(Clone, Debug)]
pub struct ChunkEntry {
    chunk: Arc<Chunk>,
    ids: RowIds,
    /// Rows of the chunk that are deleted or have newer values.
    masked: Option<Arc<DeletedRows>>,
    /// The newer values.
    delta: LooseRows,
    /// Shared by all entries of the chunk.
    file: Arc<OnceLock<ChunkFileId>>,
}

impl ChunkEntry {
    /// A chunk without changes, whose rows have these ids.
    pub(super) fn new(chunk: Arc<Chunk>, ids: RowIds, file: Option<ChunkFileId>) -> Self {
        let file = Arc::new(file.map_or_else(OnceLock::new, OnceLock::from));
        Self { chunk, ids, masked: None, delta: LooseRows::default(), file }
    }

    /// The chunk.
    pub fn chunk(&self) -> &Arc<Chunk> {
        &self.chunk
    }

    /// Ids of the rows of the chunk, including deleted ones.
    pub fn ids(&self) -> &RowIds {
        &self.ids
    }

    /// The rows of the chunk that are deleted or have newer values.
    pub fn masked(&self) -> Option<&Arc<DeletedRows>> {
        self.masked.as_ref()
    }

    /// The newer values, in the order of ids; all of these rows are masked in the chunk.
    pub fn delta(&self) -> impl ExactSizeIterator<Item = (RowId, &Row)> {
        self.delta.iter()
    }

    /// The file that holds the chunk, once there is one.
    pub fn file(&self) -> Option<ChunkFileId> {
        self.file.get().copied()
    }

    /// Sets the file of the chunk, once it is synced. Only the first file counts.
    pub fn set_file(&self, file: ChunkFileId) -> ChunkFileId {
        *self.file.get_or_init(|| file)
    }

    /// Number of rows of the chunk that are deleted or have newer values.
    pub fn deleted_rows(&self) -> usize {
        self.masked.as_ref().map_or(0, |masked| masked.count())
    }

    /// Number of rows of the table in it.
    pub fn rows(&self) -> usize {
        self.chunk.rows - self.deleted_rows() + self.delta.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let chunk: usize = self.chunk.copies.iter().map(|copy| copy.memory.capacity()).sum();
        chunk + self.ids.memory_bytes() + self.delta.memory_bytes()
    }

    /// Size of the newer values and ids, in bytes.
    pub(super) fn loose_bytes(&self) -> usize {
        self.ids.memory_bytes() + self.delta.row_bytes()
    }

    pub(super) fn loose(&self) -> &LooseRows {
        &self.delta
    }

    pub(super) fn is_masked(&self, at: usize) -> bool {
        self.masked.as_ref().is_some_and(|masked| masked.is_deleted(at))
    }

    pub(super) fn delta_row(&self, id: RowId) -> Option<&Row> {
        self.delta.get(id)
    }

    /// Whether the row with this id, row `at` of the chunk, exists.
    pub(super) fn has(&self, id: RowId, at: usize) -> bool {
        !self.is_masked(at) || self.delta.get(id).is_some()
    }

    pub(super) fn row(&self, codec: &RowCodec, id: RowId, at: usize) -> Option<Row> {
        if self.is_masked(at) {
            return self.delta.get(id).cloned();
        }
        codec.encode_stored(self.block(at)?, at % BLOCK_ROWS).ok()
    }

    /// Some columns of a row of the chunk that is not masked.
    pub(super) fn read(
        &self,
        codec: &RowCodec,
        at: usize,
        projection: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        let one = Selection::Range { offset: at % BLOCK_ROWS, len: 1 };
        let block = self.block(at).map_or(&[][..], |block| block);
        let column = |column: &usize| {
            Ok(block[*column].decode(codec.schema().field(*column).data_type(), &one)?)
        };
        projection.iter().map(column).collect()
    }

    pub(super) fn key(
        &self,
        codec: &RowCodec,
        id: RowId,
        at: usize,
        columns: &[usize],
    ) -> Option<Key> {
        if self.is_masked(at) {
            return codec.key(self.delta.get(id)?, columns);
        }
        codec.key_stored(self.block(at)?, at % BLOCK_ROWS, columns).ok()?
    }

    fn block(&self, at: usize) -> Option<&Vec<StoredColumn>> {
        self.chunk.copies.first()?.blocks.get(at / BLOCK_ROWS)
    }

    /// Where its rows are.
    pub(super) fn home(&self) -> RowHome {
        let copies = &self.chunk.copies;
        let node = self.chunk.owner.or_else(|| copies.first().and_then(|copy| copy.home()));
        let memory = match &copies[..] {
            [copy] => copy.wanted.map_or(ChunkHome::Unbound, ChunkHome::Node),
            _ => ChunkHome::CopyPerNode,
        };
        RowHome { node, memory }
    }

    /// The same with these rows of the chunk masked too, in rising order, and with another delta.
    pub(super) fn with(&self, masked: &[u32], delta: LooseRows) -> Self {
        let masked = match (masked, &self.masked) {
            ([], before) => before.clone(),
            (more, Some(before)) => Some(Arc::new(before.with(more))),
            (more, None) => Some(Arc::new(DeletedRows::none(self.chunk.rows).with(more))),
        };
        let (chunk, ids, file) = (&self.chunk, &self.ids, &self.file);
        let (chunk, ids, file) = (Arc::clone(chunk), ids.clone(), Arc::clone(file));
        Self { chunk, ids, masked, delta, file }
    }
}
