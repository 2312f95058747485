//! What a join tells of itself.

use atoll_runtime::StepReport;

/// Which side the tables are built of; the other one probes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildSide {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// How a hash join was done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JoinVariant {
    /// An array of payloads by key, over so many keys.
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
        /// Share of a sample of probing rows that the filter of build keys let through, where the
        /// filter was used.
        passed: Option<f64>,
    },
}

/// What a join did.
#[derive(Clone, Debug)]
pub struct JoinReport {
    /// How it was done.
    pub variant: JoinVariant,
    /// Why.
    pub reason: String,
    /// Which side the tables were built of: the one with fewer rows.
    pub build: BuildSide,
    /// Its steps in their order, with time and traffic.
    pub steps: Vec<StepReport>,
}

/// What a join came to.
#[derive(Clone, Debug)]
pub struct Joined<C> {
    /// What the workers' [`Matches`](super::Matches) were told, by worker.
    pub consumers: Vec<C>,
    /// What it did.
    pub report: JoinReport,
}
