//! The version of a table after a change.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use roaring::RoaringTreemap;

use super::super::change::{ReplacedChunk, TableChange};
use super::super::row::{Key, Row};
use super::entry::ChunkEntry;
use super::entry_keys::appended_entries;
use super::loose::LooseRows;
use super::{Result, TableVersion};
use crate::ids::RowId;
use crate::workers::OneThread;

/// Indexes are updated in bulk for more rows than this, otherwise row by row.
const MANY_ROWS: usize = 1000;

impl TableVersion {
    /// The table after a change. Constraints are not checked: they were when the change was made.
    ///
    /// # Errors
    /// [`TableError::Misfit`](super::TableError::Misfit) if the change names rows that do not exist, or
    /// new ones that do: it was made for another table, or is damaged.
    pub fn apply(&self, change: &TableChange) -> Result<Self> {
        let mut after = self.clone();
        after.apply_in_place(change)?;
        Ok(after)
    }

    /// Applies the change in place; the version is unusable if that fails.
    pub(crate) fn apply_in_place(&mut self, change: &TableChange) -> Result<()> {
        self.view = OnceLock::new();
        let touched = self.touched_before(change)?;
        if change.truncated {
            self.truncate();
        }
        let mut deleted = change.deleted.clone();
        let appended = appended_entries(change);
        appended.iter().try_for_each(|entry| self.check_chunk(entry))?;
        if !appended.is_empty() {
            self.index_keys(&self.appended_keys(change, &OneThread)?);
        }
        appended.into_iter().try_for_each(|entry| self.append(entry))?;
        self.insert_rows(&change.inserted)?;
        for replaced in &change.replaced {
            self.replace(replaced, &mut deleted)?;
        }
        let deleted: Vec<(RowId, Option<&Row>)> =
            deleted.iter().map(|id| (RowId::new(id), None)).collect();
        self.change_rows(&deleted)?;
        let updated: Vec<(RowId, Option<&Row>)> =
            change.updated.iter().map(|(id, row)| (*id, Some(row))).collect();
        match change.keeps_keys {
            true => self.change_rows_apart_from_keys(&updated)?,
            false => self.change_rows(&updated)?,
        }
        self.reorder(touched)
    }

    fn truncate(&mut self) {
        self.entries = imbl::OrdMap::new();
        self.tail = LooseRows::default();
        self.indexes.iter_mut().for_each(super::UniqueIndex::clear);
        self.ordered.iter_mut().for_each(super::OrderedIndex::clear);
        self.rows = 0;
    }

    /// Checks that a chunk fits the table, with an id for each row.
    pub(super) fn check_chunk(&self, entry: &ChunkEntry) -> Result<()> {
        let (chunk, ids) = (entry.chunk(), entry.ids());
        let columns = self.shared.codec.schema().fields().len();
        if !ids.are_sound() || ids.count() != chunk.rows || chunk.stats.len() != columns {
            let problem = format!(
                "a chunk of {} rows in {} columns comes with {} ids for a table of {columns} columns",
                chunk.rows,
                chunk.stats.len(),
                ids.count()
            );
            return Err(self.shared.misfit(problem));
        }
        Ok(())
    }

    fn append(&mut self, entry: Arc<ChunkEntry>) -> Result<()> {
        self.raise_next_row_id(entry.ids().last().next());
        self.rows += entry.chunk().rows;
        self.place(entry)
    }

    pub(super) fn insert_rows(&mut self, rows: &BTreeMap<RowId, Row>) -> Result<()> {
        for (id, row) in rows {
            if self.has(*id) || self.in_chunk(*id).is_some() {
                return Err(self.shared.misfit(format!("inserted row {id} already exists")));
            }
            let codec = &self.shared.codec;
            for index in &mut self.indexes {
                index.change(*id, None, codec.key(row, index.columns()));
            }
            self.tail.insert(*id, row.clone());
        }
        if let Some((last, _)) = rows.last_key_value() {
            self.raise_next_row_id(last.next());
        }
        self.rows += rows.len();
        Ok(())
    }

    /// Replaces rows by a chunk, without those that are `deleted`; rows of these that are handled here
    /// are removed from them.
    fn replace(&mut self, replaced: &ReplacedChunk, deleted: &mut RoaringTreemap) -> Result<()> {
        let ids = &replaced.ids;
        let entry = ChunkEntry::new(Arc::clone(&replaced.chunk), ids.clone(), replaced.file);
        self.check_chunk(&entry)?;
        let between = ids.first().get()..=ids.last().get();
        let is_new = |id: &RowId| ids.position(*id).is_some();
        let mut within = RoaringTreemap::new();
        within.insert_range(between);
        within &= &*deleted;
        let mut gone: Vec<RowId> = within.into_iter().map(RowId::new).collect();
        gone.retain(|id| !is_new(id) && self.has(*id));
        for id in &gone {
            deleted.remove(id.get());
        }
        gone.extend(ids.iter());
        gone.sort_unstable();
        self.reindex(&gone, &entry)?;
        let gone: Vec<(RowId, Option<&Row>)> = gone.into_iter().map(|id| (id, None)).collect();
        self.change_rows_apart_from_keys(&gone)?;
        self.append_around(entry)
    }

    /// Appends an entry, split where rows appended by the same change are in gaps between its ids.
    fn append_around(&mut self, entry: ChunkEntry) -> Result<()> {
        let (rows, last) = (entry.ids().count(), entry.ids().last());
        self.raise_next_row_id(last.next());
        self.rows += rows;
        let mut from = 0;
        while from < rows {
            let other = self.first_in_chunks(entry.ids().at(from), last);
            let to = other.map_or(rows, |id| entry.ids().below(id));
            if to == from {
                let id = entry.ids().at(from);
                return Err(self.shared.misfit(format!("row {id} of a new chunk already exists")));
            }
            let is_whole = (from, to) == (0, rows);
            let part = if is_whole { entry.clone() } else { entry.part(from, to) };
            self.place(Arc::new(part))?;
            from = to;
        }
        Ok(())
    }

    /// The first row in chunks between two ids.
    fn first_in_chunks(&self, first: RowId, last: RowId) -> Option<RowId> {
        let before = self.entries.get_prev(&first).map(|(_, entry)| entry);
        let within = self.entries.range(first..=last).map(|(_, entry)| entry);
        before.into_iter().chain(within).find_map(|entry| {
            let (low, high) = (entry.ids().below(first), entry.ids().below(last.next()));
            entry.live_between(low, high).next()
        })
    }

    /// Inserts an entry without existing rows where its ids belong. Entries that overlap its range are
    /// split: their chunks are then in two entries, each with the rows of the other masked.
    pub(super) fn place(&mut self, entry: Arc<ChunkEntry>) -> Result<()> {
        let Some((first, last)) = entry.live_range() else { return Ok(()) };
        if let Some(id) =
            self.tail.ids_between(first, last).find(|id| entry.ids().position(*id).is_some())
        {
            return Err(self.shared.misfit(format!("row {id} of a new chunk already exists")));
        }
        let mut keys: Vec<RowId> = self.entries.range(first..=last).map(|(key, _)| *key).collect();
        keys.extend(self.entries.get_prev(&first).map(|(key, _)| *key).filter(|key| *key != first));
        for key in keys {
            self.cut(key, first, last)?;
        }
        self.entries.insert(first, entry);
        Ok(())
    }

    /// Cuts the range between two ids out of an entry; it has no rows there.
    fn cut(&mut self, key: RowId, first: RowId, last: RowId) -> Result<()> {
        let Some(entry) = self.entries.get(&key).map(Arc::clone) else { return Ok(()) };
        if entry.ids().last() < first {
            return Ok(());
        }
        let (low, high) = (entry.ids().below(first), entry.ids().below(last.next()));
        if let Some(id) = entry.live_between(low, high).next() {
            return Err(self.shared.misfit(format!("row {id} is among the ids of a new chunk")));
        }
        self.entries.remove(&key);
        let above = entry.live_between(high, entry.ids().count()).next();
        let below = entry.live_between(0, low).next();
        if below.is_some() {
            self.entries.insert(key, Arc::new(entry.part(0, low)));
        }
        if let Some(id) = above {
            self.entries.insert(id, Arc::new(entry.part(high, entry.ids().count())));
        }
        Ok(())
    }

    /// Updates or deletes rows; their ids rise.
    fn change_rows(&mut self, rows: &[(RowId, Option<&Row>)]) -> Result<()> {
        if rows.len() > MANY_ROWS && !self.indexes.is_empty() {
            self.reindex_rows(rows)?;
            return self.change_rows_apart_from_keys(rows);
        }
        let mut rest = rows;
        while let [(id, row), ..] = rest {
            let Some((entry, _)) = self.in_chunk(*id) else {
                self.change_in_tail(*id, *row)?;
                rest = &rest[1..];
                continue;
            };
            let entry = Arc::clone(entry);
            let (key, end) = self.range_of(*id);
            let is_in = |(id, _): &&(RowId, Option<&Row>)| {
                end.is_none_or(|end| *id < end) && entry.ids().position(*id).is_some()
            };
            let count = rest.iter().take_while(is_in).count();
            self.change_in_chunk(key, &entry, &rest[..count])?;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// The same if indexes need no update.
    fn change_rows_apart_from_keys(&mut self, rows: &[(RowId, Option<&Row>)]) -> Result<()> {
        let indexes = std::mem::take(&mut self.indexes);
        let changed = self.change_rows(rows);
        self.indexes = indexes;
        changed
    }

    /// The key of the entry whose range contains an id, and that of the next entry.
    pub(super) fn range_of(&self, id: RowId) -> (RowId, Option<RowId>) {
        let key = self.entries.get_prev(&id).map_or(id, |(key, _)| *key);
        let next = self.entries.get_next(&id.next());
        (key, next.map(|(next, _)| *next))
    }

    fn change_in_tail(&mut self, id: RowId, row: Option<&Row>) -> Result<()> {
        let Some(before) = self.tail.get(id) else { return Err(self.no_row(id)) };
        let codec = &self.shared.codec;
        for index in &mut self.indexes {
            let key = |row: &Row| codec.key(row, index.columns());
            let (before, after) = (key(before), row.and_then(key));
            index.change(id, before, after);
        }
        match row {
            Some(row) => drop(self.tail.insert(id, row.clone())),
            None => {
                self.tail.remove(id);
                self.rows -= 1;
            }
        }
        Ok(())
    }

    fn no_row(&self, id: RowId) -> super::TableError {
        self.shared.misfit(format!("changed row {id} does not exist"))
    }

    fn change_in_chunk(
        &mut self,
        key: RowId,
        entry: &ChunkEntry,
        rows: &[(RowId, Option<&Row>)],
    ) -> Result<()> {
        let mut masked = Vec::new();
        let mut delta = entry.loose().clone();
        let codec = Arc::clone(&self.shared.codec);
        for (id, row) in rows {
            let at = entry.ids().position(*id).ok_or_else(|| self.no_row(*id))?;
            if !entry.has(*id, at) {
                return Err(self.no_row(*id));
            }
            for index in &mut self.indexes {
                let before = entry.key(&codec, *id, at, index.columns());
                let after: Option<Key> = row.and_then(|row| codec.key(row, index.columns()));
                index.change(*id, before, after);
            }
            if !entry.is_masked(at) {
                masked.push(at as u32);
            }
            match row {
                Some(row) => drop(delta.insert(*id, Row::clone(row))),
                None => {
                    drop(delta.remove(*id));
                    self.rows -= 1;
                }
            }
        }
        let entry = entry.with(&masked, delta);
        match entry.rows() {
            0 => drop(self.entries.remove(&key)),
            _ => drop(self.entries.insert(key, Arc::new(entry))),
        }
        Ok(())
    }
}

impl ChunkEntry {
    /// Ids of the existing rows among the chunk's rows `from..to`.
    fn live_between(&self, from: usize, to: usize) -> impl Iterator<Item = RowId> + '_ {
        (from..to)
            .map(|at| (self.ids().at(at), at))
            .filter(|(id, at)| self.has(*id, *at))
            .map(|(id, _)| id)
    }

    /// The first and the last id of an existing row.
    fn live_range(&self) -> Option<(RowId, RowId)> {
        let all = self.ids().count();
        let is_live = |at: &usize| self.has(self.ids().at(*at), *at);
        Some((self.ids().at((0..all).find(is_live)?), self.ids().at((0..all).rfind(is_live)?)))
    }

    /// The same with only the chunk's rows `from..to`.
    fn part(&self, from: usize, to: usize) -> Self {
        let all = self.ids().count();
        let masked: Vec<u32> = (0..from)
            .chain(to..all)
            .filter(|at| !self.is_masked(*at))
            .map(|at| at as u32)
            .collect();
        let mut delta = self.loose().clone();
        let is_out =
            |id: &RowId| !self.ids().position(*id).is_some_and(|at| (from..to).contains(&at));
        let out: Vec<RowId> = delta.iter().map(|(id, _)| id).filter(is_out).collect();
        out.into_iter().for_each(|id| drop(delta.remove(id)));
        self.with(&masked, delta)
    }
}
