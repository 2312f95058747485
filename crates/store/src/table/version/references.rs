//! Keys that come and go with a change, and rows by their keys: what foreign keys ask of a table. Of a change that
//! brings or changes many rows each chunk is gone through once.

use hashbrown::{HashMap, HashSet};

use super::super::change::TableChange;
use super::super::row::{Key, Row};
use super::entry_keys::{appended_entries, each_key, replaced_entry};
use super::{ChunkEntry, Result, TableVersion};
use crate::ids::RowId;

/// An index is asked for each key while there are fewer than the table's rows by this factor.
const ROWS_FOR_LOOKUP: usize = 8;

/// Keys that rows lose, each with what they have in its place: none for rows that are gone, or have a NULL then.
#[derive(Clone, Debug, Default)]
pub struct ChangedKeys {
    /// Of rows that are gone.
    pub deleted: HashSet<Key>,
    /// Of rows that have other keys.
    pub updated: HashMap<Key, Option<Key>>,
}

impl ChangedKeys {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.deleted.is_empty() && self.updated.is_empty()
    }
}

impl TableVersion {
    /// The keys that rows have only after a change, of which this is the version before.
    ///
    /// # Errors
    /// When the rows cannot be read.
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

    /// The keys that rows have only before a change, of which this is the version before.
    ///
    /// # Errors
    /// When the rows cannot be read.
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

    /// Whether a change brings a row with a NULL in some of the columns and values in others.
    ///
    /// # Errors
    /// When the rows cannot be read.
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

    /// The same of all rows.
    ///
    /// # Errors
    /// When the rows cannot be read.
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

    /// Where as many rows have all columns as have each of them, none has some.
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
    /// When the rows cannot be read.
    pub fn all_keys(&self, columns: &[usize]) -> Result<HashSet<Key>> {
        let mut keys = HashSet::new();
        for entry in self.entries.values() {
            each_key(self.codec(), entry, columns, &mut |_, key| add(&mut keys, key))?;
        }
        keys.extend(self.tail().filter_map(|(_, row)| self.codec().key(row, columns)));
        Ok(keys)
    }

    /// The rows that have one of these keys, with it: by an index where there is one, else all rows are gone through
    /// once.
    ///
    /// # Errors
    /// When the rows cannot be read.
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

/// Adds a key without making one that is there.
fn add(keys: &mut HashSet<Key>, key: &[u8]) {
    if !keys.contains(key) {
        keys.insert(Key::from_bytes(key));
    }
}
