//! Sets of entries in the order of their use, the last used first; empty entries come last.

/// An entry of a set: a key and what is kept with it.
pub(crate) trait SetEntry: Copy + Default {
    /// The key of entries in a set.
    type Key: Copy;

    /// Whether it has this key. An empty one has none.
    fn has(self, key: Self::Key) -> bool;
}

/// Entries by set.
pub(crate) struct Sets<E> {
    entries: Vec<E>,
    ways: usize,
}

impl<E: SetEntry> Sets<E> {
    /// `sets` empty sets of `ways` entries.
    pub(crate) fn new(sets: usize, ways: u32) -> Self {
        let ways = ways as usize;
        Self { entries: vec![E::default(); sets * ways], ways }
    }

    pub(crate) fn set(&mut self, number: usize) -> &mut [E] {
        let start = number * self.ways;
        &mut self.entries[start..start + self.ways]
    }
}

/// Entries that are compared without a branch between them.
const STEP: usize = 4;

/// The position of a key.
#[inline]
pub(crate) fn find<E: SetEntry>(set: &[E], key: E::Key) -> Option<usize> {
    let (steps, rest) = set.as_chunks::<STEP>();
    let step = steps.iter().position(|step| step.iter().fold(false, |any, e| any | e.has(key)));
    let (start, among) = match step {
        Some(step) => (step * STEP, &steps[step][..]),
        None => (steps.len() * STEP, rest),
    };
    Some(start + among.iter().position(|entry| entry.has(key))?)
}

/// Makes an entry the one used last.
pub(crate) fn promote<E: SetEntry>(set: &mut [E], position: usize) {
    let entry = set[position];
    set.copy_within(..position, 1);
    set[0] = entry;
}

/// Adds a new entry as the last used; the least recently used one is evicted.
pub(crate) fn insert<E: SetEntry>(set: &mut [E], entry: E) -> E {
    let last = set.len() - 1;
    let out = set[last];
    set.copy_within(..last, 1);
    set[0] = entry;
    out
}

/// Removes an entry.
pub(crate) fn remove<E: SetEntry>(set: &mut [E], position: usize) -> E {
    let out = set[position];
    set.copy_within(position + 1.., position);
    set[set.len() - 1] = E::default();
    out
}

/// A divisor.
#[derive(Clone, Copy)]
pub(crate) struct Modulus {
    divisor: u64,
    /// The divisor as a power of two, where it is one: a division takes some ten times as long.
    bits: Option<u32>,
}

impl Modulus {
    pub(crate) fn new(divisor: u64) -> Self {
        Self { divisor, bits: divisor.is_power_of_two().then(|| divisor.trailing_zeros()) }
    }

    pub(crate) fn divisor(self) -> u64 {
        self.divisor
    }

    /// Quotient and remainder.
    #[inline]
    pub(crate) fn divide(self, number: u64) -> (u64, u64) {
        match self.bits {
            Some(bits) => (number >> bits, number & (self.divisor - 1)),
            None => (number / self.divisor, number % self.divisor),
        }
    }

    /// The remainder: the set of a key, out of this many.
    #[inline]
    pub(crate) fn remainder(self, key: u64) -> usize {
        self.divide(key).1 as usize
    }
}
