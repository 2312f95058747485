//! A set of a last-level cache: lines in the order of their use, the last used first.

use super::{HeldLine, Holders, LineState, SetTag};

/// The ways of a set. A word is the tag plus one above two bits of state, and 0 where no line is; no
/// line comes before any.
pub(crate) struct Set<'a> {
    pub(super) words: &'a mut [u32],
    pub(super) holders: &'a mut [u32],
}

/// Words that are compared at once.
const STEP: usize = 8;

impl Set<'_> {
    /// Where a tag is. Compares without branches, because the compiler does so with several at a time.
    #[inline]
    pub(crate) fn find(&self, tag: SetTag) -> Option<usize> {
        let key = tag.0 + 1;
        let (steps, rest) = self.words.as_chunks::<STEP>();
        for (number, step) in steps.iter().enumerate() {
            let equal = step.map(|word| u32::from(word >> 2 == key));
            if equal.iter().fold(0, |any, equal| any | equal) != 0 {
                let at = equal.iter().position(|equal| *equal != 0)?;
                return Some(number * STEP + at);
            }
        }
        let at = rest.iter().position(|word| word >> 2 == key)?;
        Some(steps.len() * STEP + at)
    }

    /// The line in a way that has one.
    #[inline]
    pub(crate) fn get(&self, at: usize, tag: SetTag) -> HeldLine {
        HeldLine { tag, state: state(self.words[at]), holders: Holders(self.holders[at]) }
    }

    #[inline]
    pub(crate) fn put(&mut self, at: usize, held: HeldLine) {
        self.words[at] = (held.tag.0 + 1) << 2 | held.state as u32;
        self.holders[at] = held.holders.0;
    }

    /// Makes a line the one used last.
    #[inline]
    pub(crate) fn promote(&mut self, at: usize) {
        if at > 0 {
            let (word, holders) = (self.words[at], self.holders[at]);
            self.shift(at);
            (self.words[0], self.holders[0]) = (word, holders);
        }
    }

    /// Puts in a line as the one used last; the one not used for longest falls out.
    #[inline]
    pub(crate) fn insert(&mut self, held: HeldLine) -> Option<HeldLine> {
        let last = self.words.len() - 1;
        let tag = (self.words[last] >> 2).checked_sub(1).map(SetTag);
        let out = tag.map(|tag| self.get(last, tag));
        self.shift(last);
        self.put(0, held);
        out
    }

    /// Takes a line out.
    pub(crate) fn remove(&mut self, at: usize) {
        let last = self.words.len() - 1;
        self.words.copy_within(at + 1.., at);
        self.holders.copy_within(at + 1.., at);
        (self.words[last], self.holders[last]) = (0, 0);
    }

    /// Makes room in the first way by what is in another.
    #[inline]
    fn shift(&mut self, at: usize) {
        self.words.copy_within(..at, 1);
        self.holders.copy_within(..at, 1);
    }
}

fn state(word: u32) -> LineState {
    match word & 3 {
        0 => LineState::Modified,
        1 => LineState::Exclusive,
        2 => LineState::Shared,
        _ => LineState::Forward,
    }
}
