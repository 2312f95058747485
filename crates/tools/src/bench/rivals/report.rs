//! What came out: conditions, and for each case medians, ratios and the share of the limit.

use std::fmt;
use std::fs;
use std::time::SystemTime;

use atoll_primitives::Tuning;
use atoll_topology::{Bytes, Machine, rfc3339};
use serde::Serialize;
use serde_json::{Map, Value};

use super::bandwidth::{Bandwidth, Bound};
use super::paired::{Measured, OurRuns, RivalRuns};
use super::table;

/// All of a benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) benchmark: &'static str,
    pub(crate) conditions: Conditions,
    pub(crate) cases: Vec<Case>,
}

/// Under which the figures were measured; what could not be read is none.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Conditions {
    at: String,
    atoll: &'static str,
    command: String,
    machine: String,
    models: Vec<String>,
    nodes: usize,
    cpus: usize,
    cache: Option<Bytes>,
    memory: Bytes,
    kernel: Option<String>,
    transparent_huge_pages: Option<String>,
    seed: u64,
    runs: u32,
    tuning: String,
    /// Versions of the rivals.
    rivals: Vec<String>,
    load_average_start: Option<String>,
    load_average_end: Option<String>,
}

/// Median, least and most of some runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) runs: usize,
}

/// One setting, run by all.
#[derive(Debug, Serialize)]
pub(crate) struct Case {
    /// Its settings, by the names of the flags.
    #[serde(flatten)]
    pub(crate) settings: Map<String, Value>,
    /// Bytes that have to move.
    pub(crate) bytes: u64,
    /// GB/s of the workers, measured between the runs: medians.
    pub(crate) bandwidth: Bandwidth,
    pub(crate) limit: Limit,
    pub(crate) ours: Vec<Ours>,
    pub(crate) rivals: Vec<Rival>,
}

/// The shortest time that the machine allows.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Limit {
    pub(crate) by: Bound,
    pub(crate) seconds: f64,
}

/// A variant of Atoll.
#[derive(Debug, Serialize)]
pub(crate) struct Ours {
    pub(crate) variant: String,
    pub(crate) note: Option<String>,
    pub(crate) seconds: Spread,
    /// Bytes that have to move, a second of its median.
    pub(crate) gb_per_s: f64,
    /// Share of the limit that it reaches.
    pub(crate) share_of_limit: f64,
    /// How many times faster than the best rival, pair by pair.
    pub(crate) ratio: Option<Ratio>,
    /// Times faster than with the first number of threads that was run.
    pub(crate) speed_up: Option<f64>,
    /// Median seconds of its phases.
    pub(crate) phases: Vec<Phase>,
}

/// A phase of a variant.
#[derive(Debug, Serialize)]
pub(crate) struct Phase {
    pub(crate) name: String,
    pub(crate) seconds: f64,
}

/// Time of the rival by time of Atoll.
#[derive(Debug, Serialize)]
pub(crate) struct Ratio {
    /// The rival with the smallest median.
    pub(crate) to: String,
    #[serde(flatten)]
    pub(crate) spread: Spread,
}

/// A rival.
#[derive(Debug, Serialize)]
pub(crate) struct Rival {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) way: String,
    pub(crate) seconds: Option<Spread>,
    pub(crate) failure: Option<String>,
}

impl Spread {
    /// Of these values; none where there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let runs = values.len();
        let median = f64::midpoint(values[(runs - 1) / 2], values[runs / 2]);
        Some(Self { median, least, most, runs })
    }
}

impl Case {
    /// Of what was measured; none where Atoll did not run.
    pub(crate) fn of(
        settings: Map<String, Value>,
        (bound, bytes): (Bound, u64),
        measured: &Measured,
    ) -> Option<Self> {
        let median = |rate: fn(&Bandwidth) -> f64| {
            Spread::of(measured.bandwidths.iter().map(rate)).map(|spread| spread.median)
        };
        let bandwidth = Bandwidth { read: median(|it| it.read)?, copy: median(|it| it.copy)? };
        let limit = Limit { by: bound, seconds: bandwidth.limit(bound, bytes) };
        let best = best(&measured.rivals);
        let ours =
            measured.ours.iter().map(|ours| Ours::of(ours, bytes, limit, &measured.rivals, best));
        Some(Self {
            settings,
            bytes,
            bandwidth,
            limit,
            ours: ours.collect::<Option<_>>()?,
            rivals: measured.rivals.iter().map(Rival::of).collect(),
        })
    }
}

/// Position of the rival with the smallest median.
fn best(rivals: &[RivalRuns]) -> Option<usize> {
    let medians = rivals.iter().enumerate();
    let medians = medians.filter_map(|(at, it)| Some((at, Spread::of(it.seconds.clone())?.median)));
    Some(medians.min_by(|a, b| a.1.total_cmp(&b.1))?.0)
}

impl Ours {
    fn of(
        ours: &OurRuns,
        bytes: u64,
        limit: Limit,
        rivals: &[RivalRuns],
        best: Option<usize>,
    ) -> Option<Self> {
        let seconds = Spread::of(ours.runs.iter().map(|(_, run)| run.seconds))?;
        let last = &ours.runs.last()?.1;
        let ratio = best.and_then(|best| {
            let beside = ours.runs.iter().filter(|(rival, _)| *rival == Some(best));
            let pairs = rivals[best].seconds.iter().zip(beside);
            let spread = Spread::of(pairs.map(|(rival, (_, run))| rival / run.seconds))?;
            Some(Ratio { to: rivals[best].name.clone(), spread })
        });
        let phase = |(at, (name, _)): (usize, &(String, f64))| {
            let all = ours.runs.iter().filter_map(|(_, run)| Some(run.phases.get(at)?.1));
            Some(Phase { name: name.clone(), seconds: Spread::of(all)?.median })
        };
        Some(Self {
            variant: ours.name.clone(),
            note: last.note.clone(),
            seconds,
            gb_per_s: bytes as f64 / seconds.median / 1e9,
            share_of_limit: limit.seconds / seconds.median,
            ratio,
            speed_up: None,
            phases: last.phases.iter().enumerate().filter_map(phase).collect(),
        })
    }
}

impl Rival {
    fn of(runs: &RivalRuns) -> Self {
        Self {
            name: runs.name.clone(),
            version: runs.version.clone(),
            way: runs.way.clone(),
            seconds: Spread::of(runs.seconds.clone()),
            failure: runs.failure.clone(),
        }
    }
}

impl Conditions {
    /// Of this process, at its start.
    pub(crate) fn of(machine: &Machine, seed: u64, runs: u32, tuning: &Tuning) -> Self {
        let mut models: Vec<String> =
            machine.packages.iter().filter_map(|package| package.model.clone()).collect();
        models.dedup();
        let arguments = std::env::args().skip(1);
        Self {
            at: rfc3339(SystemTime::now()),
            atoll: env!("CARGO_PKG_VERSION"),
            command: std::iter::once("atoll".to_owned())
                .chain(arguments)
                .collect::<Vec<_>>()
                .join(" "),
            machine: machine.name.clone(),
            models,
            nodes: machine.nodes.len(),
            cpus: machine.cpus.len(),
            cache: machine.domains.iter().filter_map(|domain| domain.cache).max(),
            memory: machine.memory(),
            kernel: line("/proc/sys/kernel/osrelease"),
            transparent_huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|all| chosen(&all)),
            seed,
            runs,
            tuning: format!("{tuning:?}"),
            rivals: Vec::new(),
            load_average_start: load_average(),
            load_average_end: None,
        }
    }

    /// What can only be told at the end.
    pub(crate) fn end(&mut self, cases: &[Case]) {
        let all = cases.iter().flat_map(|case| &case.rivals).filter(|it| !it.version.is_empty());
        self.rivals = all.map(|rival| format!("{} {}", rival.name, rival.version)).collect();
        self.rivals.sort_unstable();
        self.rivals.dedup();
        self.load_average_end = load_average();
    }
}

fn line(file: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

/// The choice in brackets of `always [madvise] never`.
fn chosen(all: &str) -> String {
    let inside = all.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(all, |(choice, _)| choice).to_owned()
}

fn load_average() -> Option<String> {
    Some(line("/proc/loadavg")?.split_whitespace().next()?.to_owned())
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "not known".to_owned());
        let Self { at, atoll, command, machine, nodes, cpus, memory, seed, runs, tuning, .. } =
            self;
        let models = match self.models.is_empty() {
            true => "model not known".to_owned(),
            false => self.models.join(", "),
        };
        let cache = self.cache.map_or("not known".to_owned(), |cache| cache.to_string());
        writeln!(f, "{at}, Atoll {atoll}: {command}")?;
        writeln!(
            f,
            "{machine}: {models}; nodes: {nodes}, cpus: {cpus}, last-level cache: {cache}, memory: {memory}"
        )?;
        writeln!(
            f,
            "kernel {}, transparent huge pages {}, load average {} at the start, {} at the end",
            known(&self.kernel),
            known(&self.transparent_huge_pages),
            known(&self.load_average_start),
            known(&self.load_average_end),
        )?;
        let rivals = match self.rivals.is_empty() {
            true => "no rivals".to_owned(),
            false => self.rivals.join(", "),
        };
        writeln!(f, "{rivals}; runs: {runs}, seed {seed}\n{tuning}")
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&table::line(self))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.conditions, table::text(&self.cases))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rivals::paired::Outcome;

    fn measured() -> Measured {
        let run = |beside, seconds| (Some(beside), Outcome { seconds, ..Outcome::default() });
        let runs = vec![run(0, 1.0), run(1, 2.0), run(0, 1.0), run(1, 1.0)];
        let rival = |name: &str, seconds: [f64; 2]| RivalRuns {
            name: name.to_owned(),
            seconds: seconds.to_vec(),
            ..RivalRuns::default()
        };
        Measured {
            ours: vec![OurRuns { name: "auto".to_owned(), runs }],
            rivals: vec![rival("slow", [9.0, 8.0]), rival("fast", [4.0, 4.0])],
            bandwidths: vec![Bandwidth { read: 10.0, copy: 5.0 }],
        }
    }

    #[test]
    fn ratios_are_to_the_best_rival_pair_by_pair() {
        let case = Case::of(Map::new(), (Bound::Read, 5_000_000_000), &measured()).unwrap();
        let ours = &case.ours[0];
        assert_eq!(ours.seconds, Spread { median: 1.0, least: 1.0, most: 2.0, runs: 4 });
        let ratio = ours.ratio.as_ref().unwrap();
        assert_eq!((ratio.to.as_str(), ratio.spread.least, ratio.spread.most), ("fast", 2.0, 4.0));
        assert_eq!((case.limit.seconds, ours.share_of_limit, ours.gb_per_s), (0.5, 0.5, 5.0));
    }

    #[test]
    fn without_rivals_there_is_no_ratio() {
        let alone = Measured { rivals: Vec::new(), ..measured() };
        let case = Case::of(Map::new(), (Bound::Copy, 1), &alone).unwrap();
        assert!(case.ours[0].ratio.is_none());
        assert!(Case::of(Map::new(), (Bound::Copy, 1), &Measured::default()).is_none());
    }

    #[test]
    fn a_spread_has_the_middle_of_its_values() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert!(Spread::of([]).is_none());
    }
}
