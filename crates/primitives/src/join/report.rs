//! Report of a join.

use atoll_runtime::StepReport;

/// The build side; the other one probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildSide {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// Variant of a hash join.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JoinVariant {
    /// An array of payloads by key, over this many keys.
    Direct {
        /// From the least key to the greatest.
        keys: u64,
    },
    /// One hash table.
    OneTable,
    /// Both sides in pieces.
    Pieces {
        /// Number of pieces of each side.
        pieces: usize,
        /// Share of a sample of probe rows that passed the filter of build keys, if the filter was used.
        passed: Option<f64>,
    },
}

/// Report of a join's execution.
#[derive(Clone, Debug)]
pub struct JoinReport {
    /// The variant.
    pub variant: JoinVariant,
    /// The reason.
    pub reason: String,
    /// The build side: the one with fewer rows.
    pub build: BuildSide,
    /// Its steps in order, with time and traffic.
    pub steps: Vec<StepReport>,
}

/// Result of a join.
#[derive(Clone, Debug)]
pub struct Joined<C> {
    /// The workers' [`Matches`](super::Matches), by worker.
    pub consumers: Vec<C>,
    /// The report.
    pub report: JoinReport,
}
