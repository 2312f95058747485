//! The results: for each case medians, ratios and the share of the limit.

use atoll_tools::bench::{Measurement, Summary};
use serde::Serialize;
use serde_json::Value;

use super::bandwidth::{Bandwidth, Bound};
use super::contest::{ContestRuns, OurRuns, RivalRuns};

/// The report of a benchmark, apart from its measurements.
#[derive(Debug, Serialize)]
pub(crate) struct ContestReport {
    /// Sizes that the primitives were run with.
    pub(crate) tuning: String,
    pub(crate) cases: Vec<Case>,
}

/// One setting, run by all.
#[derive(Debug, Serialize)]
pub(crate) struct Case {
    /// Its settings, by the names of the flags.
    #[serde(flatten)]
    pub(crate) settings: Value,
    /// For `bench compare`.
    #[serde(skip)]
    pub(crate) measurements: Vec<Measurement>,
    /// Bytes that must move.
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
    pub(crate) seconds: Summary,
    /// Bytes that must move, per second of its median.
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
    pub(crate) spread: Summary,
}

/// A rival.
#[derive(Debug, Serialize)]
pub(crate) struct Rival {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) way: String,
    pub(crate) seconds: Option<Summary>,
    pub(crate) failure: Option<String>,
}

impl Case {
    /// Returns None if Atoll did not run.
    pub(crate) fn from_runs(
        settings: Value,
        (bound, bytes): (Bound, u64),
        measured: &ContestRuns,
    ) -> Option<Self> {
        let median = |rate: fn(&Bandwidth) -> f64| {
            Summary::from_values(measured.bandwidths.iter().map(rate)).map(|summary| summary.median)
        };
        let bandwidth = Bandwidth { read: median(|it| it.read)?, copy: median(|it| it.copy)? };
        let limit = Limit { by: bound, seconds: bandwidth.limit(bound, bytes) };
        let best = best(&measured.rivals);
        let ours = measured
            .ours
            .iter()
            .map(|ours| Ours::from_runs(ours, bytes, limit, &measured.rivals, best));
        let mut measurements = Vec::new();
        for ours in &measured.ours {
            let seconds = ours.runs.iter().map(|(_, run)| run.seconds).collect();
            let subject = format!("atoll {}", ours.name);
            measurements.push(Measurement::times(&settings, subject, "s", seconds));
        }
        for rival in measured.rivals.iter().filter(|rival| !rival.seconds.is_empty()) {
            let seconds = rival.seconds.clone();
            measurements.push(Measurement::times(&settings, &rival.name, "s", seconds));
        }
        Some(Self {
            settings,
            measurements,
            bytes,
            bandwidth,
            limit,
            ours: ours.collect::<Option<_>>()?,
            rivals: measured.rivals.iter().map(Rival::from_runs).collect(),
        })
    }
}

/// Position of the rival with the smallest median.
fn best(rivals: &[RivalRuns]) -> Option<usize> {
    let medians = rivals.iter().enumerate();
    let medians =
        medians.filter_map(|(at, it)| Some((at, Summary::from_values(it.seconds.clone())?.median)));
    Some(medians.min_by(|a, b| a.1.total_cmp(&b.1))?.0)
}

impl Ours {
    fn from_runs(
        ours: &OurRuns,
        bytes: u64,
        limit: Limit,
        rivals: &[RivalRuns],
        best: Option<usize>,
    ) -> Option<Self> {
        let seconds = Summary::from_values(ours.runs.iter().map(|(_, run)| run.seconds))?;
        let last = &ours.runs.last()?.1;
        let ratio = best.and_then(|best| {
            let paired = ours.runs.iter().filter(|(rival, _)| *rival == Some(best));
            let pairs = rivals[best].seconds.iter().zip(paired);
            let spread = Summary::from_values(pairs.map(|(rival, (_, run))| rival / run.seconds))?;
            Some(Ratio { to: rivals[best].name.clone(), spread })
        });
        let phase = |(at, (name, _)): (usize, &(String, f64))| {
            let all = ours.runs.iter().filter_map(|(_, run)| Some(run.phases.get(at)?.1));
            Some(Phase { name: name.clone(), seconds: Summary::from_values(all)?.median })
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
    fn from_runs(runs: &RivalRuns) -> Self {
        Self {
            name: runs.name.clone(),
            version: runs.version.clone(),
            way: runs.way.clone(),
            seconds: Summary::from_values(runs.seconds.clone()),
            failure: runs.failure.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::contest::ContestOutcome;

    fn measured() -> ContestRuns {
        let run =
            |rival, seconds| (Some(rival), ContestOutcome { seconds, ..ContestOutcome::default() });
        let runs = vec![run(0, 1.0), run(1, 2.0), run(0, 1.0), run(1, 1.0)];
        let rival = |name: &str, seconds: [f64; 2]| RivalRuns {
            name: name.to_owned(),
            seconds: seconds.to_vec(),
            ..RivalRuns::default()
        };
        ContestRuns {
            ours: vec![OurRuns { name: "auto".to_owned(), runs }],
            rivals: vec![rival("slow", [9.0, 8.0]), rival("fast", [4.0, 4.0])],
            bandwidths: vec![Bandwidth { read: 10.0, copy: 5.0 }],
        }
    }

    #[test]
    fn ratios_are_to_the_best_rival_pair_by_pair() {
        let case = Case::from_runs(Value::Null, (Bound::Read, 5_000_000_000), &measured()).unwrap();
        let ours = &case.ours[0];
        let seconds = ours.seconds;
        assert_eq!((seconds.median, seconds.most, seconds.runs), (1.0, 2.0, 4));
        let subjects: Vec<&str> = case.measurements.iter().map(|it| it.subject.as_str()).collect();
        assert_eq!(subjects, ["atoll auto", "slow", "fast"]);
        let ratio = ours.ratio.as_ref().unwrap();
        assert_eq!((ratio.to.as_str(), ratio.spread.least, ratio.spread.most), ("fast", 2.0, 4.0));
        assert_eq!((case.limit.seconds, ours.share_of_limit, ours.gb_per_s), (0.5, 0.5, 5.0));
    }

    #[test]
    fn without_rivals_there_is_no_ratio() {
        let alone = ContestRuns { rivals: Vec::new(), ..measured() };
        let case = Case::from_runs(Value::Null, (Bound::Copy, 1), &alone).unwrap();
        assert!(case.ours[0].ratio.is_none());
        assert!(Case::from_runs(Value::Null, (Bound::Copy, 1), &ContestRuns::default()).is_none());
    }
}
