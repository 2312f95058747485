//! Assigns and releases cores by control groups of either version, systemd units, or the affinity of every thread;
//! keeps the journal of changes, and undoes them.
//!
//! | Actuator | Where | What it changes |
//! |---|---|---|
//! | [`GroupActuator`] | a cpuset controller that may be written | `cpuset.cpus` of a group that it makes, or of the group that the user named |
//! | [`UnitActuator`] | units of systemd | the run-time property `AllowedCPUs` of the unit |
//! | [`AffinityActuator`] | everywhere else | the affinity of every thread, those born later included |
//!
//! Safety first: every change is in the journal, synced, before it is made ([`Journal`]); changes of other programs are
//! left alone; everything is restored when the run ends, or by [`undo`] if the run could not.

mod affinity;
mod calls;
mod error;
mod group;
mod mover;
mod undo;
mod unit;

use atoll_process::inspect::ProcessId;
use atoll_topology::CpuSet;

pub use affinity::AffinityActuator;
pub use calls::{LiveThreads, ThreadCalls, ThreadId};
pub use error::ActuateError;
pub use group::{GroupActuator, GroupPlan, GroupVersion};
pub use mover::{LivePageCalls, PageCalls, PageMover};
pub use undo::{Undone, undo};
pub use unit::{LiveUnits, UnitActuator, UnitCalls};

pub use crate::journal::{FoundJournal, Journal, JournalDirectory, JournalError, Record};

/// Result of an act.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Threads bound by this act; None if a group does it for all.
    pub threads: usize,
    /// Notes for the user, a sentence each; reported once.
    pub notes: Vec<String>,
}

/// A way to assign cores.
#[derive(Debug)]
pub enum Actuator {
    /// By the affinity of every thread.
    Affinity(AffinityActuator),
    /// By a control group.
    Group(GroupActuator),
    /// By a unit of systemd.
    Unit(UnitActuator),
}

impl Actuator {
    /// Restricts the processes to these cpus. Called again with the same cpus, it looks for new processes and threads.
    pub fn apply(
        &mut self,
        journal: &mut Journal,
        processes: &[ProcessId],
        cpus: &CpuSet,
    ) -> Result<Applied, ActuateError> {
        match self {
            Self::Affinity(actuator) => actuator.apply(journal, processes, cpus),
            Self::Group(actuator) => actuator.apply(journal, processes, cpus),
            Self::Unit(actuator) => actuator.apply(journal, cpus),
        }
    }

    /// Restores everything. Returns failures.
    pub fn restore(&mut self) -> Vec<String> {
        match self {
            Self::Affinity(actuator) => actuator.restore(),
            Self::Group(actuator) => actuator.restore(),
            Self::Unit(actuator) => actuator.restore(),
        }
    }

    /// Its name, for people.
    pub fn words(&self) -> String {
        match self {
            Self::Affinity(_) => "affinity of every thread".to_owned(),
            Self::Group(actuator) => format!("cpuset of {}", actuator.path()),
            Self::Unit(actuator) => format!("AllowedCPUs of {}", actuator.name()),
        }
    }
}
