//! The processes of a target, as they come and go.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use atoll_process::inspect::{InspectError, ProcessId, Target, descendants, find, identify};
use atoll_sys::{Root, thread_cpu_time};

/// Minimum time between two searches for new processes.
const EVERY: Duration = Duration::from_millis(500);
/// Minimum pause after a search, as a multiple of its cost: a fifth of a percent of a cpu.
const COST: u32 = 500;

/// The target that a user names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElasticTarget {
    /// A process and all its descendants.
    Process(u32),
    /// A control group and those below it.
    Cgroup(String),
    /// A unit of systemd, and its control group.
    Unit {
        /// Its name.
        unit: String,
        /// Its group.
        group: String,
    },
}

impl fmt::Display for ElasticTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "process {pid}"),
            Self::Cgroup(path) => write!(f, "control group {path}"),
            Self::Unit { unit, .. } => f.write_str(unit),
        }
    }
}

/// Finds the processes.
#[derive(Debug)]
pub struct TargetProcesses {
    root: Root,
    target: ElasticTarget,
    known: BTreeSet<ProcessId>,
    next: Duration,
}

impl TargetProcesses {
    /// Follows an existing target.
    pub fn open(root: Root, target: ElasticTarget) -> Result<Self, InspectError> {
        let mut processes = Self { root, target, known: BTreeSet::new(), next: Duration::ZERO };
        processes.known = processes.find()?;
        Ok(processes)
    }

    /// The target.
    pub fn target(&self) -> &ElasticTarget {
        &self.target
    }

    fn find(&self) -> Result<BTreeSet<ProcessId>, InspectError> {
        match &self.target {
            ElasticTarget::Process(pid) => {
                // Known processes remain even if their parent has ended.
                let mut ancestors: BTreeSet<ProcessId> = self.alive();
                if self.known.is_empty() {
                    ancestors.insert(identify(&self.root, *pid)?);
                }
                let ancestors: Vec<ProcessId> = ancestors.into_iter().collect();
                Ok(descendants(&self.root, &ancestors)?.into_iter().collect())
            }
            ElasticTarget::Cgroup(path) | ElasticTarget::Unit { group: path, .. } => {
                let found = find(&self.root, &Target::Cgroup(path.clone()), None)?;
                Ok(found.into_iter().collect())
            }
        }
    }

    fn alive(&self) -> BTreeSet<ProcessId> {
        let is_there = |id: &&ProcessId| identify(&self.root, id.pid).ok() == Some(**id);
        self.known.iter().filter(is_there).copied().collect()
    }

    /// Makes the next call search regardless of cost: all known processes have ended.
    pub(super) fn look_anew(&mut self) {
        self.next = Duration::ZERO;
    }

    /// The processes now; empty once all have ended.
    pub fn now(&mut self, at: Duration) -> Result<Vec<ProcessId>, InspectError> {
        if at >= self.next {
            let before = thread_cpu_time();
            let found = match self.find() {
                // An empty group has ended, like a removed one.
                Err(InspectError::EmptyGroup { .. } | InspectError::NoGroup { .. }) => {
                    Ok(BTreeSet::new())
                }
                Err(error) if error.is_end() => Ok(BTreeSet::new()),
                found => found,
            };
            self.known = found?;
            let cost = thread_cpu_time().saturating_sub(before);
            self.next = at + EVERY.max(cost * COST);
        }
        Ok(self.known.iter().copied().collect())
    }
}
