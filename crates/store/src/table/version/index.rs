//! Rows by key: an index for each PRIMARY KEY and UNIQUE constraint.
//!
//! It holds rows by the hash of their key, sorted: a few arrays, each much larger than the next, and what came
//! and went since in a persistent map. Once that is full it becomes an array, which is merged with those before it
//! that are not much larger. So a change copies the path to it, and a lookup looks into few places. Keys
//! are not kept: whether a row has the key is seen from the row, so that a row that an array still has and
//! that is gone does no harm.

use std::sync::Arc;

use imbl::OrdMap;

use super::super::definition::Unique;
use super::super::row::Key;
use crate::ids::RowId;

/// Changes that are kept in the map, at most.
const RECENT_MAX: usize = 4096;

/// Two arrays are merged where the older has at most so many times as many rows.
const MERGE_FACTOR: usize = 4;

/// A row with the hash of its key.
pub(super) type HashedRow = (u64, RowId);

/// Rows by key. Rows with a NULL in it are not among them.
#[derive(Clone, Debug)]
pub(super) struct UniqueIndex {
    columns: Arc<[usize]>,
    /// The oldest and largest first.
    runs: Vec<Run>,
    /// Whether rows are there, where that changed since.
    recent: OrdMap<HashedRow, bool>,
}

/// What changed in some time; what went, went before what came.
#[derive(Clone, Debug)]
struct Run {
    came: Arc<[HashedRow]>,
    went: Arc<[HashedRow]>,
}

impl UniqueIndex {
    pub(super) fn new(unique: &Unique) -> Self {
        let columns = unique.columns.as_slice().into();
        Self { columns, runs: Vec::new(), recent: OrdMap::new() }
    }

    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }

    pub(super) fn has_columns(&self, columns: &[usize]) -> bool {
        *self.columns == *columns
    }

    /// Bytes of memory it takes, about: nodes of the map are half full on average.
    pub(super) fn memory_bytes(&self) -> usize {
        let in_runs: usize = self.runs.iter().map(Run::len).sum();
        in_runs * size_of::<HashedRow>() + 2 * self.recent.len() * size_of::<(HashedRow, bool)>()
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.recent = OrdMap::new();
    }

    /// Follows a row from one key to another, or to none.
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

    /// Takes a row, or takes it out.
    pub(super) fn set(&mut self, row: HashedRow, is_there: bool) {
        self.recent.insert(row, is_there);
        if self.recent.len() >= RECENT_MAX {
            self.push_recent();
        }
    }

    /// Takes many rows, which are sorted.
    pub(super) fn extend(&mut self, rows: Vec<HashedRow>) {
        if rows.len() < RECENT_MAX {
            rows.into_iter().for_each(|row| self.set(row, true));
            return;
        }
        self.push_recent();
        self.push(Run { came: rows.into(), went: Arc::new([]) });
    }

    fn push_recent(&mut self) {
        let of = |wanted: bool| {
            let rows = self.recent.iter().filter(move |(_, is_there)| **is_there == wanted);
            rows.map(|(row, _)| *row).collect()
        };
        let run = Run { came: of(true), went: of(false) };
        self.recent = OrdMap::new();
        self.push(run);
    }

    fn push(&mut self, mut run: Run) {
        while let Some(older) = self.runs.pop_if(|older| older.len() <= MERGE_FACTOR * run.len()) {
            run = older.merged(&run, self.runs.is_empty());
        }
        if run.len() > 0 {
            self.runs.push(run);
        }
    }

    /// Rows that may have the key: all that do, and some whose keys have the same hash or had.
    pub(super) fn candidates(&self, key: &Key) -> impl Iterator<Item = RowId> + '_ {
        let hash = key.hash64();
        let recent = self.recent.range((hash, RowId::new(0))..=(hash, RowId::new(u64::MAX)));
        let recent = recent.filter(|(_, is_there)| **is_there).map(|((_, id), _)| *id);
        let older = self.runs.iter().rev().flat_map(move |run| {
            let from = &run.came[first_of(&run.came, hash)..];
            from.iter().take_while(move |row| row.0 == hash).map(|(_, id)| *id)
        });
        recent.chain(older)
    }
}

impl Run {
    fn len(&self) -> usize {
        self.came.len() + self.went.len()
    }

    /// This run and a newer one together. With none older, what went need not be kept.
    fn merged(&self, newer: &Self, is_oldest: bool) -> Self {
        let mut went = newer.went.iter().peekable();
        let stays = |row: &&HashedRow| {
            while went.next_if(|gone| gone < row).is_some() {}
            went.peek() != Some(row)
        };
        let came = union(self.came.iter().filter(stays), newer.came.iter());
        let went = match is_oldest {
            true => Vec::new(),
            false => union(self.went.iter(), newer.went.iter()),
        };
        Self { came: came.into(), went: went.into() }
    }
}

/// Both in their order, each row once.
fn union<'a>(
    one: impl Iterator<Item = &'a HashedRow>,
    other: impl Iterator<Item = &'a HashedRow>,
) -> Vec<HashedRow> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    let mut all = Vec::with_capacity(one.size_hint().0 + other.size_hint().0);
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        if a <= b {
            if a == b {
                other.next();
            }
            all.extend(one.next());
        } else {
            all.extend(other.next());
        }
    }
    all.extend(one.chain(other));
    all
}

/// Number of rows below a hash. Hashes are spread evenly, so they are looked for about where they would be.
fn first_of(rows: &[HashedRow], hash: u64) -> usize {
    let guess = ((u128::from(hash) * rows.len() as u128) >> u64::BITS) as usize;
    let is_below = |at: usize| rows[at].0 < hash;
    let (mut low, mut high, mut step) = (guess, guess, 64);
    while high < rows.len() && is_below(high) {
        low = high + 1;
        high = (high + step).min(rows.len());
        step *= 2;
    }
    while low > 0 && !is_below(low - 1) {
        high = low - 1;
        low = low.saturating_sub(step);
        step *= 2;
    }
    low + rows[low..high].partition_point(|row| row.0 < hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::BTreeSet;

    use atoll_sys::SplitMix64;

    #[test]
    fn a_hash_is_found_wherever_it_is() {
        let mut random = SplitMix64::new(3);
        for count in [0, 1, 2, 100, 5_000] {
            for spread in [1, u64::MAX / 7, u64::MAX] {
                let rows = (0..count).map(|id| (random.next() % spread, RowId::new(id)));
                let rows: Vec<HashedRow> = rows.collect::<BTreeSet<_>>().into_iter().collect();
                let some = (0..50).map(|_| random.next());
                for hash in some.chain(rows.iter().map(|row| row.0)).chain([0, u64::MAX]) {
                    assert_eq!(first_of(&rows, hash), rows.partition_point(|row| row.0 < hash));
                }
            }
        }
    }

    #[test]
    fn runs_hold_what_a_set_holds_however_they_are_merged() {
        let mut random = SplitMix64::new(4);
        let (mut set, mut runs) = (BTreeSet::new(), Vec::<Run>::new());
        for _ in 0..200 {
            let mut recent: OrdMap<HashedRow, bool> = OrdMap::new();
            for _ in 0..random.next() % 30 {
                let row = (random.next() % 20, RowId::new(random.next() % 3));
                let is_there = !random.next().is_multiple_of(3);
                recent.insert(row, is_there);
                if is_there {
                    set.insert(row)
                } else {
                    set.remove(&row)
                };
            }
            let of = |wanted: bool| {
                recent.iter().filter(|(_, is)| **is == wanted).map(|(r, _)| *r).collect()
            };
            let mut run = Run { came: of(true), went: of(false) };
            while !runs.is_empty() && random.next().is_multiple_of(2) {
                let older = runs.pop().unwrap();
                run = older.merged(&run, runs.is_empty());
            }
            runs.push(run);
        }
        let whole = runs.into_iter().rev().reduce(|newer, older| older.merged(&newer, false));
        assert!(whole.unwrap().came.iter().eq(&set));
    }
}
