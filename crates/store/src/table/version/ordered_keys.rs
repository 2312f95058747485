//! Ordered indexes kept up with rows: built of all at once, and changed with each change.

use std::sync::Arc;

use arrow_array::ArrayRef;
use hashbrown::HashSet;
use roaring::RoaringTreemap;

use super::super::change::TableChange;
use super::super::chunk::BLOCK_ROWS;
use super::super::column::Selection;
use super::super::definition::Index;
use super::super::row::{Key, Row, RowCodec};
use super::ordered::{OrderWords, OrderedIndex, OrderedKey, OrderedRow, order_words};
use super::{ChunkEntry, Result, TableVersion};
use crate::ids::RowId;
use crate::workers::{OneThread, Workers, map};

/// All rows of a chunk are read at once if more than one in so many of them is wanted.
const MANY_OF_CHUNK: usize = 8;

/// The rows that a change touches, and the rows of each index that it makes invalid.
pub(super) struct TouchedRows {
    ids: RoaringTreemap,
    before: Vec<Vec<OrderedRow>>,
}

impl TableVersion {
    /// Rows with words from `low` to `high` in the index of this number in the definition, in their order: all with
    /// values in this range, and some others.
    pub fn rows_between(
        &self,
        index: usize,
        low: OrderWords,
        high: OrderWords,
    ) -> impl Iterator<Item = RowId> + '_ {
        self.ordered[index].between(low, high).map(|(_, id)| id)
    }

    /// The rows whose first columns in the index of this number have these values, one of each; `None` if the index
    /// finds more than `max` rows.
    ///
    /// # Errors
    /// Values that are not of the columns' types.
    pub fn rows_with(
        &self,
        index: usize,
        values: &[ArrayRef],
        max: usize,
    ) -> Result<Option<Vec<RowId>>> {
        let columns = &self.ordered[index].columns()[..values.len()];
        let Some(Some(key)) = self.shared.codec.keys_of_values(columns, values)?.pop() else {
            return Ok(Some(Vec::new()));
        };
        let Some(words) = order_words(indexed_values(values))?.pop() else {
            return Ok(Some(Vec::new()));
        };
        let (low, high) = self.words_of(index, values.len(), words);
        let found: Vec<RowId> = self.rows_between(index, low, high).take(max + 1).collect();
        if found.len() > max {
            return Ok(None);
        }
        let has_key = |id: &RowId| self.key_of(*id, columns).as_ref() == Some(&key);
        Ok(Some(found.into_iter().filter(has_key).collect()))
    }

    /// The first `count` rows in the order of the index of this number, or the last ones if it is `descending`, and all
    /// that cannot be distinguished from the last of them by their words. With a value, the order is that of the
    /// second column among the rows that have it in the first one. `None` if the index finds more than `max` rows.
    ///
    /// # Errors
    /// A value that is not of the column's type.
    pub fn first_rows(
        &self,
        index: usize,
        value: Option<&ArrayRef>,
        descending: bool,
        count: usize,
        max: usize,
    ) -> Result<Option<Vec<RowId>>> {
        let ordered = &self.ordered[index];
        let columns = ordered.columns();
        let (mut low, mut high, mut key) = ([0; 2], [u64::MAX; 2], None);
        if let Some(value) = value {
            let values = std::slice::from_ref(value);
            key = self.shared.codec.keys_of_values(&columns[..1], values)?.pop().flatten();
            let words = order_words(values)?.pop().filter(|_| key.is_some());
            let Some(words) = words else { return Ok(Some(Vec::new())) };
            (low, high) = ([words[0], 0], [words[0], u64::MAX]);
        }
        let is_by_first = value.is_none() && columns.len() > 1;
        let order = |words: OrderWords| if is_by_first { [words[0], 0] } else { words };
        let rows: Box<dyn Iterator<Item = OrderedRow>> = match descending {
            true => Box::new(ordered.between_reversed(low, high)),
            false => Box::new(ordered.between(low, high)),
        };
        let (mut found, mut last) = (Vec::new(), None);
        for (at, (words, id)) in rows.enumerate() {
            if found.len() >= count && last != Some(order(words)) {
                break;
            }
            if at == max {
                return Ok(None);
            }
            if key.is_none() || self.key_of(id, &columns[..1]) == key {
                found.push(id);
                last = Some(order(words));
            }
        }
        Ok(Some(found))
    }

    /// The range of an index for rows whose first columns, of this number, have these words.
    fn words_of(
        &self,
        index: usize,
        columns: usize,
        words: OrderWords,
    ) -> (OrderWords, OrderWords) {
        match (columns, self.ordered[index].columns().len()) {
            (1, 2..) => ([words[0], 0], [words[0], u64::MAX]),
            _ => (words, words),
        }
    }

    /// The rows that have one of these keys, by an index whose first columns they are; `None` without such an
    /// index, or if it finds more than `max` candidates.
    pub(super) fn rows_by_order(
        &self,
        columns: &[usize],
        keys: &HashSet<Key>,
        max: usize,
    ) -> Result<Option<Vec<(RowId, Key)>>> {
        let starts =
            |index: &OrderedIndex| index.key().is_plain() && index.columns().starts_with(columns);
        let Some(index) = self.ordered.iter().position(starts) else { return Ok(None) };
        let keys: Vec<&Key> = keys.iter().collect();
        let values = self.shared.codec.values_of_keys(&keys, columns)?;
        let (mut found, mut candidates) = (Vec::new(), 0);
        for (key, words) in keys.into_iter().zip(order_words(indexed_values(&values))?) {
            let (low, high) = self.words_of(index, columns.len(), words);
            for id in self.rows_between(index, low, high) {
                candidates += 1;
                if candidates > max {
                    return Ok(None);
                }
                if self.key_of(id, columns).as_ref() == Some(key) {
                    found.push((id, key.clone()));
                }
            }
        }
        Ok(Some(found))
    }

    /// The index over all rows.
    pub(super) fn build_ordered(
        &self,
        index: &Index,
        workers: &dyn Workers,
    ) -> Result<OrderedIndex> {
        let mut built = OrderedIndex::new(index);
        let entries: Vec<Arc<ChunkEntry>> = self.entries.values().cloned().collect();
        let (codec, key) = (&self.shared.codec, built.key().clone());
        let tasks = entries.into_iter().map(|entry| OrderTask {
            codec: Arc::clone(codec),
            key: key.clone(),
            entry,
        });
        let mut rows = Vec::with_capacity(self.rows);
        for part in map(workers, tasks.collect(), OrderTask::run) {
            rows.extend(part?);
        }
        order_loose(codec, &key, self.tail.iter(), &mut rows)?;
        // The parts are sorted: this merges them.
        rows.sort();
        built.change(&[], &rows);
        Ok(built)
    }

    /// What a change touches of the rows that are there before it.
    pub(super) fn touched_before(&self, change: &TableChange) -> Result<TouchedRows> {
        let mut ids = RoaringTreemap::new();
        if self.ordered.is_empty() {
            return Ok(TouchedRows { ids, before: Vec::new() });
        }
        ids |= &change.deleted;
        ids.extend(change.updated.keys().map(|id| id.get()));
        for replaced in &change.replaced {
            ids.extend(replaced.ids.iter().map(RowId::get));
        }
        let before = if change.truncated { Vec::new() } else { self.ordered_rows(&ids)? };
        ids.extend(change.inserted.keys().map(|id| id.get()));
        for appended in &change.appended {
            let first = appended.first.get();
            ids.insert_range(first..first + appended.chunk.rows as u64);
        }
        Ok(TouchedRows { ids, before })
    }

    /// Brings the indexes, which are those of the version before a change, up to this version, the one after it.
    pub(super) fn reorder(&mut self, touched: TouchedRows) -> Result<()> {
        let after = self.ordered_rows(&touched.ids)?;
        let mut before = touched.before.into_iter();
        for (index, after) in self.ordered.iter_mut().zip(after) {
            index.change(&before.next().unwrap_or_default(), &after);
        }
        Ok(())
    }

    /// The rows of these that are there, for each index, sorted.
    fn ordered_rows(&self, ids: &RoaringTreemap) -> Result<Vec<Vec<OrderedRow>>> {
        let ids: Vec<RowId> = ids.iter().map(RowId::new).collect();
        let rows = |index: &OrderedIndex| {
            let mut rows = self.order_rows(&ids, index.key())?;
            rows.sort_unstable();
            Ok(rows)
        };
        self.ordered.iter().map(rows).collect()
    }

    /// The rows of these, whose ids rise, that are there.
    fn order_rows(&self, ids: &[RowId], key: &OrderedKey) -> Result<Vec<OrderedRow>> {
        let codec = &self.shared.codec;
        let mut all = Vec::with_capacity(ids.len());
        let mut loose: Vec<(RowId, Row)> = Vec::new();
        let mut rest = ids;
        while let [first, ..] = rest {
            let end = self.range_of(*first).1;
            let count = rest.partition_point(|id| end.is_none_or(|end| *id < end)).max(1);
            let (of_entry, later) = rest.split_at(count);
            rest = later;
            let entry = self.entries.get_prev(first).map(|(_, entry)| entry);
            let many = entry.filter(|entry| of_entry.len() > entry.chunk().rows / MANY_OF_CHUNK);
            if let Some(entry) = many {
                let from = all.len();
                order_chunk(codec, key, entry, &mut all)?;
                let of_chunk = all.split_off(from);
                let is_wanted = |row: &OrderedRow| of_entry.binary_search(&row.1).is_ok();
                all.extend(of_chunk.into_iter().filter(is_wanted));
            }
            for id in of_entry {
                let is_read =
                    |(entry, at): (&Arc<ChunkEntry>, usize)| many.is_some() && !entry.is_masked(at);
                if !self.in_chunk(*id).is_some_and(is_read) {
                    loose.extend(self.row(*id).map(|row| (*id, row)));
                }
            }
        }
        order_loose(codec, key, loose.iter().map(|(id, row)| (*id, row)), &mut all)?;
        Ok(all)
    }

    /// Builds all indexes.
    pub(super) fn build_all_ordered(&mut self, workers: &dyn Workers) -> Result<()> {
        let definition = Arc::clone(&self.shared.definition);
        let built = definition.indexes.iter().map(|index| self.build_ordered(index, workers));
        self.ordered = built.collect::<Result<_>>()?;
        Ok(())
    }

    /// The indexes of a new definition: those that are there already by their keys, and others built.
    pub(super) fn ordered_for_definition(&mut self, known: &[OrderedIndex]) -> Result<()> {
        let definition = Arc::clone(&self.shared.definition);
        self.ordered = Vec::with_capacity(definition.indexes.len());
        for index in &definition.indexes {
            let key = OrderedKey::new(index);
            let same = known.iter().find(|known| *known.key() == key);
            self.ordered.push(match same {
                Some(same) => same.clone(),
                None => self.build_ordered(index, &OneThread)?,
            });
        }
        Ok(())
    }
}

/// The values that are in the words of an index.
fn indexed_values(values: &[ArrayRef]) -> &[ArrayRef] {
    &values[..values.len().min(2)]
}

/// Puts the rows of a chunk in order.
struct OrderTask {
    codec: Arc<RowCodec>,
    key: OrderedKey,
    entry: Arc<ChunkEntry>,
}

impl OrderTask {
    fn run(self) -> Result<Vec<OrderedRow>> {
        let mut rows = Vec::with_capacity(self.entry.rows());
        order_chunk(&self.codec, &self.key, &self.entry, &mut rows)?;
        order_loose(&self.codec, &self.key, self.entry.delta(), &mut rows)?;
        rows.sort_unstable();
        Ok(rows)
    }
}

/// Adds the rows of an entry's chunk that are not masked.
fn order_chunk(
    codec: &RowCodec,
    key: &OrderedKey,
    entry: &ChunkEntry,
    into: &mut Vec<OrderedRow>,
) -> Result<()> {
    let blocks = entry.chunk().copies.first().map_or(&[][..], |copy| &copy.blocks);
    for (number, block) in blocks.iter().enumerate() {
        let first = number * BLOCK_ROWS;
        let rows = BLOCK_ROWS.min(entry.chunk().rows - first);
        let whole = Selection::Range { offset: 0, len: rows };
        let decode = |column: &usize| {
            block[*column].decode(codec.schema().field(*column).data_type(), &whole)
        };
        let arrays = key.indexed_columns().iter().map(decode);
        let words = key.words(arrays.collect::<std::result::Result<Vec<ArrayRef>, _>>()?)?;
        for (row, words) in words.into_iter().enumerate() {
            if !entry.is_masked(first + row) {
                into.push((words, entry.ids().at(first + row)));
            }
        }
    }
    Ok(())
}

/// Adds single rows.
fn order_loose<'a>(
    codec: &RowCodec,
    key: &OrderedKey,
    rows: impl Iterator<Item = (RowId, &'a Row)>,
    into: &mut Vec<OrderedRow>,
) -> Result<()> {
    let (ids, rows): (Vec<RowId>, Vec<Row>) = rows.map(|(id, row)| (id, row.clone())).unzip();
    if rows.is_empty() {
        return Ok(());
    }
    let words = key.words(codec.decode_arrays(&rows, key.indexed_columns())?)?;
    into.extend(words.into_iter().zip(ids));
    Ok(())
}
