//! Index maintenance: building indexes in bulk, checking them, and updating them for a mass UPDATE.

use std::sync::Arc;

use super::super::change::TableChange;
use super::super::definition::Unique;
use super::super::error::TableError;
use super::super::row::{Key, Row};
use super::entry_keys::{appended_entries, hash_entry, replaced_entry};
use super::index::{HashedRow, HashedRows, SortedKeys, UniqueIndex, sorted};
use super::new_keys::NewKeys;
use super::{ChunkEntry, Result, TableVersion};
use crate::ids::RowId;
use crate::workers::{OneThread, Workers};

/// If more than one in this many rows of a chunk is needed, all are hashed at once.
const MANY_OF_CHUNK: usize = 8;

impl TableVersion {
    /// The index of a new constraint.
    ///
    /// # Errors
    /// [`TableError::Duplicate`] for the first key that several rows have.
    pub(super) fn build_index(&self, unique: &Unique, columns: &[usize]) -> Result<UniqueIndex> {
        let keys = self.sorted_keys(columns)?;
        if let Some(key) = self.first_duplicate_among(&keys, columns, None) {
            return Err(TableError::Duplicate {
                table: self.shared.name.to_string(),
                constraint: unique.name.to_string(),
                key: key.1,
            });
        }
        let mut index = UniqueIndex::new(columns);
        index.extend(&keys);
        Ok(index)
    }

    /// The keys of all rows.
    fn sorted_keys(&self, columns: &[usize]) -> Result<SortedKeys> {
        let mut pieces = Vec::with_capacity(self.entries.len() + 1);
        for entry in self.entries.values() {
            let mut rows = Vec::with_capacity(entry.rows());
            hash_entry(&self.shared.codec, entry, columns, &mut rows)?;
            pieces.push(HashedRows::from_rows(rows));
        }
        let codec = &self.shared.codec;
        let tail = self.tail.iter();
        let tail = tail.filter_map(|(id, row)| Some((codec.key(row, columns)?.hash64(), id)));
        pieces.push(HashedRows::from_rows(tail.collect()));
        Ok(sorted(&pieces))
    }

    /// Whether several rows have a key under the constraint of this number.
    pub fn has_duplicate(&self, unique: usize, key: &Key) -> bool {
        let mut rows = self.find_all(unique, key);
        let first = rows.next();
        rows.any(|row| Some(row) != first)
    }

    /// A key that several rows have under the constraint of this number.
    ///
    /// # Errors
    /// If the keys cannot be read.
    pub fn any_duplicate(&self, unique: usize) -> Result<Option<Key>> {
        let columns = self.key_columns(unique);
        let found = self.first_duplicate_among(&self.sorted_keys(columns)?, columns, None);
        Ok(found.map(|(_, key)| key))
    }

    /// The first of these rows whose key an earlier one has too, if it comes before `first`.
    fn first_duplicate_among(
        &self,
        keys: &SortedKeys,
        columns: &[usize],
        mut first: Option<(RowId, Key)>,
    ) -> Option<(RowId, Key)> {
        for rows in keys.same_hash() {
            for (at, (_, id)) in rows.iter().enumerate().skip(1) {
                if first.as_ref().is_some_and(|(first, _)| first < id) {
                    break;
                }
                let Some(key) = self.key_of(*id, columns) else { continue };
                let has_key =
                    |(_, id): &HashedRow| self.key_of(*id, columns).as_ref() == Some(&key);
                if rows[..at].iter().any(has_key) {
                    first = Some((*id, key));
                }
            }
        }
        first
    }

    /// For each constraint, by its number, the key of the first row of new chunks of a change, by its id, that another
    /// row has too; this is the version before the change, `after` the one after it.
    ///
    /// # Errors
    /// If the keys of the change cannot be read.
    pub fn first_duplicates(
        &self,
        change: &TableChange,
        after: &Self,
    ) -> Result<Vec<(usize, Key)>> {
        let mut duplicates = Vec::new();
        let appended = self.appended_keys(change, &OneThread)?;
        let mut appended = appended.iter();
        for (number, index) in self.indexes.iter().enumerate() {
            let columns = index.columns();
            let replaced = self.replaced_keys(change, columns)?;
            let mut first = None;
            for keys in appended.next().into_iter().chain([&replaced]) {
                first = after.first_duplicate_among(keys, columns, first);
                let known = if change.truncated { None } else { Some(index.all_candidates(keys)) };
                for (id, known) in known.into_iter().flatten() {
                    if id == known || first.as_ref().is_some_and(|(first, _)| *first <= id) {
                        continue;
                    }
                    let key = after.key_of(id, columns);
                    if key.is_some() && key == after.key_of(known, columns) {
                        first = key.map(|key| (id, key));
                    }
                }
            }
            duplicates.extend(first.map(|(_, key)| (number, key)));
        }
        Ok(duplicates)
    }

    /// The keys that new chunks of a change add to each index: the prepared ones, if they are of the same
    /// columns.
    pub(super) fn appended_keys(
        &self,
        change: &TableChange,
        workers: &dyn Workers,
    ) -> Result<NewKeys> {
        if change.keys.are_of(&self.indexes) {
            return Ok(change.keys.clone());
        }
        self.keys_of_entries(&appended_entries(change), workers)
    }

    /// Prepares the keys of new chunks of a change, unless they are ready: the change may be applied several times.
    ///
    /// # Errors
    /// If the keys of the chunks cannot be read.
    pub fn ready_keys(&self, change: &mut TableChange, workers: &dyn Workers) -> Result<()> {
        if !change.appended.is_empty() {
            change.keys = self.appended_keys(change, workers)?;
        }
        Ok(())
    }

    /// The keys that rows of replaced chunks have only after a change.
    fn replaced_keys(&self, change: &TableChange, columns: &[usize]) -> Result<SortedKeys> {
        let mut new = Vec::new();
        for replaced in &change.replaced {
            new.extend(self.changed_by(&replaced_entry(replaced), columns)?.1);
        }
        Ok(sorted([&HashedRows::from_rows(new)]))
    }

    /// The rows updated by an entry, with the hashes of their keys: keys that only this
    /// version has, and keys that only the entry has.
    pub(super) fn changed_by(
        &self,
        entry: &ChunkEntry,
        columns: &[usize],
    ) -> Result<(Vec<HashedRow>, Vec<HashedRow>)> {
        let rows: Vec<RowId> = entry.ids().iter().collect();
        let mut after = Vec::with_capacity(rows.len());
        hash_entry(&self.shared.codec, entry, columns, &mut after)?;
        Ok(changed(self.hash_rows(&rows, columns)?, after))
    }

    /// Adds the rows of new entries to all indexes.
    pub(super) fn index_keys(&mut self, keys: &NewKeys) {
        for (index, keys) in self.indexes.iter_mut().zip(keys.iter()) {
            index.extend(keys);
        }
    }

    /// Moves rows, whose ids rise, from their keys in this version to those in a new entry;
    /// rows missing there are removed.
    pub(super) fn reindex(&mut self, rows: &[RowId], entry: &ChunkEntry) -> Result<()> {
        let mut indexes = std::mem::take(&mut self.indexes);
        for index in &mut indexes {
            let mut after = Vec::with_capacity(entry.rows());
            hash_entry(&self.shared.codec, entry, index.columns(), &mut after)?;
            let (went, came) = changed(self.hash_rows(rows, index.columns())?, after);
            index.change_many(went, came);
        }
        self.indexes = indexes;
        Ok(())
    }

    /// Moves rows, whose ids rise, to their new keys or removes them.
    pub(super) fn reindex_rows(&mut self, rows: &[(RowId, Option<&Row>)]) -> Result<()> {
        let ids: Vec<RowId> = rows.iter().map(|(id, _)| *id).collect();
        let codec = Arc::clone(&self.shared.codec);
        let mut indexes = std::mem::take(&mut self.indexes);
        for index in &mut indexes {
            let key = |(id, row): &(RowId, Option<&Row>)| {
                Some((codec.key((*row)?, index.columns())?.hash64(), *id))
            };
            let after = rows.iter().filter_map(key).collect();
            let (went, came) = changed(self.hash_rows(&ids, index.columns())?, after);
            index.change_many(went, came);
        }
        self.indexes = indexes;
        Ok(())
    }

    /// Rows of this version, whose ids rise, with the hashes of their keys.
    fn hash_rows(&self, rows: &[RowId], columns: &[usize]) -> Result<Vec<HashedRow>> {
        let mut all = Vec::with_capacity(rows.len());
        let mut rest = rows;
        while let [first, ..] = rest {
            let end = self.range_of(*first).1;
            let count = rest.partition_point(|id| end.is_none_or(|end| *id < end));
            let (of_entry, behind) = rest.split_at(count.max(1));
            rest = behind;
            let entry = self.entries.get_prev(first).map(|(_, entry)| entry);
            let entry = entry.filter(|entry| of_entry.len() > entry.chunk().rows / MANY_OF_CHUNK);
            let key = |id: &RowId| Some((self.key_of(*id, columns)?.hash64(), *id));
            let Some(entry) = entry else {
                all.extend(of_entry.iter().filter_map(key));
                continue;
            };
            let known = all.len();
            hash_entry(&self.shared.codec, entry, columns, &mut all)?;
            let added = all.split_off(known);
            all.extend(added.into_iter().filter(|(_, id)| of_entry.binary_search(id).is_ok()));
            let in_tail = of_entry.iter().filter(|id| entry.ids().position(**id).is_none());
            all.extend(in_tail.filter_map(key));
        }
        Ok(all)
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

/// The items only in the first, and those only in the second.
fn changed(
    mut before: Vec<HashedRow>,
    mut after: Vec<HashedRow>,
) -> (Vec<HashedRow>, Vec<HashedRow>) {
    before.sort_unstable();
    after.sort_unstable();
    let only = |rows: &[HashedRow], others: &[HashedRow]| {
        let mut others = others.iter().peekable();
        let is_only = |row: &&HashedRow| {
            while others.next_if(|other| other < row).is_some() {}
            others.peek() != Some(row)
        };
        rows.iter().filter(is_only).copied().collect()
    };
    (only(&before, &after), only(&after, &before))
}
