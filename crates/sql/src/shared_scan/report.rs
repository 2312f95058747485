//! Statistics of a table's scan cycles.

use std::time::{Duration, Instant};

use atoll_store::clock_scan::ScanCounts;
use parking_lot::Mutex;

/// Number of latencies that are kept, those of the last queries.
const LATENCIES: usize = 4096;

/// The statistics of one cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CycleCounts {
    pub(super) queries: usize,
    /// Queries left to normal execution.
    pub(super) elsewhere: usize,
    pub(super) took: Duration,
    /// The part of it until the workers began.
    pub(super) preparing: Duration,
    pub(super) scan: ScanCounts,
}

/// The statistics of all cycles of a table.
#[derive(Debug, Default)]
pub(super) struct ScanCounters(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    cycles: u64,
    queries: u64,
    elsewhere: u64,
    batch_max: usize,
    busy: Duration,
    preparing: Duration,
    scan: ScanCounts,
    /// A ring; the next index is the number of queries modulo its length.
    latencies: Vec<Duration>,
}

/// A row of `atoll.scans`.
#[derive(Clone, Debug)]
pub(crate) struct ScanReport {
    pub(crate) table: String,
    /// The pool of the sessions; `None` for the common workers.
    pub(crate) pool: Option<String>,
    pub(crate) waiting: u64,
    pub(crate) cycles: u64,
    pub(crate) queries: u64,
    pub(crate) elsewhere: u64,
    pub(crate) batch_mean: f64,
    pub(crate) batch_max: u64,
    pub(crate) cycle_ms: f64,
    /// Total over all cycles.
    pub(crate) preparing_ms: f64,
    pub(crate) scan: ScanCounts,
    /// Median and 99th percentile of the last queries.
    pub(crate) latency_ms: Option<(f64, f64)>,
}

impl ScanCounters {
    /// Adds a cycle, with the times at which its queries began to wait.
    pub(super) fn cycle(&self, cycle: CycleCounts, waited: &[Instant]) {
        let mut all = self.0.lock();
        for since in waited {
            let place = all.queries as usize % LATENCIES;
            all.queries += 1;
            let latency = since.elapsed();
            match all.latencies.get_mut(place) {
                Some(kept) => *kept = latency,
                None => all.latencies.push(latency),
            }
        }
        all.cycles += 1;
        all.elsewhere += cycle.elsewhere as u64;
        all.batch_max = all.batch_max.max(cycle.queries);
        all.busy += cycle.took;
        all.preparing += cycle.preparing;
        all.scan += cycle.scan;
    }

    pub(super) fn report(&self, table: &str, pool: Option<&str>, waiting: usize) -> ScanReport {
        let all = self.0.lock();
        let mut latencies = all.latencies.clone();
        latencies.sort_unstable();
        let at = |share: usize| {
            let last = latencies.len().checked_sub(1)?;
            Some(milliseconds(latencies[last * share / 100]))
        };
        let cycles = all.cycles.max(1) as f64;
        ScanReport {
            table: table.to_owned(),
            pool: pool.map(str::to_owned),
            waiting: waiting as u64,
            cycles: all.cycles,
            queries: all.queries,
            elsewhere: all.elsewhere,
            batch_mean: all.queries as f64 / cycles,
            batch_max: all.batch_max as u64,
            cycle_ms: milliseconds(all.busy) / cycles,
            preparing_ms: milliseconds(all.preparing),
            scan: all.scan,
            latency_ms: at(50).zip(at(99)),
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
