//! Time by part of a pass: measured in every eighth block, because reading the clock between the parts of each would
//! cost a percent of it.

use std::ops::AddAssign;
use std::time::Instant;

/// One in this many blocks is timed, and counts for all of them.
const EVERY: usize = 8;

/// A part of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanPart {
    Numbers,
    Text,
    Lookups,
    Proving,
}

/// Nanoseconds of passes, summed over all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanTimes {
    /// Total.
    pub all: u64,
    /// Looking up numbers.
    pub numbers: u64,
    /// Looking up strings.
    pub text: u64,
    /// Finding the queries of the hits.
    pub lookups: u64,
    /// Evaluating the other tests of these queries.
    pub proving: u64,
    /// Gathering the rows that passed.
    pub gathering: u64,
}

/// Times the parts of a block, if the block is timed.
#[derive(Debug, Default)]
pub(super) struct BlockClock {
    last: Option<Instant>,
    blocks: usize,
    pub(super) times: ScanTimes,
}

impl AddAssign for ScanTimes {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.numbers += other.numbers;
        self.text += other.text;
        self.lookups += other.lookups;
        self.proving += other.proving;
        self.gathering += other.gathering;
    }
}

impl BlockClock {
    /// Begins a block.
    pub(super) fn begin(&mut self) {
        self.last = self.blocks.is_multiple_of(EVERY).then(Instant::now);
        self.blocks += 1;
    }

    /// Ends a part, which began when the previous one ended.
    #[inline]
    pub(super) fn end(&mut self, part: ScanPart) {
        if let Some(last) = self.last {
            let now = Instant::now();
            let taken = EVERY as u64 * nanoseconds(now - last);
            *match part {
                ScanPart::Numbers => &mut self.times.numbers,
                ScanPart::Text => &mut self.times.text,
                ScanPart::Lookups => &mut self.times.lookups,
                ScanPart::Proving => &mut self.times.proving,
            } += taken;
            self.last = Some(now);
        }
    }
}

/// A time as a number.
pub(super) fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_in_eight_is_timed_for_all() {
        let mut clock = BlockClock::default();
        let mut timed = 0;
        for _ in 0..4 * EVERY {
            clock.begin();
            let before = clock.times;
            while clock.last.is_some_and(|last| last.elapsed().is_zero()) {}
            clock.end(ScanPart::Numbers);
            timed += usize::from(clock.times != before);
        }
        assert_eq!(timed, 4);
        assert!(clock.times.numbers >= 4 * EVERY as u64 && clock.times.text == 0);
    }
}
