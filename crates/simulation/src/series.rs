//! Counts over time, where time is counted accesses.
//!
//! A series starts with short slices. When there are too many, each two neighbours become one and
//! slices are twice as long from then on. A slice is the difference of two sums, so that slices add up
//! to the total.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::report::{RunSeries, RunSlice};

/// Slices at most.
const SLICES: usize = 256;

/// Accesses of the first slices.
const SHORTEST: u64 = 1024;

/// The counts so far, as one slice from the beginning.
pub(crate) type Sum = RunSlice;

/// A series being recorded.
pub(crate) struct Recorder {
    series: RunSeries,
    /// The sum of the slices so far.
    sum: Sum,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let series = RunSeries { accesses_per_slice: SHORTEST, slices: vec![] };
        Self { series, sum: Sum::default() }
    }

    /// Ends a slice.
    pub(crate) fn cut(&mut self, now: Sum) {
        self.series.slices.push(difference(&now, &self.sum));
        self.sum = now;
        if self.series.slices.len() >= SLICES {
            self.series.slices = self.series.slices.chunks(2).map(merge).collect();
            self.series.accesses_per_slice *= 2;
        }
    }

    /// The series including the counts since the last cut.
    pub(crate) fn finish(&self, now: &Sum) -> RunSeries {
        let mut series = self.series.clone();
        let rest = difference(now, &self.sum);
        if rest.accesses > 0 {
            series.slices.push(rest);
        }
        series
    }

    fn accesses_per_slice(&self) -> u64 {
        self.series.accesses_per_slice
    }
}

/// A recorder and when it has to cut.
pub(crate) struct Clock {
    /// Number of accesses seen.
    seen: AtomicU64,
    /// `seen` at which the slice ends.
    due: AtomicU64,
    recorder: parking_lot::Mutex<Recorder>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let recorder = parking_lot::Mutex::new(Recorder::new());
        Self { seen: AtomicU64::new(0), due: AtomicU64::new(SHORTEST), recorder }
    }

    /// Advances by some accesses; `sum` is called when a slice ends.
    pub(crate) fn advance(&self, accesses: u64, sum: impl FnOnce() -> Sum) {
        let seen = self.seen.fetch_add(accesses, Relaxed) + accesses;
        if seen < self.due.load(Relaxed) {
            return;
        }
        let mut recorder = self.recorder.lock();
        if seen >= self.due.load(Relaxed) {
            recorder.cut(sum());
            self.due.store(seen + recorder.accesses_per_slice(), Relaxed);
        }
    }

    pub(crate) fn finish(&self, sum: impl FnOnce() -> Sum) -> RunSeries {
        let recorder = self.recorder.lock();
        recorder.finish(&sum())
    }
}

fn difference(now: &Sum, before: &Sum) -> RunSlice {
    RunSlice {
        region: now.region,
        accesses: now.accesses.wrapping_sub(before.accesses),
        llc_hits: each(&now.llc_hits, &before.llc_hits, u64::wrapping_sub),
        llc_misses: each(&now.llc_misses, &before.llc_misses, u64::wrapping_sub),
        controllers: each(&now.controllers, &before.controllers, u64::wrapping_sub),
        links: each(&now.links, &before.links, u64::wrapping_sub),
    }
}

fn merge(pair: &[RunSlice]) -> RunSlice {
    let [one, other] = pair else { return pair.first().cloned().unwrap_or_default() };
    RunSlice {
        region: other.region,
        accesses: one.accesses + other.accesses,
        llc_hits: each(&one.llc_hits, &other.llc_hits, u64::wrapping_add),
        llc_misses: each(&one.llc_misses, &other.llc_misses, u64::wrapping_add),
        controllers: each(&one.controllers, &other.controllers, u64::wrapping_add),
        links: each(&one.links, &other.links, u64::wrapping_add),
    }
}

/// Combines two lists of counts; the second is empty if nothing had been counted yet.
fn each(one: &[u64], other: &[u64], combine: fn(u64, u64) -> u64) -> Vec<u64> {
    let others = other.iter().copied().chain(std::iter::repeat(0));
    one.iter().zip(others).map(|(a, b)| combine(*a, b)).collect()
}
