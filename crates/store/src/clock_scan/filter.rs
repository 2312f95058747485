//! Which values of a column may be in an index: each value has a slot, and other values may hit taken slots
//! too.
//!
//! Nearly all rows end here, so this is the hot loop of a cycle: one slot and one load per row, in
//! groups of rows that are examined one by one only if one of them hits.

/// Slots of a table that fits the first-level cache.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 12;

/// Rows that are looked up before checking whether one of them hit.
const GROUP: usize = 16;

/// The taken slots.
#[derive(Clone, Debug)]
pub(super) struct SlotTable(Box<[u8; SLOTS]>);

/// A slot of a [`SlotTable`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot(usize);

impl SlotTable {
    pub(super) fn new() -> Self {
        Self(Box::new([0; SLOTS]))
    }

    pub(super) fn take(&mut self, slot: Slot) {
        self.0[slot.0] = 1;
    }

    /// Whether a slot is taken.
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.0[slot.0] != 0
    }

    /// Takes all slots of an interval.
    pub(super) fn take_from_to(&mut self, first: Slot, last: Slot) {
        if first.0 <= last.0 {
            self.0[first.0..=last.0].fill(1);
        }
    }

    /// Adds the numbers of the rows whose value hits.
    #[inline]
    pub(super) fn hits<T: Copy>(
        &self,
        values: &[T],
        slot: impl Fn(T) -> Slot,
        into: &mut Vec<u32>,
    ) {
        let taken = |value: T| self.0[slot(value).0 & (SLOTS - 1)];
        let groups = values.chunks_exact(GROUP);
        let rest = groups.remainder();
        let mut row = 0;
        for group in groups {
            let mut any = 0;
            for value in group {
                any |= taken(*value);
            }
            if any != 0 {
                let hit = |(_, value): &(u32, &T)| taken(**value) != 0;
                into.extend((row..).zip(group).filter(hit).map(|(row, _)| row));
            }
            row += GROUP as u32;
        }
        into.extend((row..).zip(rest).filter(|(_, v)| taken(**v) != 0).map(|(row, _)| row));
    }
}

impl Slot {
    /// The slot of a key by its hash.
    #[inline(always)]
    pub(super) fn of_key(key: i64) -> Self {
        // Fibonacci hashing (Knuth): the upper bits of a product with 2^64 / φ.
        let product = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self((product >> (64 - SLOT_BITS)) as usize)
    }

    /// The slot of a number below [`SLOTS`] is the number itself.
    #[inline(always)]
    pub(super) fn of_number(number: u16) -> Self {
        Self(usize::from(number) & (SLOTS - 1))
    }
}

/// Adds the numbers of the rows whose value passes: for tests that compilers turn into comparisons of vectors.
#[inline(always)]
pub(super) fn rows_passing<T: Copy>(values: &[T], passes: impl Fn(T) -> bool, into: &mut Vec<u32>) {
    const LANES: usize = 64;
    let (groups, rest) = values.as_chunks::<LANES>();
    let mut first = 0;
    for group in groups {
        // In most groups none passes, which is found without narrowing the comparisons to bytes.
        if group.iter().fold(false, |any, value| any | passes(*value)) {
            let mut passed = [0_u8; LANES];
            for (passed, value) in passed.iter_mut().zip(group) {
                *passed = u8::from(passes(*value));
            }
            let (words, _) = passed.as_chunks::<8>();
            for (at, word) in (first..).step_by(8).zip(words) {
                let mut word = u64::from_le_bytes(*word);
                while word != 0 {
                    into.push(at + word.trailing_zeros() / 8);
                    word &= word - 1;
                }
            }
        }
        first += LANES as u32;
    }
    into.extend((first..).zip(rest).filter(|(_, value)| passes(**value)).map(|(row, _)| row));
}

/// Slots of ordered keys, for intervals: keys of a range are spread over them.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderedSlots {
    low: i64,
    high: i64,
    shift: u32,
}

impl OrderedSlots {
    /// For keys between these two; keys outside share their slots.
    pub(super) fn between(low: i64, high: i64) -> Self {
        let span = high.wrapping_sub(low) as u64;
        Self { low, high, shift: (64 - span.leading_zeros()).saturating_sub(SLOT_BITS) }
    }

    #[inline(always)]
    pub(super) fn slot(self, key: i64) -> Slot {
        let key = key.max(self.low).min(self.high);
        Slot((key.wrapping_sub(self.low) as u64 >> self.shift) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_pass_are_found_in_whole_groups_and_behind_them() {
        for count in [0, 1, 63, 64, 65, 128, 200] {
            let values: Vec<i16> = (0..count).map(|i| i * 37 % 11).collect();
            for wanted in 0..11 {
                let mut found = Vec::new();
                rows_passing(&values, |value| value == wanted, &mut found);
                let expected = (0..count as u32).filter(|row| values[*row as usize] == wanted);
                assert_eq!(found, expected.collect::<Vec<u32>>());
            }
        }
    }

    #[test]
    fn every_row_with_a_taken_slot_hits() {
        let values: Vec<i64> = (0..1000).map(|i| i * 7919 % 501 - 250).collect();
        for wanted in [vec![], vec![-250], vec![3, 99, 100], (-250..251).collect()] {
            let mut table = SlotTable::new();
            wanted.iter().for_each(|key| table.take(Slot::of_key(*key)));
            let mut hits = Vec::new();
            table.hits(&values, Slot::of_key, &mut hits);
            assert!(hits.is_sorted_by(|a, b| a < b));
            let missing = (0..values.len())
                .find(|row| wanted.contains(&values[*row]) && !hits.contains(&(*row as u32)));
            assert_eq!(missing, None);
            assert!(!wanted.is_empty() || hits.is_empty());
        }
    }

    #[test]
    fn ordered_slots_keep_the_order_at_the_ends_of_the_keys() {
        let ends =
            [(i64::MIN, i64::MAX), (0, 0), (-5, 5), (i64::MAX - 1, i64::MAX), (0, 4095), (0, 4096)];
        for (low, high) in ends {
            let slots = OrderedSlots::between(low, high);
            let keys =
                [i64::MIN, low, low.saturating_add(1), high.saturating_sub(1), high, i64::MAX];
            let of = |key: i64| slots.slot(key).0;
            for key in keys {
                assert!(of(key) < SLOTS);
                assert!(of(low) <= of(key) && of(key) <= of(high));
            }
        }
    }
}
