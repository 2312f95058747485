//! Reading, writing and copying block by block: the work of a bandwidth thread.
//!
//! Everything is plain loads and stores. A plain store brings the line in before it changes it, so
//! that each byte written crosses the memory bus twice (and each byte copied three times); figures
//! count a byte once. Copying is the C library's `memcpy`, a block at a time, as databases copy.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes between checks of the stop flag: large enough that counting is cheap compared to reading, small enough that a
/// throttled load is even.
const BLOCK: usize = 8 << 10;

/// The written value: no two adjacent bytes are equal, so that the compiler emits stores and not the C library's
/// `memset`, which may bypass caches.
const PATTERN: [u64; 8] = [0x0102_0304_0506_0708; 8];

/// The operation of a thread, and its memory.
#[derive(Debug)]
pub(crate) enum ThreadJob<'a> {
    /// Adds up all words.
    Read(&'a [u8]),
    /// Fills all lines.
    Write(&'a mut [u8]),
    /// Copies one half to the other.
    Copy {
        /// Read from.
        from: &'a [u8],
        /// Written to, of the same length.
        to: &'a mut [u8],
    },
}

impl ThreadJob<'_> {
    /// Loops over the blocks, waiting for `pause` after each, until `done` returns true for the bytes processed.
    pub(crate) fn run(&mut self, pause: Duration, mut done: impl FnMut(usize) -> bool) {
        let mut block = 0;
        loop {
            let bytes = self.work(block);
            if done(bytes) || bytes == 0 {
                return;
            }
            block += 1;
            if block * BLOCK >= self.len() {
                block = 0;
            }
            if !pause.is_zero() {
                wait(pause);
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Read(bytes) => bytes.len(),
            Self::Write(bytes) => bytes.len(),
            Self::Copy { from, .. } => from.len(),
        }
    }

    /// Processes one block; returns its length in bytes.
    fn work(&mut self, block: usize) -> usize {
        let start = block * BLOCK;
        let end = (start + BLOCK).min(self.len());
        match self {
            Self::Read(bytes) => {
                black_box(sum(&bytes[start..end]));
            }
            Self::Write(bytes) => fill(&mut bytes[start..end], black_box(PATTERN)),
            Self::Copy { from, to } => {
                to[start..end].copy_from_slice(&from[start..end]);
                black_box(&mut to[start..end]);
            }
        }
        end - start
    }
}

/// Sum of all words, in sixteen sums side by side so that adding never waits for an addition.
#[inline(never)]
fn sum(bytes: &[u8]) -> u64 {
    let mut sums = [0_u64; 16];
    for line in bytes.as_chunks::<128>().0 {
        for (sum, word) in sums.iter_mut().zip(line.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_ne_bytes(*word));
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

#[inline(never)]
fn fill(bytes: &mut [u8], pattern: [u64; 8]) {
    for line in bytes.as_chunks_mut::<64>().0 {
        for (to, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(pattern) {
            *to = word.to_ne_bytes();
        }
    }
}

/// Busy-waits: a sleep takes at least 50 µs.
fn wait(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_covers_every_word() {
        let mut bytes = vec![0_u8; 4096];
        for at in (0..4096).step_by(8) {
            bytes[at] = 1;
        }
        assert_eq!(sum(&bytes), 512);
    }

    /// Bytes worked on in `blocks` blocks.
    fn run(mut job: ThreadJob<'_>, blocks: usize) -> usize {
        let (mut bytes, mut left) = (0, blocks);
        job.run(Duration::ZERO, |done| {
            bytes += done;
            left -= 1;
            left == 0
        });
        bytes
    }

    #[test]
    fn writing_and_copying_reach_every_byte_and_start_again_at_the_end() {
        let mut from = vec![0_u8; 2 * BLOCK + 128];
        let mut to = vec![0_u8; from.len()];
        assert_eq!(run(ThreadJob::Write(&mut from), 4), from.len() + BLOCK);
        assert!(from.iter().all(|byte| *byte != 0));
        assert_eq!(run(ThreadJob::Copy { from: &from, to: &mut to }, 3), from.len());
        assert_eq!(from, to);
        assert_eq!(run(ThreadJob::Read(&to), 6), 2 * from.len());
    }

    #[test]
    fn a_job_without_memory_ends_at_once() {
        assert_eq!(run(ThreadJob::Read(&[]), usize::MAX), 0);
    }
}
