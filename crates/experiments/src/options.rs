//! How the experiments are run.

use atoll_placement::Strategy;
use atoll_topology::Bytes;

use crate::{Kind, Operation, PlanError};

/// Most accesses of a thread in one run.
pub const ACCESSES_MAX: u64 = 1 << 40;
/// Largest divisor of the arrays.
pub const SCALE_MAX: u32 = 4096;
/// Most repetitions.
const REPETITIONS_MAX: u32 = 1000;
/// Most slices of a run: enough for a plot.
const SLICES_MAX: u32 = 1000;
/// Most threads of a run, and most migrations.
const THREADS_MAX: u32 = 4096;
const MIGRATIONS_MAX: u32 = 1_000_000;
/// Largest array.
const SIZE_MAX: u64 = 1 << 42;

/// Between what threads are dealt out and migrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// Nodes.
    Node,
    /// Domains: the cores of one last-level cache.
    Domain,
}

impl By {
    /// Its name in the plural.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Node => "nodes",
            Self::Domain => "domains",
        }
    }
}

/// Where the threads of a group run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrangement {
    /// All on one node or domain (Kiefer 2013, figure 3a).
    CoLocated,
    /// Dealt out over all of them (figure 3b).
    RoundRobin,
}

impl Arrangement {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::CoLocated => "co-located",
            Self::RoundRobin => "round-robin",
        }
    }
}

/// A run that is none of Kiefer's four.
#[derive(Clone, Debug, PartialEq)]
pub struct Custom {
    /// Groups; each has an array.
    pub groups: u32,
    /// Threads of each group.
    pub threads: u32,
    /// Sizes of the arrays; every size is an arm.
    pub sizes: Vec<Bytes>,
    /// Operations; every one is an arm.
    pub operations: Vec<Operation>,
    /// Numbers of migrations; every one is an arm.
    pub migrations: Vec<u32>,
    /// Arrangements; every one is an arm.
    pub arrangements: Vec<Arrangement>,
    /// Where the arrays lie, seen from the group's node; every one is an arm.
    pub placements: Vec<Strategy>,
    /// Whether each group is its own process.
    pub processes: bool,
}

/// How runs are made.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentOptions {
    /// Divides the size of every array.
    pub scale: u32,
    /// Repetitions of each arm; the median counts.
    pub repetitions: u32,
    /// Accesses of each thread in a repetition: one number, or one for each of the four experiments;
    /// chosen by the machine's speed if empty.
    pub accesses: Vec<u64>,
    /// Parts of a run that are timed one by one.
    pub slices: u32,
    /// Accesses after which threads that share a cache wait for each other; 0 lets them run free. An
    /// emulator with fewer cpus than the guest runs them in long turns, which no machine does.
    pub turn: u64,
    /// Migrations of experiments 2 and 3 instead of 0 and 100.
    pub migrations: Option<Vec<u32>>,
    /// Between what threads are dealt out and migrate; by default nodes, and in experiment 4 domains
    /// where there is one node only.
    pub by: Option<By>,
    /// Whether accesses wait for each other.
    pub kind: Kind,
    /// Seed of the random places.
    pub seed: u64,
}

impl Default for ExperimentOptions {
    fn default() -> Self {
        Self {
            scale: 1,
            repetitions: 3,
            accesses: Vec::new(),
            slices: 50,
            turn: 0,
            migrations: None,
            by: None,
            kind: Kind::Independent,
            seed: 1,
        }
    }
}

impl ExperimentOptions {
    /// # Errors
    /// [`PlanError::Options`] for numbers out of bounds.
    pub fn check(&self) -> Result<(), PlanError> {
        within("the scale", u64::from(self.scale), 1, u64::from(SCALE_MAX))?;
        within("repetitions", u64::from(self.repetitions), 1, u64::from(REPETITIONS_MAX))?;
        within("slices", u64::from(self.slices), 1, u64::from(SLICES_MAX))?;
        within("a turn", self.turn, 0, ACCESSES_MAX)?;
        if !matches!(self.accesses.len(), 0 | 1 | 4) {
            let message = "give one number of accesses, or four: one for each experiment";
            return Err(PlanError::Options(message.to_owned()));
        }
        for accesses in &self.accesses {
            within("accesses", *accesses, 1, ACCESSES_MAX)?;
        }
        self.migrations.iter().flatten().try_for_each(|count| migrations(*count))
    }
}

impl ExperimentOptions {
    /// Accesses of each thread in an experiment; None if the machine's speed decides.
    pub(crate) fn accesses_of(&self, experiment: u8) -> Option<u64> {
        let own = usize::from(experiment.saturating_sub(1)) % self.accesses.len().max(1);
        self.accesses.get(own).copied()
    }
}

impl Custom {
    /// # Errors
    /// [`PlanError::Options`] for numbers out of bounds.
    pub fn check(&self, kind: Kind) -> Result<(), PlanError> {
        within("groups", u64::from(self.groups), 1, u64::from(THREADS_MAX))?;
        let threads = u64::from(self.groups) * u64::from(self.threads);
        within("threads in all", threads, 1, u64::from(THREADS_MAX))?;
        for size in &self.sizes {
            within("the size in bytes", size.0, 1, SIZE_MAX)?;
        }
        self.migrations.iter().try_for_each(|count| migrations(*count))?;
        if kind == Kind::Dependent && self.operations.contains(&Operation::Write) {
            return Err(PlanError::Options(DEPENDENT_WRITES.to_owned()));
        }
        if self.placements.contains(&Strategy::Replicate) {
            let reason = "an array has one home; 'replicate' keeps a copy on every node, which is as \
                          fast as 'aligned' with one group on each node";
            return Err(PlanError::Options(reason.to_owned()));
        }
        Ok(())
    }
}

/// Why there are none.
pub(crate) const DEPENDENT_WRITES: &str =
    "dependent accesses are reads: a store has nothing that the next one could wait for";

fn migrations(count: u32) -> Result<(), PlanError> {
    within("migrations", u64::from(count), 0, u64::from(MIGRATIONS_MAX))
}

fn within(what: &str, number: u64, min: u64, max: u64) -> Result<(), PlanError> {
    match (min..=max).contains(&number) {
        true => Ok(()),
        false => {
            Err(PlanError::Options(format!("{what}: {number} is not between {min} and {max}")))
        }
    }
}
