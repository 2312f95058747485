//! A chain through all cache lines of a buffer in random order: each line has the index of the next, which defeats
//! prefetching, and every read waits for the one before.

use atoll_sys::SplitMix64;

use crate::MeasureStepError;
use crate::options::MeasureOptions;

/// Bytes of a line. Where lines are longer (128 on POWER), two links share one, and half a chain's
/// reads of a line may hit what the other half brought; the order is random, so they hardly do.
pub(crate) const LINE: usize = 64;

/// Swaps between checks of the cancel flag: a few milliseconds.
const SWAPS_UNWATCHED: usize = 1 << 16;

/// Lines of a buffer, each with the index of the next in its first eight bytes.
pub(crate) type LineChain = [[u8; LINE]];

/// The complete lines of these bytes.
pub(crate) fn lines(bytes: &[u8]) -> &LineChain {
    bytes.as_chunks().0
}

/// Links the lines into a single cycle by Sattolo's algorithm (1986), in place.
pub(crate) fn link(bytes: &mut [u8], options: &MeasureOptions) -> Result<(), MeasureStepError> {
    let lines: &mut LineChain = bytes.as_chunks_mut().0;
    for (i, line) in lines.iter_mut().enumerate() {
        set_next(line, i);
    }
    let mut random = SplitMix64::new(options.seed);
    for i in (1..lines.len()).rev() {
        let j = random.below(i as u64) as usize;
        let (a, b) = (next(&lines[i]), next(&lines[j]));
        set_next(&mut lines[i], b);
        set_next(&mut lines[j], a);
        if i.is_multiple_of(SWAPS_UNWATCHED) && options.is_cancelled() {
            return Err(MeasureStepError::Cancelled);
        }
    }
    Ok(())
}

/// Follows the chain from line `at` for a number of reads; returns the line reached.
#[inline(never)]
pub(crate) fn walk(lines: &LineChain, mut at: usize, reads: usize) -> usize {
    for _ in 0..reads {
        at = next(&lines[at]);
    }
    at
}

fn next(line: &[u8; LINE]) -> usize {
    let [a, b, c, d, e, f, g, h, ..] = *line;
    u64::from_ne_bytes([a, b, c, d, e, f, g, h]) as usize
}

fn set_next(line: &mut [u8; LINE], next: usize) {
    line[..8].copy_from_slice(&(next as u64).to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn linked(count: usize, seed: u64) -> Vec<u8> {
        let mut bytes = vec![0; count * LINE + 7];
        link(&mut bytes, &MeasureOptions { seed, ..MeasureOptions::quick() }).unwrap();
        bytes
    }

    #[test]
    fn a_chain_visits_every_line_once_before_it_returns() {
        for count in [1, 2, 3, 64, 1000] {
            let bytes = linked(count, 7);
            let lines = lines(&bytes);
            let mut seen = vec![false; count];
            let mut at = 0;
            for _ in 0..count {
                assert!(!std::mem::replace(&mut seen[at], true), "{count} lines: {at} again");
                at = walk(lines, at, 1);
            }
            assert_eq!(at, 0);
            assert_eq!(walk(lines, 0, 2 * count), 0);
        }
    }

    #[test]
    fn the_order_depends_on_the_seed_and_on_nothing_else() {
        assert_eq!(linked(500, 3), linked(500, 3));
        assert_ne!(linked(500, 3), linked(500, 4));
    }

    #[test]
    fn neighbours_in_the_chain_are_seldom_neighbours_in_memory() {
        let bytes = linked(10_000, 1);
        let near = |i: &usize| next(&lines(&bytes)[*i]).abs_diff(*i) <= 8;
        assert!((0..10_000).filter(near).count() < 100);
    }

    #[test]
    fn linking_ends_when_it_is_called_off() {
        let options = MeasureOptions::quick();
        options.cancel.store(true, Ordering::Relaxed);
        let mut bytes = vec![0; (SWAPS_UNWATCHED + 2) * LINE];
        assert!(matches!(link(&mut bytes, &options), Err(MeasureStepError::Cancelled)));
    }
}
