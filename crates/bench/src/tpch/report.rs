//! The results: times, ratios, memory, and the conditions.

use atoll_tools::bench::{Manifest, Measurement};
use atoll_topology::Bytes;
use serde::Serialize;
use serde_json::json;

use super::TpchCase;
use crate::protocol::Loaded;
use crate::queries::{EngineMeasured, QueryRuns, ReadBandwidth, TimedQueries};
use crate::trials::TrialReport;

/// The report, apart from the measurements. The first engine is Atoll.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TpchReport {
    /// How it was measured.
    pub(crate) settings: TpchSettings,
    /// How fast this machine reads memory with as many threads.
    pub(crate) bandwidth: ReadBandwidth,
    /// Atoll's own generator: the same tables without files.
    pub(crate) generated: Loaded,
    /// Load and memory of each engine.
    pub(crate) engines: Vec<EngineMeasured>,
    /// Times and problems.
    #[serde(flatten)]
    pub(crate) timed: TimedQueries<TpchCase>,
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

impl TpchReport {
    /// Builds the report from the measurements.
    pub(super) fn new(
        settings: TpchSettings,
        bandwidth: ReadBandwidth,
        generated: Loaded,
        engines: Vec<EngineMeasured>,
        runs: Vec<QueryRuns<TpchCase>>,
    ) -> Self {
        let timed = TimedQueries::new(&engines, runs, bandwidth.bytes_per_second);
        Self { settings, bandwidth, generated, engines, timed }
    }

    /// Whether no query was run.
    pub(super) fn is_empty(&self) -> bool {
        self.timed.queries.is_empty()
    }
}

impl TrialReport for TpchReport {
    const NAME: &'static str = "tpch";

    fn measurements(&self) -> Vec<Measurement> {
        let TpchSettings { scale_factor, threads, fresh_parameters, .. } = self.settings;
        self.timed.measurements(&json!({
            "scale_factor": scale_factor, "threads": threads, "fresh_parameters": fresh_parameters,
        }))
    }

    fn to_markdown(&self, manifest: &Manifest) -> String {
        self.markdown(manifest)
    }

    fn problems(&self) -> &[String] {
        &self.timed.problems
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report of two engines: Q6 is answered in 10 and 40 ms, Q1 in 10 and 10, Q9 fails.
    pub(in crate::tpch) fn report() -> TpchReport {
        let runs = |query, atoll, rival| {
            let names = ["atoll", "rival"].into_iter().map(str::to_owned);
            let mut runs = QueryRuns::new(TpchCase { query }, names);
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
        let bandwidth = ReadBandwidth {
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
        assert_eq!(report.timed.queries[0].times[1].atoll_ratio, 0.25);
        let rival = &report.timed.totals[1];
        assert_eq!((rival.total_ms, rival.atoll_ratio), (50.0, 0.4));
        assert!((rival.geometric_mean_ms - 20.0).abs() < 1e-9);
        assert!((rival.atoll_ratio_geometric_mean - 0.5).abs() < 1e-9);
        assert_eq!(report.timed.totals[0].atoll_ratio, 1.0);
    }

    #[test]
    fn a_query_with_a_problem_counts_in_no_total() {
        let report = report();
        assert_eq!(report.timed.problems, ["Q9: atoll and rival differ: 1 rows against 2"]);
        assert_eq!((report.timed.totals_queries, report.timed.queries.len()), (2, 3));
        assert!(report.timed.queries[2].times.is_empty());
    }

    #[test]
    fn a_scan_is_held_against_the_bandwidth_of_the_run() {
        let scan = report().timed.queries[0].scan.expect("bytes are known");
        assert_eq!((scan.bytes_per_second, scan.bandwidth_share), (5e9, 0.25));
        assert_eq!(report().timed.queries[1].scan, None);
    }

    #[test]
    fn memory_of_the_tables_leaves_out_what_was_before() {
        assert_eq!(report().engines[0].tables_bytes(), 2 << 30);
    }
}
