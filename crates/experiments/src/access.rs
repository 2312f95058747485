//! The loops that are measured. They hold their state in registers: but for the array nothing is read
//! or written, so that what a cache or a counter sees are the array's accesses. Places are computed,
//! since an array of indexes would take room in the caches.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};

use atoll_sys::SplitMix64;

/// Bytes of a line, and words in it.
pub(crate) const LINE: usize = 64;
const LINE_WORDS: usize = LINE / size_of::<u64>();

/// A linear congruential generator (Knuth's MMIX): two instructions, of which the high bits are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessSequence(u64);

impl AccessSequence {
    /// The generator of a thread; threads of other numbers have other places.
    pub(crate) fn new(seed: u64, thread: u64) -> Self {
        // Near seeds lie far apart.
        Self(SplitMix64::new(SplitMix64::new(seed).next() ^ thread).next())
    }

    /// A number below `end`; 0 if `end` is 0.
    #[inline(always)]
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0) * end as u128) >> 64) as usize
    }
}

/// Reads random bytes and returns their sum, so that no read is optimised away.
#[inline(never)]
pub(crate) fn read(array: &[AtomicU8], random: &mut AccessSequence, accesses: u64) -> u64 {
    let (mut at, mut sum) = (*random, 0_u64);
    for _ in 0..accesses {
        if let Some(byte) = array.get(at.below(array.len())) {
            sum = sum.wrapping_add(u64::from(byte.load(Relaxed)));
        }
    }
    *random = at;
    sum
}

/// Writes random bytes.
#[inline(never)]
pub(crate) fn write(array: &[AtomicU8], random: &mut AccessSequence, accesses: u64) {
    let mut at = *random;
    for _ in 0..accesses {
        if let Some(byte) = array.get(at.below(array.len())) {
            byte.store(1, Relaxed);
        }
    }
    *random = at;
}

/// Follows the chain from line `at` for this many reads and returns the line reached.
#[inline(never)]
pub(crate) fn chase(array: &[AtomicU64], mut at: usize, accesses: u64) -> usize {
    for _ in 0..accesses {
        at = array.get(at * LINE_WORDS).map_or(0, |word| word.load(Relaxed) as usize);
    }
    at
}

/// Links the array's whole lines into one cycle by Sattolo's algorithm (1986).
pub(crate) fn link(array: &[AtomicU64], random: &mut AccessSequence) {
    let lines = array.len() / LINE_WORDS;
    let word = |line: usize| &array[line * LINE_WORDS];
    for line in 0..lines {
        word(line).store(line as u64, Relaxed);
    }
    for i in (1..lines).rev() {
        let j = random.below(i);
        let (a, b) = (word(i).load(Relaxed), word(j).load(Relaxed));
        word(i).store(b, Relaxed);
        word(j).store(a, Relaxed);
    }
}

/// Touches every line once, in order.
#[inline(never)]
pub(crate) fn touch(array: &[AtomicU8], writes: bool) -> u64 {
    let mut sum = 0_u64;
    for byte in array.iter().step_by(LINE) {
        match writes {
            true => byte.store(1, Relaxed),
            false => sum = sum.wrapping_add(u64::from(byte.load(Relaxed))),
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<AtomicU8> {
        (0..len).map(|_| AtomicU8::new(0)).collect()
    }

    #[test]
    fn writes_reach_every_byte_of_arrays_of_any_size_and_reads_see_them() {
        for len in [1, 3, 100, 4096, 5000] {
            let array = bytes(len);
            let mut random = AccessSequence::new(1, 0);
            write(&array, &mut random, 20 * len as u64 + 200);
            let written = array.iter().filter(|byte| byte.load(Relaxed) == 1).count();
            assert_eq!(written, len);
            assert_eq!(read(&array, &mut random, 1000), 1000);
        }
    }

    #[test]
    fn places_are_within_the_array_and_evenly_spread() {
        for end in [1, 3, 4096, 1_000_003] {
            let mut random = AccessSequence::new(7, 3);
            let mut quarters = [0_u32; 4];
            for _ in 0..40_000 {
                let at = random.below(end);
                assert!(at < end);
                quarters[at * 4 / end] += 1;
            }
            assert!(end < 4 || quarters.iter().all(|count| (9_500..10_500).contains(count)));
        }
    }

    #[test]
    fn an_array_without_bytes_is_left_alone() {
        assert_eq!(read(&[], &mut AccessSequence::new(1, 1), 10), 0);
        write(&[], &mut AccessSequence::new(1, 1), 10);
        assert_eq!(chase(&[], 0, 10), 0);
        link(&[], &mut AccessSequence::new(1, 1));
    }

    #[test]
    fn two_threads_have_places_of_their_own_and_a_seed_gives_the_same_again() {
        let places = |seed, thread| {
            let mut random = AccessSequence::new(seed, thread);
            (0..100).map(|_| random.below(1 << 20)).collect::<Vec<_>>()
        };
        assert_eq!(places(1, 2), places(1, 2));
        assert_ne!(places(1, 2), places(1, 3));
        assert_ne!(places(1, 2), places(2, 2));
    }

    #[test]
    fn a_chain_visits_every_line_before_it_returns() {
        for lines in [1, 2, 3, 1000] {
            let array: Vec<AtomicU64> = (0..lines * 8 + 5).map(|_| AtomicU64::new(99)).collect();
            link(&array, &mut AccessSequence::new(3, 0));
            let mut seen = vec![false; lines];
            let mut at = 0;
            for _ in 0..lines {
                assert!(!std::mem::replace(&mut seen[at], true));
                at = chase(&array, at, 1);
            }
            assert_eq!(at, 0);
        }
    }
}
