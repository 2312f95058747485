//! Runs: arrays of rows sorted by the hash of their key.

use std::sync::Arc;

use super::{HashedRow, RANGE_BITS};

/// Changes of one range of hashes during some time; rows were removed before others were added.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) came: Arc<[HashedRow]>,
    pub(super) went: Arc<[HashedRow]>,
}

impl Run {
    pub(super) fn len(&self) -> usize {
        self.came.len() + self.went.len()
    }

    /// This run merged with a newer one. If there is none older, removed rows need not be kept.
    pub(super) fn merged(&self, newer: &Self, is_oldest: bool) -> Self {
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

/// Merges both in their order, each row once.
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

/// The rows of the first with the same hash as rows of the second, with these; both are sorted.
pub(super) fn same_hash<'a>(
    new: &'a [HashedRow],
    known: &'a [HashedRow],
) -> impl Iterator<Item = (HashedRow, HashedRow)> + 'a {
    let mut from = 0;
    let is_sparse = new.len() < known.len() / 16;
    new.iter().flat_map(move |row| {
        match is_sparse {
            true => from = first_of(known, row.0),
            false => from += known[from..].iter().take_while(|known| known.0 < row.0).count(),
        }
        known[from..].iter().take_while(|known| known.0 == row.0).map(|known| (*row, *known))
    })
}

/// Number of rows below a hash, within its range. Hashes are spread evenly, so the search starts where
/// the hash is expected.
pub(super) fn first_of(rows: &[HashedRow], hash: u64) -> usize {
    let within = hash << RANGE_BITS;
    let guess = ((u128::from(within) * rows.len() as u128) >> u64::BITS) as usize;
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
    use imbl::OrdMap;

    use crate::ids::RowId;

    #[test]
    fn rows_with_the_same_hash_are_found_whichever_are_more() {
        let mut random = SplitMix64::new(7);
        for (new, known) in [(0, 9), (9, 0), (30, 30), (3, 500), (500, 3)] {
            let rows = |count: u64, from: u64, random: &mut SplitMix64| {
                let rows = (0..count).map(|id| (random.next() % 50, RowId::new(from + id)));
                rows.collect::<BTreeSet<_>>().into_iter().collect::<Vec<HashedRow>>()
            };
            let (new, known) = (rows(new, 0, &mut random), rows(known, 1000, &mut random));
            let found: Vec<_> = same_hash(&new, &known).collect();
            let all = new.iter().flat_map(|row| known.iter().map(|known| (*row, *known)));
            assert_eq!(found, all.filter(|(row, known)| row.0 == known.0).collect::<Vec<_>>());
        }
    }

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
