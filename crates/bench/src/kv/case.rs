//! A case: one process that loads a database, or reads and writes one, under a placement; and what it found.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::engine::{EngineName, EngineOptions};
use super::records::{Contents, Records};
use crate::latency::LatencyPercentiles;
use crate::trials::{PlacementSeen, TrialCase};

/// What the process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "work")]
pub(super) enum KvWork {
    /// Nothing: the engine opens and closes an empty database.
    Probe,
    /// One thread puts all records.
    Load { random: bool },
    /// One thread writes and others read, all at random.
    ReadWhileWriting { readers: u32 },
}

/// A case by its settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct KvCase {
    pub(super) engine: EngineName,
    /// The placement strategy.
    pub(super) arm: String,
    /// From 0.
    pub(super) run: u32,
    #[serde(flatten)]
    pub(super) work: KvWork,
}

impl fmt::Display for KvWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Probe => f.pad("probe"),
            Self::Load { random: false } => f.pad("load sequential"),
            Self::Load { random: true } => f.pad("load random"),
            Self::ReadWhileWriting { readers } => f.pad(&format!("readers {readers}")),
        }
    }
}

impl fmt::Display for KvCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, arm, work, .. } = self;
        write!(f, "{}, {arm}, {work}", engine.name())
    }
}

impl TrialCase for KvCase {
    fn key(&self) -> String {
        let Self { engine, arm, run, work } = self;
        format!("{} {arm} {run} {work}", engine.name())
    }
}

/// A line in: what to do, and with what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KvRequest {
    pub(super) engine: EngineName,
    pub(super) arm: String,
    pub(super) work: KvWork,
    pub(super) records: Records,
    pub(super) options: EngineOptions,
    pub(super) seconds: f64,
    /// Number of the newest write that the database has.
    pub(super) written: u64,
    /// Whether all records are looked at afterwards.
    pub(super) is_checked: bool,
}

/// A line out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct KvAnswer {
    pub(super) version: String,
    pub(super) settings: String,
    pub(super) usage: KvUsage,
    pub(super) placement: PlacementSeen,
    pub(super) writes: Option<KvRate>,
    pub(super) reads: Option<KvRate>,
    /// All records, if they were looked at.
    pub(super) contents: Option<Contents>,
}

/// The columns of the report: of the work and of closing afterwards, without opening and checks.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct KvUsage {
    pub(super) wall_s: f64,
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    /// Space that the files take, after closing.
    pub(super) database_kb: u64,
    /// Largest resident memory of the process.
    pub(super) process_kb: u64,
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
}

/// What one side did while the clock ran.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct KvRate {
    pub(super) count: u64,
    pub(super) per_s: f64,
    /// Milliseconds, as they were.
    pub(super) latency: Option<LatencyPercentiles>,
    /// Milliseconds, corrected for coordinated omission at the mean rate of a thread.
    pub(super) corrected: Option<LatencyPercentiles>,
}

impl KvUsage {
    /// Of one cpu.
    pub(super) fn cpu_percent(&self) -> f64 {
        (self.user_s + self.system_s) / self.wall_s.max(1e-9) * 100.0
    }

    /// Database and process; a mapped file once.
    pub(super) fn total_kb(&self, engine: EngineName) -> u64 {
        match engine.is_mapped() {
            true => self.database_kb.max(self.process_kb),
            false => self.database_kb + self.process_kb,
        }
    }
}
