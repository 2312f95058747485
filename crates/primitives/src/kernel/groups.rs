//! Groups of a block of rows, and aggregation by group: the inner loops of aggregation.
//!
//! [`GroupIds`] holds the group number of each row of a block and guarantees that every number is less than
//! [`GroupIds::groups`]. So loops over it need one bounds check per block instead of one per row.

use super::stream::prefetch;
use crate::hash;

/// Marks an empty slot of a hash table.
pub(crate) const EMPTY: u32 = 0;

/// The group of each row of a block; all are less than `groups`.
#[derive(Debug, Default)]
pub(crate) struct GroupIds {
    ids: Vec<u32>,
    groups: usize,
    /// Rows without a group yet, between `look_up` and `settle`.
    missing: Vec<u32>,
}

impl GroupIds {
    /// Exclusive upper bound of the groups.
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// The groups 0, 1, 2 … for this many rows.
    pub(crate) fn number(&mut self, rows: u32) {
        self.ids.clear();
        self.ids.extend(0..rows);
        self.groups = rows as usize;
    }

    /// Assigns all rows to one group.
    pub(crate) fn all_of(&mut self, group: u32, rows: usize) {
        self.ids.clear();
        self.ids.resize(rows, group);
        self.groups = group as usize + 1;
    }

    /// Takes these groups, all of which must be less than `groups`.
    ///
    /// # Panics
    /// When one is not.
    pub(crate) fn take(&mut self, ids: impl Iterator<Item = u32>, groups: usize) {
        self.ids.clear();
        self.ids.extend(ids);
        let max = self.ids.iter().copied().max();
        assert!(max.is_none_or(|max| (max as usize) < groups), "groups are less than their number");
        self.groups = groups;
    }

    /// Takes the group of each word; groups must not decrease.
    pub(crate) fn count_up(&mut self, words: &[u64], group: impl FnMut(u64) -> u32) {
        self.ids.clear();
        self.ids.extend(words.iter().copied().map(group));
        let last = self.ids.last().copied();
        let rising = self.ids.is_sorted();
        assert!(rising, "groups of runs do not decrease");
        self.groups = last.map_or(0, |last| last as usize + 1);
    }

    /// The group of a word is its distance from `min`. Returns false, without groups, if a distance is `2^bits` or
    /// more; `bits` is at most 31.
    pub(crate) fn dense(&mut self, words: &[u64], min: u64, bits: u32) -> bool {
        self.ids.resize(words.len(), 0);
        let mut all = 0;
        for (id, word) in self.ids.iter_mut().zip(words) {
            let distance = word.wrapping_sub(min);
            all |= distance;
            *id = distance as u32;
        }
        // All distances are below a power of two when their union is.
        let inside = all >> bits == 0 && bits < 32;
        if !inside {
            self.ids.clear();
        }
        self.groups = 1 << bits;
        inside
    }

    /// Looks the words up in their first slots. `slots` (a power of two of them) hold a group's number + 1, `keys` the
    /// word of each group. Rows that are elsewhere or new stay missing.
    pub(crate) fn look_up(&mut self, words: &[u64], slots: &[u32], keys: &[u64]) {
        assert!(slots.len().is_power_of_two(), "the number of slots is a power of two");
        let mask = slots.len() - 1;
        self.ids.resize(words.len(), 0);
        self.missing.resize(words.len(), 0);
        self.groups = keys.len();
        let mut missing = 0;
        let first = keys.first().copied().unwrap_or_default();
        for (row, word) in words.iter().enumerate() {
            let slot = hash::word(*word) as usize & mask;
            // SAFETY: the mask keeps the slot inside of the table.
            let group = unsafe { *slots.get_unchecked(slot) };
            let id = group.wrapping_sub(1);
            let known = (id as usize) < keys.len();
            // SAFETY: an index that is not below the length is not used.
            let key = unsafe { if known { *keys.get_unchecked(id as usize) } else { first } };
            // SAFETY: both vectors are as long as `words`, and no more rows are missing than there are.
            unsafe {
                *self.ids.get_unchecked_mut(row) = if known { id } else { 0 };
                *self.missing.get_unchecked_mut(missing) = row as u32;
            }
            missing += usize::from(!(known & (key == *word)));
        }
        self.missing.truncate(missing);
    }

    /// Gives each missing row the group that `find` returns, which adds groups for new words. `groups` is the resulting
    /// number of groups.
    pub(crate) fn settle<E>(
        &mut self,
        mut find: impl FnMut(u32) -> Result<u32, E>,
    ) -> Result<(), E> {
        for at in 0..self.missing.len() {
            let row = self.missing[at];
            let id = find(row)?;
            self.ids[row as usize] = id;
            self.groups = self.groups.max(id as usize + 1);
        }
        self.missing.clear();
        Ok(())
    }

    /// Prefetches the entries of a table that the next loop will use, if the table exceeds the second-level cache.
    #[inline(always)]
    fn ahead<T>(&self, row: usize, by: usize, table: &[T]) {
        if by > 0 {
            let at = (row + by).min(self.ids.len() - 1);
            prefetch(table.as_ptr().wrapping_add(self.ids[at] as usize));
        }
    }

    fn check<T, V>(&self, table: &[T], values: &[V]) {
        assert!(self.groups <= table.len(), "the table has an entry for every group");
        assert_eq!(self.ids.len(), values.len(), "one value for each row");
    }

    /// `table[group] = with(table[group], value)` for each row, `by` entries prefetched ahead.
    #[inline(always)]
    pub(crate) fn fold<T: Copy, V: Copy>(
        &self,
        table: &mut [T],
        values: &[V],
        by: usize,
        with: impl Fn(T, V) -> T,
    ) {
        self.check(table, values);
        for (row, value) in values.iter().enumerate() {
            self.ahead(row, by, table);
            // SAFETY: there are as many ids as values, and every id is below `groups`, which is at
            // most the table's length (`check`).
            unsafe {
                let id = *self.ids.get_unchecked(row) as usize;
                let entry = table.get_unchecked_mut(id);
                *entry = with(*entry, *value);
            }
        }
    }

    /// `table[group] = with(table[group], values[from])` for each row, where `from` is a group of another table.
    ///
    /// # Panics
    /// When a row has no `from`, or that has no value.
    pub(crate) fn fold_from<T: Copy, V: Copy>(
        &self,
        table: &mut [T],
        values: &[V],
        from: &[u32],
        with: impl Fn(T, V) -> T,
    ) {
        assert_eq!(self.ids.len(), from.len(), "a group of the other table for each row");
        for (id, from) in self.ids.iter().zip(from) {
            let entry = &mut table[*id as usize];
            *entry = with(*entry, values[*from as usize]);
        }
    }

    /// `table[group] = with(table[group])` for each row.
    #[inline(always)]
    pub(crate) fn touch<T: Copy>(&self, table: &mut [T], by: usize, with: impl Fn(T) -> T) {
        assert!(self.groups <= table.len(), "the table has an entry for every group");
        for row in 0..self.ids.len() {
            self.ahead(row, by, table);
            // SAFETY: as in `fold`.
            unsafe {
                let id = *self.ids.get_unchecked(row) as usize;
                let entry = table.get_unchecked_mut(id);
                *entry = with(*entry);
            }
        }
    }

    /// Adds 64-bit numbers to `2^copies` sums for each group (`table[group << copies | copy]`), which rows of one group
    /// use in turn: an addition does not wait for the one before.
    #[inline]
    pub(crate) fn add_in_turn(&self, table: &mut [i64], values: &[i64], copies: u32) {
        assert!(self.groups << copies <= table.len(), "the table has entries for every group");
        assert_eq!(self.ids.len(), values.len(), "one value for each row");
        let turn = (1 << copies) - 1;
        for (row, value) in values.iter().enumerate() {
            // SAFETY: as in `fold`, with `2^copies` entries for each group.
            unsafe {
                let id = *self.ids.get_unchecked(row) as usize;
                let entry = table.get_unchecked_mut(id << copies | (row & turn));
                *entry = entry.wrapping_add(*value);
            }
        }
    }
}
