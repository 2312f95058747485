//! The results: times, ratios, memory, and the conditions.

use atoll_tools::bench::{Measurement, Summary};
use atoll_topology::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::protocol::Loaded;

/// The report, apart from the measurements. The first engine is Atoll.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TpchReport {
    /// How it was measured.
    pub(crate) settings: TpchSettings,
    /// How fast this machine reads memory with as many threads.
    pub(crate) bandwidth: Bandwidth,
    /// Atoll's own generator: the same tables without files.
    pub(crate) generated: Loaded,
    /// Load and memory of each engine.
    pub(crate) engines: Vec<EngineMeasured>,
    /// Times of each query.
    pub(crate) queries: Vec<QueryTimes>,
    /// Sums and means over the queries that all engines answered.
    pub(crate) totals: Vec<Total>,
    /// Queries in the totals.
    pub(crate) totals_queries: usize,
    /// Queries that failed and results that differ; empty where all is well.
    pub(crate) problems: Vec<String>,
}

/// How fast memory can be read by as many threads, each reading its own node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Bandwidth {
    /// Threads that read.
    pub(crate) threads: usize,
    /// Memory that they read in each pass.
    pub(crate) buffer_bytes: Bytes,
    /// Passes; the fastest counts, since everything else on the machine only slows it down.
    pub(crate) passes: usize,
    /// Bytes per second in the fastest pass.
    pub(crate) bytes_per_second: f64,
}

/// How it was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TpchSettings {
    /// Scale factor of TPC-H.
    pub(crate) scale_factor: f64,
    /// Threads of each engine.
    pub(crate) threads: usize,
    /// Whether every round has parameters of its own; else they are those of the validation run.
    pub(crate) fresh_parameters: bool,
    /// Size of the Parquet files.
    pub(crate) file_bytes: Bytes,
}

/// Load and memory of an engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EngineMeasured {
    /// Its message after the load.
    pub(crate) loaded: Loaded,
    /// Highest resident memory of its process, load and queries included.
    pub(crate) peak_rss_bytes: u64,
}

impl EngineMeasured {
    /// Memory that the tables took: resident after the load, without what was before.
    pub(crate) fn tables_bytes(&self) -> u64 {
        self.loaded.rss_bytes.saturating_sub(self.loaded.rss_before_load_bytes)
    }
}

/// A query's times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct QueryTimes {
    /// 1 to 22.
    pub(crate) query: u8,
    /// Rows of the last round's result.
    pub(crate) rows: usize,
    /// One for each engine, in their order; empty where the query has a problem.
    pub(crate) times: Vec<Times>,
    /// Bandwidth of its scans, if known.
    pub(crate) scan: Option<ScanReached>,
}

/// An engine's times for a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Times {
    /// The engine.
    pub(crate) engine: String,
    /// Every measured round, in milliseconds.
    #[serde(skip)]
    pub(crate) samples_ms: Vec<f64>,
    /// Median and quartiles, in milliseconds.
    pub(crate) ms: Summary,
    /// Atoll's median over this engine's: below 1 Atoll is faster.
    pub(crate) atoll_ratio: f64,
}

/// Bandwidth of the scans of a query.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct ScanReached {
    /// Bytes that the scans read, as they are stored.
    pub(crate) bytes: u64,
    /// Bytes over the median time.
    pub(crate) bytes_per_second: f64,
    /// Share of the bandwidth measured in the same run.
    pub(crate) bandwidth_share: f64,
}

/// An engine's sums over the queries that all engines answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Total {
    /// The engine.
    pub(crate) engine: String,
    /// Sum of the medians, in milliseconds.
    pub(crate) total_ms: f64,
    /// Geometric mean of the medians, in milliseconds.
    pub(crate) geometric_mean_ms: f64,
    /// Atoll's total over this engine's.
    pub(crate) atoll_ratio: f64,
    /// Geometric mean of the queries' ratios, Atoll over this engine.
    pub(crate) atoll_ratio_geometric_mean: f64,
}

impl TpchReport {
    /// Builds the report from the measurements.
    pub(super) fn new(
        settings: TpchSettings,
        bandwidth: Bandwidth,
        generated: Loaded,
        engines: Vec<EngineMeasured>,
        runs: Vec<QueryRuns>,
    ) -> Self {
        let problems = runs
            .iter()
            .flat_map(|runs| runs.problems.iter().map(|it| format!("Q{}: {it}", runs.query)))
            .collect();
        let queries: Vec<QueryTimes> =
            runs.into_iter().map(|runs| runs.summary(bandwidth.bytes_per_second)).collect();
        let answered: Vec<&QueryTimes> = queries.iter().filter(|it| !it.times.is_empty()).collect();
        let names = engines.iter().map(|engine| engine.loaded.engine.as_str()).enumerate();
        let totals = names.filter_map(|(at, name)| total(name, at, &answered)).collect();
        let totals_queries = answered.len();
        Self { settings, bandwidth, generated, engines, totals, totals_queries, queries, problems }
    }
}

impl TpchReport {
    /// Whether no query was run.
    pub(super) fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// For `bench compare`.
    pub(super) fn measurements(&self) -> Vec<Measurement> {
        let TpchSettings { scale_factor, threads, fresh_parameters, .. } = self.settings;
        let of_query = |query: &QueryTimes| {
            let case = json!({
                "query": query.query, "scale_factor": scale_factor, "threads": threads,
                "fresh_parameters": fresh_parameters,
            });
            let of = |times: &Times| {
                Measurement::times(&case, &times.engine, "ms", times.samples_ms.clone())
            };
            query.times.iter().map(of).collect::<Vec<_>>()
        };
        self.queries.iter().flat_map(of_query).collect()
    }
}

/// The totals of the engine at a place in the order; None if no query was answered.
fn total(name: &str, at: usize, answered: &[&QueryTimes]) -> Option<Total> {
    let median = |query: &&QueryTimes, at: usize| query.times[at].ms.median;
    let sum = |at: usize| answered.iter().map(|query| median(query, at)).sum::<f64>();
    let mean = |of: &dyn Fn(&&QueryTimes) -> f64| {
        let logarithms: f64 = answered.iter().map(|query| of(query).ln()).sum();
        (logarithms / answered.len() as f64).exp()
    };
    (!answered.is_empty()).then(|| Total {
        engine: name.to_owned(),
        total_ms: sum(at),
        geometric_mean_ms: mean(&|query| median(query, at)),
        atoll_ratio: sum(0) / sum(at),
        atoll_ratio_geometric_mean: mean(&|query| query.times[at].atoll_ratio),
    })
}

/// A query's rounds as they come in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct QueryRuns {
    query: u8,
    engines: Vec<String>,
    /// Milliseconds by engine, then round.
    samples: Vec<Vec<f64>>,
    pub(super) rows: usize,
    pub(super) scanned_bytes: Option<u64>,
    pub(super) problems: Vec<String>,
}

impl QueryRuns {
    pub(super) fn new(query: u8, engines: impl Iterator<Item = String>) -> Self {
        let engines: Vec<String> = engines.collect();
        let samples = vec![Vec::new(); engines.len()];
        Self { query, engines, samples, rows: 0, scanned_bytes: None, problems: Vec::new() }
    }

    /// Adds a round: one time for each engine.
    pub(super) fn add(&mut self, round: impl Iterator<Item = f64>) {
        self.samples.iter_mut().zip(round).for_each(|(samples, ms)| samples.push(ms));
    }

    pub(super) fn problem(&mut self, what: String) {
        self.problems.push(what);
    }

    /// A line of progress.
    pub(super) fn progress(&self) -> String {
        if let Some(problem) = self.problems.first() {
            return format!("Q{}: {problem}", self.query);
        }
        let times = self.engines.iter().zip(&self.samples).map(|(engine, samples)| {
            let median =
                Summary::from_values(samples.iter().copied()).map_or(0.0, |all| all.median);
            format!("{engine} {median:.1} ms")
        });
        format!("Q{}: {}", self.query, times.collect::<Vec<_>>().join(", "))
    }

    fn summary(self, bandwidth: f64) -> QueryTimes {
        let Self { query, rows, engines, samples, scanned_bytes, problems } = self;
        if !problems.is_empty() {
            return QueryTimes { query, rows, times: Vec::new(), scan: None };
        }
        let summaries: Option<Vec<Summary>> =
            samples.iter().map(|samples| Summary::from_values(samples.iter().copied())).collect();
        let Some(summaries) = summaries.filter(|all| !all.is_empty()) else {
            return QueryTimes { query, rows, times: Vec::new(), scan: None };
        };
        let atoll = summaries[0].median;
        let scan = scanned_bytes.map(|bytes| {
            let bytes_per_second = bytes as f64 / (atoll / 1e3);
            ScanReached { bytes, bytes_per_second, bandwidth_share: bytes_per_second / bandwidth }
        });
        let times = engines.into_iter().zip(samples).zip(summaries);
        let times = times.map(|((engine, samples_ms), ms)| Times {
            engine,
            samples_ms,
            ms,
            atoll_ratio: atoll / ms.median,
        });
        QueryTimes { query, rows, times: times.collect(), scan }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report of two engines: Q6 is answered in 10 and 40 ms, Q1 in 10 and 10, Q9 fails.
    pub(in crate::tpch) fn report() -> TpchReport {
        let runs = |query, atoll, rival| {
            let names = ["atoll", "rival"].into_iter().map(str::to_owned);
            let mut runs = QueryRuns::new(query, names);
            runs.add([atoll, rival].into_iter());
            runs
        };
        let (mut six, mut nine) = (runs(6, 10.0, 40.0), runs(9, 1.0, 1.0));
        six.scanned_bytes = Some(50_000_000);
        nine.problem("atoll and rival differ: 1 rows against 2".to_owned());
        let settings = TpchSettings {
            scale_factor: 1.0,
            threads: 2,
            fresh_parameters: false,
            file_bytes: Bytes(0),
        };
        let bandwidth = Bandwidth {
            threads: 2,
            buffer_bytes: Bytes(1 << 30),
            passes: 9,
            bytes_per_second: 20e9,
        };
        let engines = vec![measured("atoll", 500.0, 3 << 30), measured("rival", 1000.0, 2 << 30)];
        TpchReport::new(
            settings,
            bandwidth,
            measured("generator", 2000.0, 1).loaded,
            engines,
            vec![six, runs(1, 10.0, 10.0), nine],
        )
    }

    fn measured(engine: &str, load_ms: f64, rss_bytes: u64) -> EngineMeasured {
        let loaded = Loaded {
            engine: engine.to_owned(),
            version: "1.2".to_owned(),
            load_ms,
            rss_before_load_bytes: 1 << 30,
            rss_bytes,
            peak_rss_bytes: rss_bytes,
            placement: None,
        };
        EngineMeasured { loaded, peak_rss_bytes: 4 << 30 }
    }

    #[test]
    fn ratios_are_atoll_over_the_rival() {
        let report = report();
        assert_eq!(report.queries[0].times[1].atoll_ratio, 0.25);
        let rival = &report.totals[1];
        assert_eq!((rival.total_ms, rival.atoll_ratio), (50.0, 0.4));
        assert!((rival.geometric_mean_ms - 20.0).abs() < 1e-9);
        assert!((rival.atoll_ratio_geometric_mean - 0.5).abs() < 1e-9);
        assert_eq!(report.totals[0].atoll_ratio, 1.0);
    }

    #[test]
    fn a_query_with_a_problem_counts_in_no_total() {
        let report = report();
        assert_eq!(report.problems, ["Q9: atoll and rival differ: 1 rows against 2"]);
        assert_eq!((report.totals_queries, report.queries.len()), (2, 3));
        assert!(report.queries[2].times.is_empty());
    }

    #[test]
    fn a_scan_is_held_against_the_bandwidth_of_the_run() {
        let scan = report().queries[0].scan.expect("bytes are known");
        assert_eq!((scan.bytes_per_second, scan.bandwidth_share), (5e9, 0.25));
        assert_eq!(report().queries[1].scan, None);
    }

    #[test]
    fn memory_of_the_tables_leaves_out_what_was_before() {
        assert_eq!(report().engines[0].tables_bytes(), 2 << 30);
    }
}
