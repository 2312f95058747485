//! Rows by key: an index for each PRIMARY KEY and UNIQUE constraint.

use std::sync::Arc;

use imbl::OrdSet;

use super::super::definition::Unique;
use super::super::error::TableError;
use super::super::row::Key;
use super::{Result, TableVersion};
use crate::ids::RowId;

/// Rows by the hash of their key. Rows with a NULL in it are not among them. Whether a row has the key is
/// seen from the row: keys are not kept twice.
#[derive(Clone, Debug)]
pub(super) struct UniqueIndex {
    columns: Arc<[usize]>,
    rows: OrdSet<(u64, RowId)>,
}

impl UniqueIndex {
    pub(super) fn new(unique: &Unique) -> Self {
        Self { columns: unique.columns.as_slice().into(), rows: OrdSet::new() }
    }

    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }

    pub(super) fn has_columns(&self, columns: &[usize]) -> bool {
        *self.columns == *columns
    }

    pub(super) fn clear(&mut self) {
        self.rows = OrdSet::new();
    }

    pub(super) fn insert(&mut self, key: &Key, id: RowId) {
        self.rows.insert((key.hash64(), id));
    }

    pub(super) fn remove(&mut self, key: &Key, id: RowId) {
        self.rows.remove(&(key.hash64(), id));
    }

    /// Follows a row from one key to another, or to none.
    pub(super) fn change(&mut self, id: RowId, before: Option<Key>, after: Option<Key>) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.remove(&before, id);
        }
        if let Some(after) = after {
            self.insert(&after, id);
        }
    }

    /// Rows with the key, and others whose keys have the same hash.
    pub(super) fn candidates(&self, key: &Key) -> impl Iterator<Item = RowId> + '_ {
        let hash = key.hash64();
        let mut next = self.rows.get_next(&(hash, RowId::new(0)));
        std::iter::from_fn(move || {
            let (_, id) = next.filter(|(found, _)| *found == hash).copied()?;
            next = self.rows.get_next(&(hash, RowId::new(id.get() + 1)));
            Some(id)
        })
    }
}

impl TableVersion {
    /// The index of a new constraint.
    ///
    /// # Errors
    /// [`TableError::Duplicate`] for the first key that several rows have.
    pub(super) fn build_index(&self, unique: &Unique) -> Result<UniqueIndex> {
        let mut index = UniqueIndex::new(unique);
        for id in self.row_ids() {
            let Some(key) = self.key_of(id, &unique.columns) else { continue };
            let mut same = index.candidates(&key);
            if same.any(|other| self.key_of(other, &unique.columns).as_ref() == Some(&key)) {
                return Err(TableError::Duplicate {
                    table: self.shared.name.to_string(),
                    constraint: unique.name.to_string(),
                    key,
                });
            }
            drop(same);
            index.insert(&key, id);
        }
        Ok(index)
    }

    /// Ids of all rows, those of chunks first.
    pub fn row_ids(&self) -> impl Iterator<Item = RowId> + '_ {
        let of_entry = |entry: &'_ Arc<super::ChunkEntry>| {
            let entry = Arc::clone(entry);
            (0..entry.ids().count()).filter_map(move |at| {
                let id = entry.ids().at(at);
                entry.has(id, at).then_some(id)
            })
        };
        self.entries.values().flat_map(of_entry).chain(self.tail.iter().map(|(id, _)| id))
    }
}
