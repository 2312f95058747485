//! The results.

use std::collections::BTreeMap;

use atoll_topology::{NodeId, quantile};
use serde::{Deserialize, Serialize};

use crate::{Arm, ExperimentManifest, PlanRow};

/// The report of a benchmark run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExperimentResults {
    /// Conditions.
    pub manifest: ExperimentManifest,
    /// Arms, in the order of the run.
    pub arms: Vec<ArmOutcome>,
    /// Which arms belong together.
    pub rows: Vec<PlanRow>,
    /// What could not be run, and other things to know.
    pub notes: Vec<String>,
}

/// The results of an arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArmOutcome {
    /// What was run.
    pub arm: Arm,
    /// Accesses of each thread in a repetition.
    pub accesses: u64,
    /// Time of an access in ns, over all threads, migrations and waits for each other included; none
    /// where the run failed.
    pub ns: Option<RepeatedFigure>,
    /// The same of each repetition.
    pub runs_ns: Vec<f64>,
    /// Where the arrays were at the end.
    pub achieved: Achieved,
    /// The last-level cache, if the processor counts it.
    pub cache: Option<CacheLoads>,
    /// Why it has none.
    pub cache_missing: Option<String>,
    /// Times that threads changed their cpu, by the kernel's word, over all repetitions.
    pub migrations_counted: Option<u64>,
    /// Times that threads were taken off their cpus.
    pub switches_counted: Option<u64>,
    /// The last repetition over time.
    pub series: Vec<Slice>,
    /// Why the run failed.
    pub failure: Option<String>,
}

/// Repetitions of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepeatedFigure {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl RepeatedFigure {
    /// Returns None without values, or if one is not finite.
    pub fn from_values(mut values: Vec<f64>) -> Option<Self> {
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let median = quantile(&values, 0.5)?;
        Some(Self { median, min: values[0], max: values[values.len() - 1] })
    }
}

/// Where pages are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Achieved {
    /// Pages seen, by node.
    pub pages: BTreeMap<NodeId, u64>,
    /// Pages that are where they were requested; all if nothing was requested.
    pub pages_home: u64,
    /// Pages looked at.
    pub pages_seen: u64,
}

impl Achieved {
    /// Share of the pages that are where they were wanted; None if no page was seen.
    pub fn share(&self) -> Option<f64> {
        (self.pages_seen > 0).then(|| self.pages_home as f64 / self.pages_seen as f64)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (node, pages) in &other.pages {
            *self.pages.entry(*node).or_insert(0) += pages;
        }
        self.pages_home += other.pages_home;
        self.pages_seen += other.pages_seen;
    }
}

/// Counts of the last-level cache over all threads and repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLoads {
    /// Loads that reached it.
    pub loads: u64,
    /// Of those, the ones that missed.
    pub misses: u64,
}

impl CacheLoads {
    /// Share of the loads that hit; None if there was no load.
    pub fn hit_rate(self) -> Option<f64> {
        (self.loads > 0).then(|| 1.0 - self.misses as f64 / self.loads as f64)
    }
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Time of an access in ns, over all threads.
    pub ns: f64,
    /// Share of the loads of the last-level cache that hit, with counters.
    pub hit_rate: Option<f64>,
}
