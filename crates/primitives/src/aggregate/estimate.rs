//! Estimates the groups of an input from a sample of its rows.

use super::input::Input;
use super::packing::{PackScratch, Packing};
use crate::hash;

/// Rows of a sample.
const SAMPLE_ROWS: usize = 1 << 15;

/// Estimates about the keys of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KeySample {
    /// Groups, no more than rows.
    pub groups: usize,
    /// Least and largest word of the sample, in the order of signed integers.
    pub(super) span: Option<(u64, u64)>,
    /// Share of the rows that the most frequent key has.
    pub hot_share: f64,
    /// Share of rows with the same key as the row before.
    pub run_share: f64,
}

impl KeySample {
    /// Estimates from the first words of `rows`. If equal keys are adjacent, as in sorted rows, it expects one group
    /// for each run.
    pub(super) fn of_first(words: &[u64], rows: usize) -> Self {
        let counts = Counts::from_words(words.to_vec());
        let repeats = words.windows(2).filter(|pair| pair[0] == pair[1]).count();
        let run_share = repeats as f64 / words.len().saturating_sub(1).max(1) as f64;
        let even = counts.groups(rows);
        let runs = words.len() - repeats;
        // Each run has another key, so later keys are new as well.
        let fresh = runs == counts.seen && runs > 1;
        let signed = || words.iter().map(|word| *word as i64);
        let span = signed().min().zip(signed().max());
        let scaled = (counts.seen as f64 / words.len().max(1) as f64 * rows as f64) as usize;
        Self {
            groups: if fresh { even.max(scaled) } else { even },
            // Rising keys continue to rise.
            span: span.filter(|_| !fresh).map(|(min, max)| (min as u64, max as u64)),
            hot_share: counts.hot_share(),
            run_share,
        }
    }

    /// Estimates from rows spread evenly over the input; returns None if a key fits no word.
    pub(super) fn sample(input: &Input, packing: &Packing) -> Option<Self> {
        let step = (input.rows / SAMPLE_ROWS).max(1);
        let mut sampled = Vec::with_capacity(input.rows / step + 1);
        let (mut repeats, mut pairs) = (0_usize, 0_usize);
        let mut scratch = PackScratch::default();
        let mut span: Option<(u64, u64)> = None;
        let (mut stratum, mut before) = (0, 0);
        for part in &input.parts {
            let (lanes, rows) = (part.rows.key_lanes(), part.rows.rows);
            loop {
                // One row of each `step` at varying offsets, because keys may be periodic.
                let at = stratum * step + hash::word(stratum as u64) as usize % step;
                let Some(row) = at.checked_sub(before).filter(|row| *row < rows) else {
                    break;
                };
                let len = 2.min(rows - row);
                let words = packing.pack(lanes, row, len, &mut scratch).ok()?;
                sampled.push(words[0]);
                pairs += usize::from(len == 2);
                repeats += usize::from(len == 2 && words[0] == words[1]);
                let (low, high) = span.unwrap_or((words[0], words[0]));
                span = Some((least(low, words[0]), largest(high, words[0])));
                stratum += 1;
            }
            before += rows;
        }
        let counts = Counts::from_words(sampled);
        Some(Self {
            groups: counts.groups(input.rows),
            span,
            hot_share: counts.hot_share(),
            run_share: repeats as f64 / pairs.max(1) as f64,
        })
    }
}

/// Estimates all groups from the `seen` groups of `rows` rows, assuming equal frequency: finds the number of groups for
/// which that many are expected.
pub(super) fn even_groups(rows: usize, seen: usize) -> usize {
    let (rows, seen) = (rows as f64, seen as f64);
    let shown = |groups: f64| groups * -(-rows / groups).exp_m1();
    let (mut low, mut high) = (seen.max(1.0), seen.max(1.0) * 2.0);
    while shown(high) < seen && high < rows * rows {
        (low, high) = (high, high * 2.0);
    }
    while high - low > 1.0 + low * 0.01 {
        let middle = low.midpoint(high);
        (low, high) = if shown(middle) < seen { (middle, high) } else { (low, middle) };
    }
    high as usize
}

fn least(a: u64, b: u64) -> u64 {
    (a as i64).min(b as i64) as u64
}

fn largest(a: u64, b: u64) -> u64 {
    (a as i64).max(b as i64) as u64
}

/// How often each word occurs in a sample.
#[derive(Debug, Default)]
struct Counts {
    sampled: usize,
    /// Distinct words; words seen once and twice; count of the most frequent word.
    seen: usize,
    once: usize,
    twice: usize,
    most: usize,
}

impl Counts {
    fn from_words(mut words: Vec<u64>) -> Self {
        words.sort_unstable();
        let mut counts = Self { sampled: words.len(), ..Self::default() };
        for run in words.chunk_by(|a, b| a == b) {
            counts.seen += 1;
            counts.once += usize::from(run.len() == 1);
            counts.twice += usize::from(run.len() == 2);
            counts.most = counts.most.max(run.len());
        }
        counts
    }

    /// Share of the most frequent word in the sample.
    fn hot_share(&self) -> f64 {
        self.most as f64 / self.sampled.max(1) as f64
    }

    /// Estimates the groups of all rows (Chao: "Nonparametric estimation of the number of classes in a population",
    /// 1984). It is a lower bound for skewed keys.
    fn groups(&self, rows: usize) -> usize {
        if self.sampled == rows {
            return self.seen;
        }
        let (once, twice) = (self.once as f64, self.twice as f64);
        let unseen = once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0));
        (self.seen + unseen as usize).min(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn estimated(keys: impl Iterator<Item = u64>, rows: usize) -> usize {
        Counts::from_words(keys.collect()).groups(rows)
    }

    #[test]
    fn even_keys_are_estimated_within_a_tenth() {
        for bits in [4, 8, 12, 15, 17] {
            let mut rng = StdRng::seed_from_u64(bits);
            let keys = (0..SAMPLE_ROWS).map(|_| rng.random_range(0..1_u64 << bits));
            let found = estimated(keys, 1 << 26) as f64;
            let share = found / f64::from(1_u32 << bits);
            assert!((0.9..1.1).contains(&share), "2^{bits}: {found}");
        }
    }

    #[test]
    fn groups_are_estimated_from_the_distinct_keys_of_a_prefix() {
        let mut rng = StdRng::seed_from_u64(1);
        for (groups, rows) in [(1 << 17, 169_000), (1 << 17, 1 << 20), (1 << 22, 1 << 18)] {
            let rows_seen = (0..rows).map(|_| rng.random_range(0..groups as u64));
            let seen = rows_seen.collect::<std::collections::HashSet<_>>().len();
            let share = even_groups(rows, seen) as f64 / f64::from(groups);
            assert!((0.9..1.1).contains(&share), "{groups}: {share}");
        }
        assert!(even_groups(1000, 1000) >= 1000 * 100);
        assert_eq!(even_groups(1000, 1), 2);
        assert_eq!(even_groups(0, 0), 2);
    }

    #[test]
    fn a_whole_input_is_counted_exactly_and_estimates_never_exceed_rows() {
        assert_eq!(estimated(0..100, 100), 100);
        assert_eq!(estimated(0..1000, 1200), 1200);
        assert_eq!(estimated(std::iter::empty(), 0), 0);
    }
}
