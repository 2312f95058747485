//! The changes that one transaction makes to one table.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringTreemap;

use super::chunk::Chunk;
use super::row::Row;
use super::row_ids::RowIds;
use super::version::NewKeys;
use crate::ids::{ChunkFileId, RowId};

/// The changes that one transaction makes to one table, by row, as the log holds them.
///
/// | field | rows |
/// |---|---|
/// | `truncated` | all earlier rows |
/// | `appended` | chunks of rows with ids that no row of the table ever had |
/// | `inserted` | the same, row by row |
/// | `replaced` | chunks of updated rows: earlier rows, or rows of the fields above |
/// | `deleted` | earlier rows, or rows of the chunks above |
/// | `updated` | the same rows, not deleted, with the new values of all columns |
///
/// The fields are applied in this order. A row is in only one of `inserted`, `updated` and `deleted`.
#[derive(Clone, Debug, Default)]
pub struct TableChange {
    /// New rows.
    pub inserted: BTreeMap<RowId, Row>,
    /// Updated rows.
    pub updated: BTreeMap<RowId, Row>,
    /// Deleted rows.
    pub deleted: RoaringTreemap,
    /// New rows as chunks.
    pub appended: Vec<AppendedChunk>,
    /// Updated rows as chunks.
    pub replaced: Vec<ReplacedChunk>,
    /// Whether all earlier rows are deleted.
    pub truncated: bool,
    /// Keys of `appended`, if they were prepared; not recorded.
    pub keys: NewKeys,
    /// Whether the rows of `updated` are known to keep their keys for all constraints; not recorded.
    pub keeps_keys: bool,
}

/// A chunk of new rows, whose ids have no gaps.
#[derive(Clone, Debug)]
pub struct AppendedChunk {
    /// Id of its first row.
    pub first: RowId,
    /// The rows.
    pub chunk: Arc<Chunk>,
    /// The file that holds it.
    pub file: Option<ChunkFileId>,
}

/// A chunk that replaces the rows with these ids, wherever their values were: all rows of chunks of the table
/// between the first and the last of them, except for rows that the same change appends or deletes.
#[derive(Clone, Debug)]
pub struct ReplacedChunk {
    /// Ids of its rows.
    pub ids: RowIds,
    /// The rows.
    pub chunk: Arc<Chunk>,
    /// The file that holds it.
    pub file: Option<ChunkFileId>,
}

impl AppendedChunk {
    /// Ids of its rows.
    pub fn ids(&self) -> RowIds {
        RowIds::Dense { first: self.first, rows: self.chunk.rows }
    }
}

impl TableChange {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        !self.truncated
            && self.inserted.is_empty()
            && self.updated.is_empty()
            && self.deleted.is_empty()
            && self.appended.is_empty()
            && self.replaced.is_empty()
    }

    /// Whether it consists of single rows only, without chunks.
    pub fn is_row_by_row(&self) -> bool {
        !self.truncated && self.appended.is_empty() && self.replaced.is_empty()
    }

    /// Whether it adds or removes no keys: it only updates rows, which keep theirs.
    pub fn is_apart_from_keys(&self) -> bool {
        let others = self.inserted.is_empty() && self.deleted.is_empty();
        self.keeps_keys && others && self.is_row_by_row()
    }

    /// Number of rows that it inserts, updates or deletes, without those of a TRUNCATE.
    pub fn rows(&self) -> usize {
        let appended: usize = self.appended.iter().map(|chunk| chunk.chunk.rows).sum();
        let replaced: usize = self.replaced.iter().map(|chunk| chunk.chunk.rows).sum();
        let single = self.inserted.len() + self.updated.len() + self.deleted.len() as usize;
        single + appended + replaced
    }

    /// The last id of its new rows.
    pub fn last_new_row(&self) -> Option<RowId> {
        let inserted = self.inserted.last_key_value().map(|(id, _)| *id);
        let appended = self.appended.iter().map(|chunk| chunk.ids().last());
        appended.chain(inserted).max()
    }

    /// Adds a later change, made to the table as this one leaves it: the result has the effect of both in
    /// order.
    pub fn then(&mut self, later: Self) {
        if later.truncated {
            *self = Self { truncated: true, ..Self::default() };
        }
        if !later.appended.is_empty() || !later.replaced.is_empty() {
            self.keys = NewKeys::default();
        }
        self.keeps_keys &= later.keeps_keys || later.updated.is_empty();
        self.appended.extend(later.appended);
        self.inserted.extend(later.inserted);
        later.replaced.into_iter().for_each(|chunk| self.replace(chunk));
        later.deleted.into_iter().for_each(|id| self.delete(RowId::new(id)));
        later.updated.into_iter().for_each(|(id, row)| self.update(id, row));
    }

    fn replace(&mut self, later: ReplacedChunk) {
        self.updated.retain(|id, _| later.ids.position(*id).is_none());
        if let Some(same) = self.replaced.iter_mut().find(|chunk| chunk.ids == later.ids) {
            *same = later;
        } else if let Some(same) = self.appended.iter_mut().find(|chunk| chunk.ids() == later.ids) {
            *same = AppendedChunk { first: same.first, chunk: later.chunk, file: later.file };
        } else {
            self.replaced.push(later);
        }
    }

    fn delete(&mut self, id: RowId) {
        self.updated.remove(&id);
        if self.is_replaced(id) || self.inserted.remove(&id).is_none() {
            self.deleted.insert(id.get());
        }
    }

    fn update(&mut self, id: RowId, row: Row) {
        let is_replaced = self.is_replaced(id);
        match self.inserted.get_mut(&id).filter(|_| !is_replaced) {
            Some(inserted) => *inserted = row,
            None => drop(self.updated.insert(id, row)),
        }
    }

    fn is_replaced(&self, id: RowId) -> bool {
        self.replaced.iter().any(|chunk| chunk.ids.position(id).is_some())
    }
}
