//! Indexes kept up with rows: built of many at once, checked, and followed through a mass UPDATE.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::chunk::BLOCK_ROWS;
use super::super::definition::Unique;
use super::super::error::TableError;
use super::super::row::hash_of;
use super::index::{HashedRow, UniqueIndex};
use super::{ChunkEntry, Result, TableVersion};
use crate::ids::RowId;

impl TableVersion {
    /// The index of a new constraint.
    ///
    /// # Errors
    /// [`TableError::Duplicate`] for the first key that several rows have.
    pub(super) fn build_index(&self, unique: &Unique) -> Result<UniqueIndex> {
        let mut all = Vec::with_capacity(self.rows);
        for entry in self.entries.values() {
            self.hash_entry(entry, &unique.columns, &mut all)?;
        }
        for (id, row) in self.tail.iter() {
            all.extend(self.shared.codec.key(row, &unique.columns).map(|key| (key.hash64(), id)));
        }
        all.sort_unstable();
        self.check_distinct(unique, &all)?;
        let mut index = UniqueIndex::new(unique);
        index.extend(all);
        Ok(index)
    }

    fn check_distinct(&self, unique: &Unique, rows: &[HashedRow]) -> Result<()> {
        for same_hash in rows.chunk_by(|a, b| a.0 == b.0).filter(|rows| rows.len() > 1) {
            let keys = same_hash.iter().filter_map(|(_, id)| self.key_of(*id, &unique.columns));
            let mut seen = HashSet::new();
            if let Some(key) = keys.into_iter().find(|key| !seen.insert(key.clone())) {
                return Err(TableError::Duplicate {
                    table: self.shared.name.to_string(),
                    constraint: unique.name.to_string(),
                    key,
                });
            }
        }
        Ok(())
    }

    /// Adds the rows of new entries to all indexes.
    pub(super) fn index_entries(&mut self, entries: &[Arc<ChunkEntry>]) -> Result<()> {
        let mut indexes = std::mem::take(&mut self.indexes);
        for index in &mut indexes {
            let mut all = Vec::new();
            for entry in entries {
                self.hash_entry(entry, index.columns(), &mut all)?;
            }
            all.sort_unstable();
            index.extend(all);
        }
        self.indexes = indexes;
        Ok(())
    }

    /// Follows rows, whose ids rise, from what they are in this version to what they are in a new entry;
    /// those that it does not have are gone.
    pub(super) fn reindex(&mut self, rows: &[RowId], entry: &ChunkEntry) -> Result<()> {
        let mut indexes = std::mem::take(&mut self.indexes);
        for index in &mut indexes {
            let (mut before, mut after) = (self.hash_rows(rows, index.columns())?, Vec::new());
            self.hash_entry(entry, index.columns(), &mut after)?;
            before.sort_unstable();
            after.sort_unstable();
            for row in before.iter().filter(|row| after.binary_search(row).is_err()) {
                index.set(*row, false);
            }
            after.retain(|row| before.binary_search(row).is_err());
            index.extend(after);
        }
        self.indexes = indexes;
        Ok(())
    }

    /// Rows of this version, whose ids rise, with the hashes of their keys.
    fn hash_rows(&self, rows: &[RowId], columns: &[usize]) -> Result<Vec<HashedRow>> {
        let mut all = Vec::with_capacity(rows.len());
        let mut rest = rows;
        while let [first, ..] = rest {
            let Some((entry, _)) = self.in_chunk(*first) else {
                all.extend(self.key_of(*first, columns).map(|key| (key.hash64(), *first)));
                rest = &rest[1..];
                continue;
            };
            let known = all.len();
            self.hash_entry(entry, columns, &mut all)?;
            let added = all.split_off(known);
            all.extend(added.into_iter().filter(|(_, id)| rest.binary_search(id).is_ok()));
            let end = self.range_of(*first).1;
            rest = &rest[rest.partition_point(|id| end.is_none_or(|end| *id < end))..];
        }
        Ok(all)
    }

    /// The rows of an entry with the hashes of their keys.
    fn hash_entry(
        &self,
        entry: &ChunkEntry,
        columns: &[usize],
        into: &mut Vec<HashedRow>,
    ) -> Result<()> {
        let codec = &self.shared.codec;
        let blocks = entry.chunk().copies.first().map_or(&[][..], |copy| &copy.blocks);
        for (number, block) in blocks.iter().enumerate() {
            let first = number * BLOCK_ROWS;
            let rows = BLOCK_ROWS.min(entry.chunk().rows - first);
            codec.each_key_stored(block, rows, columns, |row, key| {
                if !entry.is_masked(first + row) {
                    into.push((hash_of(key), entry.ids().at(first + row)));
                }
            })?;
        }
        for (id, row) in entry.delta() {
            into.extend(codec.key(row, columns).map(|key| (key.hash64(), id)));
        }
        Ok(())
    }

    /// Ids of all rows, those of chunks first.
    pub fn row_ids(&self) -> impl Iterator<Item = RowId> + '_ {
        let of_entry = |entry: &'_ Arc<ChunkEntry>| {
            let entry = Arc::clone(entry);
            (0..entry.ids().count()).filter_map(move |at| {
                let id = entry.ids().at(at);
                entry.has(id, at).then_some(id)
            })
        };
        self.entries.values().flat_map(of_entry).chain(self.tail.iter().map(|(id, _)| id))
    }
}
