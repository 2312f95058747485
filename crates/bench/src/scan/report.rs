//! The results: throughput against others, and latencies.

use std::fmt;

use atoll_tools::bench::{Better, Measurement, ScaleUp, ScaledPass};
use serde::Serialize;
use serde_json::Value;

use super::cycles::{CycleMeans, CycleSums};
use super::designs::CountedPass;
use super::ours::LoadRun;
use crate::latency::{LatencyHistogram, LatencyPercentiles};
use crate::paired::{self, PairedCase};
use crate::table::table;

/// The report, apart from the measurements.
#[derive(Debug, Serialize)]
pub(super) struct ScanReport {
    /// One for each number of rows and of threads.
    pub(super) relations: Vec<RelationReport>,
    /// Whether the time of cycles is broken down.
    pub(super) has_profile: bool,
    #[serde(serialize_with = "cases")]
    pub(super) cases: Vec<ScanCase>,
}

/// A relation as it was loaded.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RelationReport {
    pub(super) rows: u64,
    pub(super) threads: usize,
    /// Nodes of the machine.
    pub(super) nodes: usize,
    /// Statements that queries are drawn from.
    pub(super) statements: usize,
    /// Bytes of the columns in the widths of their types.
    pub(super) raw_bytes: u64,
    /// Bytes of the table in Atoll's memory.
    pub(super) table_bytes: u64,
    pub(super) load_seconds: f64,
    /// GB/s that all workers together read.
    pub(super) bandwidth: f64,
    pub(super) found: Option<FoundRows>,
    /// Microseconds of an empty query of a rival.
    pub(super) rival_empty_query_us: Option<f64>,
    /// Processor counters, if requested.
    pub(super) counted: Option<CountedPass>,
    /// Why it counted nothing.
    pub(super) no_counters: Option<String>,
    /// More threads of another machine, if requested.
    pub(super) scale_up: Option<ScaleUp>,
}

/// Rows that queries found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct FoundRows {
    pub(super) median: u32,
    pub(super) p90: u32,
    pub(super) p99: u32,
    pub(super) most: u32,
}

/// One setting: everyone's throughput, and Atoll's latencies.
#[derive(Debug)]
pub(super) struct ScanCase {
    pub(super) throughput: PairedCase,
    latencies: Vec<SubjectLatencies>,
}

/// Latencies and cycles of all competitors measured in this process.
#[derive(Debug)]
struct SubjectLatencies {
    name: String,
    queries: LatencyHistogram,
    changes: LatencyHistogram,
    cycles: CycleSums,
}

impl FoundRows {
    /// Returns None without queries.
    pub(super) fn from_counts(found: &mut [u32]) -> Option<Self> {
        found.sort_unstable();
        let last = found.len().checked_sub(1)?;
        let at = |share: f64| found[(last as f64 * share) as usize];
        Some(Self { median: at(0.5), p90: at(0.9), p99: at(0.99), most: at(1.0) })
    }
}

impl ScanCase {
    pub(super) fn new(settings: Value, unit: &'static str, better: Better) -> Self {
        Self { throughput: PairedCase::new(settings, unit, better), latencies: Vec::new() }
    }

    /// Adds a run.
    pub(super) fn add(&mut self, name: &str, run: &LoadRun) {
        self.throughput.add(name, run.rate());
        let at = self.latencies.iter().position(|subject| subject.name == name);
        let at = at.unwrap_or_else(|| {
            let (queries, changes, cycles) = Default::default();
            self.latencies.push(SubjectLatencies {
                name: name.to_owned(),
                queries,
                changes,
                cycles,
            });
            self.latencies.len() - 1
        });
        self.latencies[at].queries.merge(&run.did.queries);
        self.latencies[at].changes.merge(&run.did.changes);
        self.latencies[at].cycles = self.latencies[at].cycles.and(run.cycles);
    }

    /// Forgets the rounds so far: they were to warm up.
    pub(super) fn forget(&mut self) {
        self.throughput.forget();
        self.latencies.clear();
    }

    /// Who, what, and how long it took.
    fn percentiles(&self) -> impl Iterator<Item = (&str, &'static str, LatencyPercentiles)> {
        self.latencies.iter().flat_map(|SubjectLatencies { name, queries, changes, .. }| {
            let both = [("queries", queries), ("changes", changes)];
            both.into_iter()
                .filter_map(|(what, all)| Some((name.as_str(), what, all.percentiles()?)))
        })
    }

    /// Names of the competitors with their cycles.
    pub(super) fn cycles(&self) -> impl Iterator<Item = (&str, CycleMeans)> {
        let all = self.latencies.iter();
        all.filter_map(|subject| Some((subject.name.as_str(), subject.cycles.means()?)))
    }
}

/// Cases in JSON: as the other benchmarks have them, with latencies in milliseconds.
fn cases<S: serde::Serializer>(cases: &[ScanCase], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Latency<'a> {
        subject: &'a str,
        of: &'static str,
        #[serde(flatten)]
        milliseconds: LatencyPercentiles,
    }
    #[derive(Serialize)]
    struct Shown<'a> {
        #[serde(flatten)]
        throughput: &'a PairedCase,
        latencies: Vec<Latency<'a>>,
        cycles: Vec<Cycles<'a>>,
    }
    #[derive(Serialize)]
    struct Cycles<'a> {
        subject: &'a str,
        #[serde(flatten)]
        means: CycleMeans,
    }
    to.collect_seq(cases.iter().map(|case| {
        let latencies = case.percentiles();
        let latencies =
            latencies.map(|(subject, of, milliseconds)| Latency { subject, of, milliseconds });
        let cycles = case.cycles().map(|(subject, means)| Cycles { subject, means });
        Shown {
            throughput: &case.throughput,
            latencies: latencies.collect(),
            cycles: cycles.collect(),
        }
    }))
}

impl ScanReport {
    /// For `bench compare`.
    pub(super) fn measurements(&self) -> Vec<Measurement> {
        self.cases.iter().flat_map(|case| case.throughput.measurements()).collect()
    }

    fn latencies(&self) -> String {
        let head = ["case", "subject", "of", "count", "p50 ms", "p90", "p99", "p99.9", "max"];
        let mut rows = Vec::new();
        for case in &self.cases {
            for (subject, of, found) in case.percentiles() {
                let LatencyPercentiles { count, p50, p90, p99, p999, max } = found;
                let mut row = vec![
                    case.throughput.name(),
                    subject.to_owned(),
                    of.to_owned(),
                    count.to_string(),
                ];
                row.extend([p50, p90, p99, p999, max].map(|it| format!("{it:.2}")));
                rows.push(row);
            }
        }
        table(&head.map(str::to_owned), &rows)
    }

    /// Share of the bandwidth that all workers have.
    fn share_of_bandwidth(&self, case: &ScanCase, rate: f64) -> Option<f64> {
        let settings = &case.throughput.settings;
        let is_own = |relation: &&RelationReport| {
            settings["rows"] == relation.rows && settings["threads"] == relation.threads
        };
        self.relations.iter().find(is_own).map(|relation| rate / relation.bandwidth)
    }

    fn cycles(&self) -> String {
        let head = [
            "case",
            "subject",
            "cycles",
            "batch",
            "cycle ms",
            "MB read",
            "GB/s",
            "of bandwidth",
            "candidates of a match",
        ];
        let mut rows = Vec::new();
        for case in &self.cases {
            for (subject, means) in case.cycles() {
                let share = self.share_of_bandwidth(case, means.rate);
                rows.push(vec![
                    case.throughput.name(),
                    subject.to_owned(),
                    means.cycles.to_string(),
                    format!("{:.0}", means.batch),
                    format!("{:.2}", means.milliseconds),
                    format!("{:.0}", means.bytes / 1e6),
                    format!("{:.2}", means.rate),
                    share.map_or_else(String::new, |share| format!("{:.0} %", share * 100.0)),
                    format!("{:.1}", means.candidates_of_match),
                ]);
            }
        }
        table(&head.map(str::to_owned), &rows)
    }
}

impl ScanReport {
    fn profiles(&self) -> String {
        let head = [
            "case",
            "subject",
            "cycle ms",
            "preparing ms",
            "scanning ms of all workers",
            "numbers",
            "strings",
            "lookups",
            "proving",
            "output",
            "rest",
            "GB/s of a core",
        ];
        let mut rows = Vec::new();
        for case in &self.cases {
            for (subject, CycleMeans { milliseconds, profile, .. }) in case.cycles() {
                let parts = [
                    profile.numbers,
                    profile.text,
                    profile.lookups,
                    profile.proving,
                    profile.gathering,
                ];
                let rest = (1.0 - parts.iter().sum::<f64>()).max(0.0);
                let times = [milliseconds, profile.preparing, profile.scanning];
                let mut row = vec![case.throughput.name(), subject.to_owned()];
                row.extend(times.map(|time| format!("{time:.2}")));
                let shares = parts.into_iter().chain([rest]);
                row.extend(shares.map(|share| format!("{:.0} %", share * 100.0)));
                row.push(format!("{:.2}", profile.rate_of_core));
                rows.push(row);
            }
        }
        table(&head.map(str::to_owned), &rows)
    }
}

fn counted(pass: &CountedPass) -> String {
    let CountedPass { queries, rows, instructions, cycles, llc_loads, llc_misses } = *pass;
    let of_row = |count: u64| count as f64 / rows.max(1) as f64;
    format!(
        "a pass of one thread for {queries} queries, for each row: {:.1} instructions, {:.1} cycles ({:.2} \
         instructions in each), {:.3} loads from the last-level cache, of which {:.3} miss it",
        of_row(instructions),
        of_row(cycles),
        instructions as f64 / cycles.max(1) as f64,
        of_row(llc_loads),
        of_row(llc_misses),
    )
}

/// Throughput on more threads of another machine.
fn scaled(scale_up: &ScaleUp) -> String {
    let head = ["threads", "aligned queries/s", "narrowest", "unaware queries/s", "narrowest"];
    let rows = scale_up.points.iter().map(|point| {
        let of = |pass: &ScaledPass| [format!("{:.0}", pass.rate), pass.narrowest.clone()];
        let passes = of(&point.aligned).into_iter().chain(of(&point.unaware));
        [point.threads.to_string()].into_iter().chain(passes).collect()
    });
    let first = |first: &Option<String>| first.clone().unwrap_or_else(|| "nothing".to_owned());
    format!(
        "On {} ({}). Saturates first: {} where rows are aligned, {} where they lie on the first node.\n\n{}",
        scale_up.machine,
        scale_up.notes.join("; "),
        first(&scale_up.aligned_first),
        first(&scale_up.unaware_first),
        table(&head.map(str::to_owned), &rows.collect::<Vec<_>>())
    )
}

impl fmt::Display for ScanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for relation in &self.relations {
            let RelationReport { rows, threads, statements, bandwidth, load_seconds, .. } =
                relation;
            let megabytes = |bytes: u64| bytes as f64 / 1e6;
            writeln!(
                f,
                "- {rows} rows, {threads} threads: {:.0} MB in the widths of the columns' types, {:.0} MB in \
                 memory, loaded in {load_seconds:.1} s; {statements} statements; workers read {bandwidth:.1} GB/s",
                megabytes(relation.raw_bytes),
                megabytes(relation.table_bytes),
            )?;
            if let Some(FoundRows { median, p90, p99, most }) = relation.found {
                writeln!(
                    f,
                    "- queries found {median} rows in the median, 90 % {p90}, 99 % {p99}, at most {most}"
                )?;
            }
            match (&relation.counted, &relation.no_counters) {
                (Some(pass), _) => writeln!(f, "- {}", counted(pass))?,
                (None, Some(reason)) => writeln!(f, "- no counters of the processor: {reason}")?,
                (None, None) => {}
            }
            if relation.nodes == 1 {
                let what = "threads that are unaware of nodes are not among the designs";
                writeln!(f, "- the machine has one node: {what}")?;
            }
            if let Some(time) = relation.rival_empty_query_us {
                writeln!(f, "- DuckDB takes {time:.0} µs for a query over no rows, from Python")?;
            }
        }
        writeln!(f, "\n{}", paired::table(self.cases.iter().map(|case| &case.throughput)))?;
        writeln!(f, "{}", self.latencies())?;
        f.write_str(&self.cycles())?;
        if self.has_profile {
            write!(f, "\n{}", self.profiles())?;
        }
        for scale_up in self.relations.iter().filter_map(|relation| relation.scale_up.as_ref()) {
            write!(f, "\n{}", scaled(scale_up))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::FoundRows;

    #[test]
    fn rows_that_were_found_are_summed_up_by_rank() {
        let mut found: Vec<u32> = (0..=1000).rev().collect();
        let summed = FoundRows { median: 500, p90: 900, p99: 990, most: 1000 };
        assert_eq!(FoundRows::from_counts(&mut found), Some(summed));
        assert_eq!(FoundRows::from_counts(&mut []), None);
    }
}
