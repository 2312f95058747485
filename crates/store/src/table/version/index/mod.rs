//! Rows by key: an index for each PRIMARY KEY and UNIQUE constraint.
//!
//! An index holds rows by the hash of their key. Hashes are divided into ranges, each with a few sorted arrays, each
//! much larger than the next; recent changes are in one persistent map. When it is full, its rows of
//! one range, the next one in turn, become an array of the range, which is merged with earlier arrays that are not
//! much larger. So a change copies the path to it, merges at most one range, and a lookup searches few places. Keys
//! are not stored: the row itself shows whether it has the key, so a deleted row that an array still contains
//! does no harm.
//!
//! Bulk changes arrive sorted ([`SortedKeys`]) and become arrays unchanged; large ones are merged with earlier
//! arrays when their range's turn comes.

mod run;
mod sorted;

use std::sync::Arc;

use imbl::OrdMap;

use super::super::row::Key;
use crate::ids::RowId;
use run::{Run, first_of, same_hash};
pub(super) use sorted::{HashedRows, SortedKeys, sorted, sorted_ranges};

/// The highest bits of a hash, which select the range.
const RANGE_BITS: u32 = 8;

/// Ranges of hashes: of a table of six million rows, one has 23,000, which are merged in less than a millisecond.
pub(super) const RANGES: usize = 1 << RANGE_BITS;

/// Maximum number of changes in the map.
const RECENT_MAX: usize = 4096;

/// Two arrays are merged if the older has at most this many times as many rows.
const MERGE_FACTOR: usize = 4;

/// When rows are added to all ranges at once, arrays are merged up to this many rows.
const MERGED_AT_ONCE_MAX: usize = 1024;

/// Maximum number of unmerged arrays of a range.
const RUNS_MAX: usize = 8;

/// A row with the hash of its key.
pub(super) type HashedRow = (u64, RowId);

/// The range of a hash.
fn range_of(hash: u64) -> usize {
    (hash >> (u64::BITS - RANGE_BITS)) as usize
}

/// Rows by key, without rows that have a NULL in it.
#[derive(Clone, Debug)]
pub(super) struct UniqueIndex {
    columns: Arc<[usize]>,
    /// For each range, oldest and largest first.
    ranges: Arc<[Arc<[Run]>]>,
    /// Whether recently changed rows exist.
    recent: OrdMap<HashedRow, bool>,
    /// The next range in turn.
    turn: usize,
}

impl UniqueIndex {
    pub(super) fn new(columns: &[usize]) -> Self {
        Self { columns: columns.into(), ranges: no_runs(), recent: OrdMap::new(), turn: 0 }
    }

    /// The same rows; the columns of their keys have other numbers.
    pub(super) fn with_columns(&self, columns: &[usize]) -> Self {
        Self { columns: columns.into(), ..self.clone() }
    }

    pub(super) fn columns(&self) -> &Arc<[usize]> {
        &self.columns
    }

    pub(super) fn has_columns(&self, columns: &[usize]) -> bool {
        *self.columns == *columns
    }

    /// Approximate size in memory, in bytes: nodes of the map are half full on average.
    pub(super) fn memory_bytes(&self) -> usize {
        let in_runs: usize = self.ranges.iter().flat_map(|runs| runs.iter()).map(Run::len).sum();
        in_runs * size_of::<HashedRow>() + 2 * self.recent.len() * size_of::<(HashedRow, bool)>()
    }

    pub(super) fn clear(&mut self) {
        self.ranges = no_runs();
        self.recent = OrdMap::new();
    }

    /// Moves a row from one key to another, or to none.
    pub(super) fn change(&mut self, id: RowId, before: Option<Key>, after: Option<Key>) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.set((before.hash64(), id), false);
        }
        if let Some(after) = after {
            self.set((after.hash64(), id), true);
        }
    }

    /// Adds a row, or removes it.
    fn set(&mut self, row: HashedRow, is_there: bool) {
        self.recent.insert(row, is_there);
        while self.recent.len() >= RECENT_MAX {
            self.push_recent(self.turn, usize::MAX);
            self.turn = (self.turn + 1) % RANGES;
        }
    }

    /// Removes rows, then adds others.
    pub(super) fn change_many(&mut self, went: Vec<HashedRow>, came: Vec<HashedRow>) {
        if went.len() + came.len() < RECENT_MAX {
            went.into_iter().for_each(|row| self.set(row, false));
            came.into_iter().for_each(|row| self.set(row, true));
            return;
        }
        self.push_all_recent();
        let (went, came) =
            (sorted([&HashedRows::from_rows(went)]), sorted([&HashedRows::from_rows(came)]));
        for (range, (went, came)) in went.ranges().zip(came.ranges()).enumerate() {
            self.push(
                range,
                Run { came: Arc::clone(came), went: Arc::clone(went) },
                MERGED_AT_ONCE_MAX,
            );
        }
    }

    /// Adds many rows.
    pub(super) fn extend(&mut self, rows: &SortedKeys) {
        if rows.len() < RECENT_MAX {
            rows.ranges().flat_map(|rows| rows.iter()).for_each(|row| self.set(*row, true));
            return;
        }
        self.push_all_recent();
        for (range, came) in rows.ranges().enumerate() {
            self.push(
                range,
                Run { came: Arc::clone(came), went: Arc::new([]) },
                MERGED_AT_ONCE_MAX,
            );
        }
    }

    /// Before a bulk change is added to the arrays: earlier changes must be older there too.
    fn push_all_recent(&mut self) {
        for range in 0..RANGES {
            self.push_recent(range, MERGED_AT_ONCE_MAX);
        }
    }

    /// Makes an array from the changes of a range.
    fn push_recent(&mut self, range: usize, merged_max: usize) {
        let first = (range as u64) << (u64::BITS - RANGE_BITS);
        let last = first | (u64::MAX >> RANGE_BITS);
        let of_range = self.recent.range((first, RowId::new(0))..=(last, RowId::new(u64::MAX)));
        let of_range: Vec<(HashedRow, bool)> =
            of_range.map(|(row, is_there)| (*row, *is_there)).collect();
        for (row, _) in &of_range {
            self.recent.remove(row);
        }
        let of = |wanted: bool| {
            let rows = of_range.iter().filter(|(_, is_there)| *is_there == wanted);
            rows.map(|(row, _)| *row).collect()
        };
        self.push(range, Run { came: of(true), went: of(false) }, merged_max);
    }

    /// Adds an array to a range, merged with earlier ones that are not much larger, as long as they have
    /// at most `merged_max` rows together.
    fn push(&mut self, range: usize, mut run: Run, merged_max: usize) {
        if run.len() == 0 {
            return;
        }
        let before = &self.ranges[range];
        let mut kept = before.len();
        while kept > 0 {
            let older = &before[kept - 1];
            let may_wait = older.len() + run.len() > merged_max && kept < RUNS_MAX;
            if may_wait || older.len() > MERGE_FACTOR * run.len() {
                break;
            }
            kept -= 1;
            run = older.merged(&run, kept == 0);
        }
        let runs = before.iter().take(kept).cloned().chain((run.len() > 0).then_some(run));
        let runs: Arc<[Run]> = runs.collect();
        Arc::make_mut(&mut self.ranges)[range] = runs;
    }

    /// Rows that may have the key: all that do, and some whose keys have or had the same hash.
    pub(super) fn candidates(&self, key: &Key) -> impl Iterator<Item = RowId> + '_ {
        let hash = key.hash64();
        let recent = self.recent.range((hash, RowId::new(0))..=(hash, RowId::new(u64::MAX)));
        let recent = recent.filter(|(_, is_there)| **is_there).map(|((_, id), _)| *id);
        let older = self.ranges[range_of(hash)].iter().rev().flat_map(move |run| {
            let from = &run.came[first_of(&run.came, hash)..];
            from.iter().take_while(move |row| row.0 == hash).map(|(_, id)| *id)
        });
        recent.chain(older)
    }

    /// The same for many keys: new rows, each with a row that may have its key.
    pub(super) fn all_candidates<'a>(
        &'a self,
        new: &'a SortedKeys,
    ) -> impl Iterator<Item = (RowId, RowId)> + 'a {
        let recent = self.recent.iter().filter(|(_, is_there)| **is_there);
        let recent = recent.flat_map(move |(known, _)| {
            same_hash(std::slice::from_ref(known), new.range(range_of(known.0)))
        });
        let recent = recent.map(|((_, known), (_, new))| (new, known));
        let older = new.ranges().zip(self.ranges.iter()).flat_map(|(new, runs)| {
            let pairs = runs.iter().flat_map(move |run| same_hash(new, &run.came));
            pairs.map(|((_, new), (_, known))| (new, known))
        });
        recent.chain(older)
    }
}

fn no_runs() -> Arc<[Arc<[Run]>]> {
    let none: Arc<[Run]> = Arc::new([]);
    (0..RANGES).map(|_| Arc::clone(&none)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::BTreeSet;

    use atoll_sys::SplitMix64;

    fn index() -> UniqueIndex {
        UniqueIndex::new(&[0])
    }

    fn may_be_there(index: &UniqueIndex, (hash, id): HashedRow) -> bool {
        let keys = sorted([&HashedRows::from_rows(vec![(hash, RowId::new(u64::MAX))])]);
        index.all_candidates(&keys).any(|(_, known)| known == id)
    }

    #[test]
    fn rows_that_are_there_are_found_however_they_came_and_few_that_are_gone() {
        for seed in 1..4 {
            let mut random = SplitMix64::new(seed);
            let (mut index, mut there, mut next) = (index(), BTreeSet::<HashedRow>::new(), 0);
            for _ in 0..60 {
                let count = [1, 50, 3000, 6000][(random.next() % 4) as usize];
                let mut new = |random: &mut SplitMix64| {
                    let row = (random.next(), RowId::new(next));
                    next += 1;
                    row
                };
                let came: Vec<HashedRow> = (0..count).map(|_| new(&mut random)).collect();
                let from = (random.next(), RowId::new(0));
                let went: Vec<HashedRow> =
                    there.range(from..).take((random.next() % 5000) as usize).copied().collect();
                match random.next() % 3 {
                    0 => index.extend(&sorted([&HashedRows::from_rows(came.clone())])),
                    1 => came.iter().for_each(|row| index.set(*row, true)),
                    _ => {
                        // Some of them return.
                        let back = went.iter().step_by(3).copied();
                        index.change_many(
                            went.clone(),
                            came.iter().copied().chain(back.clone()).collect(),
                        );
                        went.iter().for_each(|row| assert!(there.remove(row)));
                        there.extend(back);
                    }
                }
                there.extend(came);
            }
            assert!(there.iter().step_by(7).all(|row| may_be_there(&index, *row)), "seed {seed}");
            let kept: usize = index.ranges.iter().flat_map(|runs| runs.iter()).map(Run::len).sum();
            assert!(kept < 3 * next as usize, "seed {seed}: {kept} of {next} rows");
            let runs = index.ranges.iter().map(|runs| runs.len()).max();
            assert!(runs.is_some_and(|runs| runs <= RUNS_MAX + 1), "seed {seed}: {runs:?} arrays");
            assert!(index.recent.len() < RECENT_MAX);
        }
    }

    #[test]
    fn a_row_that_went_and_came_again_is_there_and_the_other_way_round() {
        let mut random = SplitMix64::new(5);
        let rows: Vec<HashedRow> = (0..20_000).map(|id| (random.next(), RowId::new(id))).collect();
        let mut index = index();
        index.extend(&sorted([&HashedRows::from_rows(rows.clone())]));
        for row in &rows[..100] {
            index.set(*row, false);
        }
        index.change_many(rows[5000..15_000].to_vec(), rows[..100].to_vec());
        index.change_many(Vec::new(), rows[5000..10_000].to_vec());
        // All recent rows, and all arrays of a range, in one.
        for range in 0..RANGES {
            index.push_recent(range, usize::MAX);
            let whole = index.ranges[range].iter().cloned();
            let whole = whole.reduce(|older, newer| older.merged(&newer, true));
            Arc::make_mut(&mut index.ranges)[range] = whole.into_iter().collect();
        }
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(may_be_there(&index, *row), !(10_000..15_000).contains(&at), "{at}");
        }
    }
}
