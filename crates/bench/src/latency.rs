//! Latencies as counts by time: buckets that are a 64th of their time wide, so that percentiles are right to
//! 2 %, as of HdrHistogram.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Buckets of each power of two.
const PARTS: u64 = 64;
const PART_BITS: u32 = PARTS.ilog2();
/// Most points by which one latency is corrected.
const CORRECTIONS_MAX: u64 = 1000;

/// Latencies by time.
#[derive(Clone, Debug, Default)]
pub(crate) struct LatencyHistogram {
    counts: Vec<u64>,
    count: u64,
    longest: u64,
}

/// Percentiles, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LatencyPercentiles {
    pub(crate) count: u64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    #[serde(rename = "p99.9")]
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

impl LatencyHistogram {
    /// Counts one.
    pub(crate) fn add(&mut self, latency: Duration) {
        self.add_times(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX), 1);
    }

    fn add_times(&mut self, nanos: u64, times: u64) {
        let bucket = bucket(nanos);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += times;
        self.count += times;
        self.longest = self.longest.max(nanos);
    }

    /// The same corrected for coordinated omission: requests that were due every `interval` while a longer one was
    /// under way would have waited for its end, as HdrHistogram corrects.
    pub(crate) fn corrected(&self, interval: Duration) -> Self {
        let step = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        let mut all = self.clone();
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let mut rest = end(bucket).min(self.longest);
            // A very long one stands for many, which are added in groups.
            let group = rest / step / CORRECTIONS_MAX + 1;
            while rest / step > group {
                rest -= step * group;
                all.add_times(rest, count * group);
            }
        }
        all
    }

    /// Counts those of another one too.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, other)| *own += other);
        self.count += other.count;
        self.longest = self.longest.max(other.longest);
    }

    /// How many were counted.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The percentiles; None if nothing was counted.
    pub(crate) fn percentiles(&self) -> Option<LatencyPercentiles> {
        (self.count > 0).then(|| LatencyPercentiles {
            count: self.count,
            p50: self.milliseconds(0.5),
            p90: self.milliseconds(0.9),
            p99: self.milliseconds(0.99),
            p999: self.milliseconds(0.999),
            max: self.longest as f64 / 1e6,
        })
    }

    /// Within which such a share was done: the end of its bucket.
    fn milliseconds(&self, share: f64) -> f64 {
        let wanted = (share * self.count as f64).ceil() as u64;
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= wanted {
                return end(bucket).min(self.longest) as f64 / 1e6;
            }
        }
        self.longest as f64 / 1e6
    }
}

/// Up to [`PARTS`] a bucket for each number, then as many for each power of two.
fn bucket(nanos: u64) -> usize {
    let power = nanos.max(1).ilog2();
    let shift = power.saturating_sub(PART_BITS);
    (u64::from(shift) * PARTS + (nanos >> shift)) as usize
}

/// The last number of a bucket.
fn end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / PARTS).saturating_sub(1);
    let first = bucket - shift * PARTS;
    ((first + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_follow_each_other() {
        let mut last = 0;
        for nanos in (0..5_000).chain((1..1_000).map(|it| it * 9_999_991)) {
            let own = bucket(nanos);
            assert!(own >= last, "{nanos}");
            last = own;
            assert!(end(own) >= nanos && end(own) - nanos <= nanos / 32, "{nanos}: {}", end(own));
        }
    }

    #[test]
    fn percentiles_are_those_of_all_that_was_counted() {
        let mut all = LatencyHistogram::default();
        for part in 0..4_u64 {
            let mut own = LatencyHistogram::default();
            (1..=1000)
                .filter(|it| it % 4 == part)
                .for_each(|it| own.add(Duration::from_millis(it)));
            all.merge(&own);
        }
        let found = all.percentiles().expect("percentiles");
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.02;
        assert!(near(found.p50, 500.0) && near(found.p99, 990.0), "{found:?}");
        assert_eq!((found.count, found.max), (1000, 1000.0));
        assert!(LatencyHistogram::default().percentiles().is_none());
    }

    #[test]
    fn a_long_pause_counts_for_all_that_were_due_in_it() {
        let mut own = LatencyHistogram::default();
        (0..99).for_each(|_| own.add(Duration::from_millis(1)));
        own.add(Duration::from_millis(100));
        let corrected = own.corrected(Duration::from_millis(1)).percentiles().expect("some");
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.03;
        assert!(
            (197..=200).contains(&corrected.count) && near(corrected.p99, 98.0),
            "{corrected:?}"
        );
        let same = own.corrected(Duration::from_secs(1)).percentiles();
        assert_eq!(same, own.percentiles());
        let long = own.corrected(Duration::from_nanos(1)).percentiles().expect("some");
        assert!(long.count > 100_000_000 && long.p50 < 2.0, "{long:?}");
    }
}
