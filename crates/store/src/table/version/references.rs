//! Keys that a change adds and removes, and rows by their keys, for foreign keys. For a change
//! of many rows, each chunk is read once.

use hashbrown::{HashMap, HashSet};

use super::super::change::TableChange;
use super::super::row::{Key, Row};
use super::entry_keys::{appended_entries, each_key, replaced_entry};
use super::{ChunkEntry, Result, TableVersion};
use crate::ids::RowId;

/// An index is queried for each key while there are fewer keys than the table's rows by this factor.
const ROWS_FOR_LOOKUP: usize = 8;

/// Removed keys, each with its replacement: `None` for rows that are deleted or then have a NULL.
#[derive(Clone, Debug, Default)]
pub struct ChangedKeys {
    /// Keys of deleted rows.
    pub deleted: HashSet<Key>,
    /// Keys of updated rows.
    pub updated: HashMap<Key, Option<Key>>,
}

impl ChangedKeys {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.deleted.is_empty() && self.updated.is_empty()
    }
}

impl TableVersion {
    /// The keys that rows have only after a change; this is the version before it.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn keys_that_come(&self, change: &TableChange, columns: &[usize]) -> Result<HashSet<Key>> {
        let codec = self.codec();
        let mut keys = HashSet::new();
        keys.extend(change.inserted.values().filter_map(|row| codec.key(row, columns)));
        for (id, row) in &change.updated {
            let key = codec.key(row, columns);
            if key.is_some() && key != self.key_of(*id, columns) {
                keys.extend(key);
            }
        }
        for entry in appended_entries(change) {
            each_key(codec, &entry, columns, &mut |_, key| add(&mut keys, key))?;
        }
        for replaced in &change.replaced {
            let entry = replaced_entry(replaced);
            let (_, came) = self.changed_by(&entry, columns)?;
            keys.extend(came.into_iter().filter_map(|(_, id)| self.key_in(&entry, id, columns)));
        }
        Ok(keys)
    }

    /// The keys that rows have only before a change; this is the version before it.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn keys_that_go(&self, change: &TableChange, columns: &[usize]) -> Result<ChangedKeys> {
        let mut gone = ChangedKeys::default();
        if change.truncated {
            gone.deleted = self.all_keys(columns)?;
        }
        let deleted = change.deleted.iter().map(RowId::new);
        gone.deleted.extend(deleted.filter_map(|id| self.key_of(id, columns)));
        for (id, row) in &change.updated {
            let (before, after) = (self.key_of(*id, columns), self.codec().key(row, columns));
            if before != after {
                gone.updated.extend(before.map(|before| (before, after)));
            }
        }
        for replaced in &change.replaced {
            let entry = replaced_entry(replaced);
            let (went, _) = self.changed_by(&entry, columns)?;
            for (_, id) in went {
                let (before, after) = (self.key_of(id, columns), self.key_in(&entry, id, columns));
                gone.updated.extend(before.map(|before| (before, after)));
            }
        }
        Ok(gone)
    }

    fn key_in(&self, entry: &ChunkEntry, id: RowId, columns: &[usize]) -> Option<Key> {
        entry.key(self.codec(), id, entry.ids().position(id)?, columns)
    }

    /// Whether a change adds a row with NULL in some but not all of the columns.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn mixes_nulls(&self, change: &TableChange, columns: &[usize]) -> Result<bool> {
        let codec = self.codec();
        let is_mixed = |row: &Row| {
            let has = |at: &usize| codec.key(row, &[*at]).is_some();
            let present = columns.iter().filter(|at| has(at)).count();
            present != 0 && present != columns.len()
        };
        if change.inserted.values().chain(change.updated.values()).any(is_mixed) {
            return Ok(true);
        }
        let appended = appended_entries(change);
        let replaced: Vec<ChunkEntry> = change.replaced.iter().map(replaced_entry).collect();
        let mut entries = appended.iter().map(|entry| &**entry).chain(&replaced);
        entries
            .try_fold(false, |is_mixed, entry| Ok(is_mixed || self.mixes_nulls_in(entry, columns)?))
    }

    /// The same for all rows.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn has_mixed_nulls(&self, columns: &[usize]) -> Result<bool> {
        let codec = self.codec();
        let in_tail = self.tail().any(|(_, row)| {
            let present = columns.iter().filter(|at| codec.key(row, &[**at]).is_some()).count();
            present != 0 && present != columns.len()
        });
        self.entries.values().try_fold(in_tail, |is_mixed, entry| {
            Ok(is_mixed || self.mixes_nulls_in(entry, columns)?)
        })
    }

    /// If as many rows have all columns as have each of them, no row is mixed.
    fn mixes_nulls_in(&self, entry: &ChunkEntry, columns: &[usize]) -> Result<bool> {
        let count = |columns: &[usize]| -> Result<usize> {
            let mut rows = 0;
            each_key(self.codec(), entry, columns, &mut |_, _| rows += 1)?;
            Ok(rows)
        };
        let all = count(columns)?;
        columns.iter().try_fold(false, |is_mixed, at| Ok(is_mixed || count(&[*at])? != all))
    }

    /// All keys of some columns.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn all_keys(&self, columns: &[usize]) -> Result<HashSet<Key>> {
        let mut keys = HashSet::new();
        for entry in self.entries.values() {
            each_key(self.codec(), entry, columns, &mut |_, key| add(&mut keys, key))?;
        }
        keys.extend(self.tail().filter_map(|(_, row)| self.codec().key(row, columns)));
        Ok(keys)
    }

    /// The rows that have one of these keys, with the key: found by an index if there is one, else by a scan of all
    /// rows.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn rows_with_keys(
        &self,
        columns: &[usize],
        keys: &HashSet<Key>,
    ) -> Result<Vec<(RowId, Key)>> {
        let mut found = Vec::new();
        if keys.is_empty() {
            return Ok(found);
        }
        let index = self.indexes.iter().position(|index| index.has_columns(columns));
        if let Some(index) = index.filter(|_| keys.len() < self.rows() / ROWS_FOR_LOOKUP + 2) {
            for key in keys {
                found.extend(self.find(index, key).map(|id| (id, key.clone())));
            }
        } else if keys.len() < self.rows() / ROWS_FOR_LOOKUP + 2
            && let Some(rows) =
                self.rows_by_order(columns, keys, self.rows() / ROWS_FOR_LOOKUP + 64)?
        {
            found = rows;
        } else {
            for entry in self.entries.values() {
                each_key(self.codec(), entry, columns, &mut |id, key| {
                    found.extend(keys.get(key).map(|key| (id, key.clone())));
                })?;
            }
            let with_key = |(id, row)| Some((id, self.codec().key(row, columns)?));
            let tail = self.tail().filter_map(with_key);
            found.extend(tail.filter(|(_, key)| keys.contains(key)));
        }
        found.sort_unstable_by_key(|(id, _)| *id);
        Ok(found)
    }
}

/// Adds a key, reusing an existing one.
fn add(keys: &mut HashSet<Key>, key: &[u8]) {
    if !keys.contains(key) {
        keys.insert(Key::from_bytes(key));
    }
}
