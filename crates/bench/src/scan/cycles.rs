//! Statistics of the cycles of shared scans, from `atoll.scans`.

use anyhow::{Context, Result};
use atoll_sql::Session;
use atoll_sql::arrow::array::{Array, Float64Array};
use serde::Serialize;

use crate::session;

/// Sums over cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CycleSums {
    cycles: f64,
    queries: f64,
    milliseconds: f64,
    bytes: f64,
    candidates: f64,
    matches: f64,
    times: [f64; TIMES],
}

/// Times of a cycle in milliseconds: preparing it, then that of all workers together, and of the latter looking for
/// numbers, for strings, for their queries, proving the other tests, and gathering rows.
const TIMES: usize = 7;
const TIME_COLUMNS: [&str; TIMES] = [
    "preparing_ms",
    "scanning_ms",
    "numbers_ms",
    "text_ms",
    "lookups_ms",
    "proving_ms",
    "gathering_ms",
];

/// Where the time of a mean cycle goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct CycleProfile {
    /// Milliseconds in which the batch is prepared, by one worker.
    pub(super) preparing: f64,
    /// Milliseconds that all workers together scan.
    pub(super) scanning: f64,
    /// Shares of that.
    pub(super) numbers: f64,
    pub(super) text: f64,
    pub(super) lookups: f64,
    pub(super) proving: f64,
    pub(super) gathering: f64,
    /// GB/s of each core while it scans, of the columns by which queries are found.
    pub(super) rate_of_core: f64,
}

/// Sums over the cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct CycleMeans {
    pub(super) cycles: u64,
    /// Queries of a cycle.
    pub(super) batch: f64,
    pub(super) milliseconds: f64,
    /// Bytes that a cycle reads of the columns by which it finds queries.
    pub(super) bytes: f64,
    /// GB/s of that.
    pub(super) rate: f64,
    /// Rows and queries brought together by an index, for each pair that passes all tests.
    pub(super) candidates_of_match: f64,
    pub(super) profile: CycleProfile,
}

impl CycleSums {
    /// Sums over all cycles over the bookings so far.
    pub(super) fn now(session: &Session) -> Result<Self> {
        let sql = format!(
            "SELECT CAST(cycles AS DOUBLE), CAST(queries AS DOUBLE), cycle_ms * cycles, \
             CAST(bytes_read AS DOUBLE), CAST(candidates AS DOUBLE), CAST(matches AS DOUBLE), {} \
             FROM atoll.scans WHERE table_name = 'bookings' AND pool IS NULL",
            TIME_COLUMNS.join(", ")
        );
        let batches = session::run(session, &sql)?;
        // There is no row before the first cycle.
        let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else {
            return Ok(Self::default());
        };
        let sum = |column: usize| {
            let column = batch.column(column).as_any().downcast_ref::<Float64Array>();
            column.map(|column| column.value(0)).context("atoll.scans has other types")
        };
        let mut times = [0.0; TIMES];
        for (at, time) in times.iter_mut().enumerate() {
            *time = sum(6 + at)?;
        }
        Ok(Self {
            times,
            cycles: sum(0)?,
            queries: sum(1)?,
            milliseconds: sum(2)?,
            bytes: sum(3)?,
            candidates: sum(4)?,
            matches: sum(5)?,
        })
    }

    /// Sums over the cycles since then.
    pub(super) fn since(self, before: Self) -> Self {
        self.with(before, |now, before| now - before)
    }

    /// The sums of both.
    pub(super) fn and(self, other: Self) -> Self {
        self.with(other, |own, other| own + other)
    }

    fn with(self, other: Self, of: fn(f64, f64) -> f64) -> Self {
        Self {
            cycles: of(self.cycles, other.cycles),
            queries: of(self.queries, other.queries),
            milliseconds: of(self.milliseconds, other.milliseconds),
            bytes: of(self.bytes, other.bytes),
            candidates: of(self.candidates, other.candidates),
            matches: of(self.matches, other.matches),
            times: std::array::from_fn(|at| of(self.times[at], other.times[at])),
        }
    }

    /// The averages; None if there was no cycle.
    pub(super) fn means(self) -> Option<CycleMeans> {
        let Self { cycles, queries, milliseconds, bytes, candidates, matches, .. } = self;
        (cycles > 0.0).then(|| CycleMeans {
            cycles: cycles as u64,
            batch: queries / cycles,
            milliseconds: milliseconds / cycles,
            bytes: bytes / cycles,
            rate: bytes / 1e6 / milliseconds.max(1e-6),
            candidates_of_match: candidates / matches.max(1.0),
            profile: self.profile(),
        })
    }

    fn profile(self) -> CycleProfile {
        let [preparing, scanning, parts @ ..] = self.times;
        let [numbers, text, lookups, proving, gathering] =
            parts.map(|part| part / scanning.max(1e-6));
        let (preparing, rate_of_core) =
            (preparing / self.cycles, self.bytes / 1e6 / scanning.max(1e-6));
        let scanning = scanning / self.cycles;
        CycleProfile {
            preparing,
            scanning,
            numbers,
            text,
            lookups,
            proving,
            gathering,
            rate_of_core,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_of_the_cycles_since_the_start_of_a_run() {
        let sums = |times: f64| CycleSums {
            cycles: times,
            queries: 100.0 * times,
            milliseconds: 5.0 * times,
            bytes: 2e7 * times,
            candidates: 600.0 * times,
            matches: 200.0 * times,
            times: [1.0, 10.0, 4.0, 2.0, 1.0, 2.0, 1.0].map(|time| time * times),
        };
        let means = sums(7.0).since(sums(3.0)).and(sums(1.0)).means().expect("cycles");
        let wanted = CycleMeans {
            cycles: 5,
            batch: 100.0,
            milliseconds: 5.0,
            bytes: 2e7,
            rate: 4.0,
            candidates_of_match: 3.0,
            profile: CycleProfile {
                preparing: 1.0,
                scanning: 10.0,
                numbers: 0.4,
                text: 0.2,
                lookups: 0.1,
                proving: 0.2,
                gathering: 0.1,
                rate_of_core: 2.0,
            },
        };
        assert_eq!(means, wanted);
        assert_eq!(CycleSums::default().means(), None);
    }
}
