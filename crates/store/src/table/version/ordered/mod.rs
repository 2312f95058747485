//! Rows in the order of columns: an index for each CREATE INDEX.
//!
//! It holds, for each row, two words in the order of its first columns ([`words`]) and the row's id, sorted, in leaves
//! of some hundred rows under a persistent map. A change copies the leaves that it touches. Values are not kept, and
//! different values may have the same words: readers of a range compare the rows.

mod words;

use std::ops::Bound;
use std::sync::Arc;

use arrow_array::ArrayRef;
use imbl::OrdMap;

use super::super::definition::Index;
use super::super::error::TableError;
use super::super::row::KeyFunction;
use crate::ids::RowId;

use words::indexed_columns;
pub use words::{is_indexable, order_words};

/// Two words in the order of a row's values.
pub type OrderWords = [u64; 2];

/// A row with its words.
pub(super) type OrderedRow = (OrderWords, RowId);

/// Rows of a leaf, at most: 6 KiB, which a change copies.
const LEAF_MAX: usize = 256;

/// Leaves with fewer rows are joined with the one before.
const LEAF_MIN: usize = LEAF_MAX / 8;

/// What the rows of an index are in the order of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OrderedKey {
    columns: Arc<[usize]>,
    /// For each column the function whose values have the order; may be shorter.
    functions: Arc<[Option<KeyFunction>]>,
}

impl OrderedKey {
    pub(super) fn new(index: &Index) -> Self {
        let functions = (0..index.expressions.len()).map(|at| index.function(at).cloned());
        Self {
            columns: index.keys.iter().map(|key| key.column).collect(),
            functions: functions.collect(),
        }
    }

    /// The columns that are in its words.
    pub(super) fn indexed_columns(&self) -> &[usize] {
        indexed_columns(&self.columns)
    }

    /// The words of rows with these values of the indexed columns.
    pub(super) fn words(&self, mut values: Vec<ArrayRef>) -> Result<Vec<OrderWords>, TableError> {
        for (value, function) in values.iter_mut().zip(&*self.functions) {
            if let Some(function) = function {
                *value = function.of_texts(value)?;
            }
        }
        Ok(order_words(&values)?)
    }

    /// Whether it is the columns themselves.
    pub(super) fn is_plain(&self) -> bool {
        self.functions.is_empty()
    }
}

/// Rows in the order of columns.
#[derive(Clone, Debug)]
pub(super) struct OrderedIndex {
    key: OrderedKey,
    /// By their first row.
    leaves: OrdMap<OrderedRow, Arc<[OrderedRow]>>,
    rows: usize,
}

impl OrderedIndex {
    pub(super) fn new(index: &Index) -> Self {
        Self { key: OrderedKey::new(index), leaves: OrdMap::new(), rows: 0 }
    }

    pub(super) fn key(&self) -> &OrderedKey {
        &self.key
    }

    pub(super) fn columns(&self) -> &Arc<[usize]> {
        &self.key.columns
    }

    /// Bytes of memory, approximately.
    pub(super) fn memory_bytes(&self) -> usize {
        let leaf = size_of::<OrderedRow>() + 2 * size_of::<usize>();
        self.rows * size_of::<OrderedRow>() + 2 * self.leaves.len() * leaf
    }

    pub(super) fn clear(&mut self) {
        self.leaves = OrdMap::new();
        self.rows = 0;
    }

    /// Removes rows, then adds others; both are sorted.
    pub(super) fn change(&mut self, went: &[OrderedRow], came: &[OrderedRow]) {
        if self.leaves.is_empty() {
            self.put(came);
            return;
        }
        let (mut went, mut came) = (went, came);
        while let Some(first) = went.first().into_iter().chain(came.first()).min().copied() {
            // Rows before the first leaf belong to it.
            let leaf = self.leaves.get_prev(&first);
            let leaf = leaf.or_else(|| self.leaves.get_min().map(|(key, leaf)| (key, leaf)));
            let Some((key, leaf)) = leaf else {
                self.put(came);
                return;
            };
            let (key, leaf) = (*key, Arc::clone(leaf));
            let next = (Bound::Excluded(key), Bound::<OrderedRow>::Unbounded);
            let end = self.leaves.range(next).next().map(|(key, _)| *key);
            let count = |rows: &[OrderedRow]| match end {
                Some(end) => rows.partition_point(|row| *row < end),
                None => rows.len(),
            };
            let (gone, later) = went.split_at(count(went));
            went = later;
            let (new, later) = came.split_at(count(came));
            came = later;
            self.leaves.remove(&key);
            self.rows -= leaf.len();
            self.put(&merged(&leaf, gone, new));
        }
    }

    /// Adds sorted rows in whose range no leaf is.
    fn put(&mut self, rows: &[OrderedRow]) {
        let Some(first) = rows.first() else { return };
        self.rows += rows.len();
        if rows.len() < LEAF_MIN
            && let Some((key, before)) = self.leaves.get_prev(first)
        {
            let (key, joined) = (*key, [before, rows].concat());
            self.leaves.remove(&key);
            self.split(&joined);
            return;
        }
        self.split(rows);
    }

    fn split(&mut self, rows: &[OrderedRow]) {
        let leaves = rows.len().div_ceil(LEAF_MAX).max(1);
        for leaf in rows.chunks(rows.len().div_ceil(leaves).max(1)) {
            self.leaves.insert(leaf[0], leaf.into());
        }
    }

    /// Rows whose words are between two, in their order.
    pub(super) fn between(
        &self,
        low: OrderWords,
        high: OrderWords,
    ) -> impl Iterator<Item = OrderedRow> + '_ {
        let low = (low, RowId::new(0));
        let before = self.leaves.get_prev(&low).map(|(_, leaf)| leaf);
        let after = self.leaves.range(low..).map(|(_, leaf)| leaf);
        let is_before = move |leaf: &&Arc<[OrderedRow]>| leaf.first() < Some(&low);
        let leaves = before.into_iter().filter(is_before).chain(after);
        let rows =
            leaves.flat_map(move |leaf| leaf[leaf.partition_point(|row| *row < low)..].iter());
        rows.take_while(move |row| row.0 <= high).copied()
    }

    /// The same from the last one to the first.
    pub(super) fn between_reversed(
        &self,
        low: OrderWords,
        high: OrderWords,
    ) -> impl Iterator<Item = OrderedRow> + '_ {
        let high = (high, RowId::new(u64::MAX));
        let leaves = self.leaves.range(..=high).rev().map(|(_, leaf)| leaf);
        let rows = leaves
            .flat_map(move |leaf| leaf[..leaf.partition_point(|row| *row <= high)].iter().rev());
        rows.take_while(move |row| row.0 >= low).copied()
    }
}

/// A leaf without some rows and with others.
fn merged(leaf: &[OrderedRow], went: &[OrderedRow], came: &[OrderedRow]) -> Vec<OrderedRow> {
    let mut went = went.iter().peekable();
    let mut came = came.iter().peekable();
    let mut all = Vec::with_capacity(leaf.len() + came.len());
    for row in leaf {
        while went.next_if(|gone| *gone < row).is_some() {}
        if went.peek() == Some(&row) {
            continue;
        }
        all.extend(std::iter::from_fn(|| came.next_if(|new| *new < row)));
        came.next_if(|new| *new == row);
        all.push(*row);
    }
    all.extend(came);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::BTreeSet;

    use atoll_sys::SplitMix64;

    use crate::table::definition::IndexKey;

    fn index() -> OrderedIndex {
        let key = IndexKey { column: 0, descending: false, nulls_first: false };
        OrderedIndex::new(&Index { name: "i".into(), keys: vec![key], ..Index::default() })
    }

    #[test]
    fn rows_come_and_go_one_by_one() {
        let mut index = index();
        let rows: Vec<OrderedRow> = (0..700).map(|id| ([id / 3, 0], RowId::new(id))).collect();
        rows.iter().for_each(|row| index.change(&[], &[*row]));
        assert!(index.between([0; 2], [u64::MAX; 2]).eq(rows.iter().copied()));
        for (at, row) in rows.iter().enumerate() {
            index.change(&[*row], &[]);
            assert!(index.between([0; 2], [u64::MAX; 2]).eq(rows[at + 1..].iter().copied()));
        }
        index.change(&[], &rows[..1]);
        index.change(&rows[..1], &rows[1..2]);
        assert!(index.between([0; 2], [u64::MAX; 2]).eq(rows[1..2].iter().copied()));
    }

    #[test]
    fn it_holds_what_a_set_holds_after_any_changes() {
        for seed in 1..6 {
            let mut random = SplitMix64::new(seed);
            let (mut index, mut set) = (index(), BTreeSet::<OrderedRow>::new());
            let spread = [3, 1000, u64::MAX][seed as usize % 3];
            let mut next = 0;
            for _ in 0..80 {
                let count = [0, 1, 40, 3000][(random.next() % 4) as usize];
                let came: BTreeSet<OrderedRow> = (0..count)
                    .map(|_| {
                        next += 1;
                        ([random.next() % spread, random.next() % 4], RowId::new(next))
                    })
                    .collect();
                let from = ([random.next() % spread, 0], RowId::new(0));
                let count = (random.next() % 4000) as usize;
                let went: Vec<OrderedRow> = set.range(from..).take(count).copied().collect();
                index.change(&went, &came.iter().copied().collect::<Vec<_>>());
                went.iter().for_each(|row| assert!(set.remove(row)));
                set.extend(came);
                assert_eq!(index.rows, set.len());
                let all = index.between([0; 2], [u64::MAX; 2]);
                assert!(all.eq(set.iter().copied()), "seed {seed}");
                let mut ends = [[random.next() % spread, 1], [random.next() % spread, 2]];
                ends.sort_unstable();
                let [low, high] = ends;
                let wanted = set.iter().filter(|row| row.0 >= low && row.0 <= high).copied();
                assert!(index.between(low, high).eq(wanted), "seed {seed}: {low:?} {high:?}");
            }
            assert!(index.leaves.values().all(|leaf| leaf.len() <= LEAF_MAX));
            assert!(index.leaves.len() < 4 + 4 * index.rows / LEAF_MIN, "{}", index.leaves.len());
        }
    }
}
