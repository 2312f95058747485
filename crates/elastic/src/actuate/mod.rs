//! Cores given and taken: control groups of either version, systemd's units, or the affinity of every
//! thread; the journal of what was changed, and its undoing.
//!
//! | Actuator | Where | What it changes |
//! |---|---|---|
//! | [`GroupActuator`] | a cpuset controller that may be written | `cpuset.cpus` of a group that it makes, or of the group that the user named |
//! | [`UnitActuator`] | units of systemd | the run-time property `AllowedCPUs` of the unit |
//! | [`AffinityActuator`] | everywhere else | the affinity of every thread, those born later included |
//!
//! Safe state first: what is about to be changed is in the journal, synced, before it is changed
//! ([`Journal`]); what another program changes in the meantime is that program's and left alone; all is
//! restored when the run ends, and by [`undo`] where the run could not.

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

/// What an act came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Threads that were bound by this act; none where a group does it for all.
    pub threads: usize,
    /// What is to be known about it, a sentence each; said once.
    pub notes: Vec<String>,
}

/// One way to give cores.
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
    /// Lets the processes run on these cpus only. Called again with the same cpus it looks for
    /// processes and threads that came since.
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

    /// Gives everything back. Tells what could not be.
    pub fn restore(&mut self) -> Vec<String> {
        match self {
            Self::Affinity(actuator) => actuator.restore(),
            Self::Group(actuator) => actuator.restore(),
            Self::Unit(actuator) => actuator.restore(),
        }
    }

    /// Which one it is, for people.
    pub fn words(&self) -> String {
        match self {
            Self::Affinity(_) => "affinity of every thread".to_owned(),
            Self::Group(actuator) => format!("cpuset of {}", actuator.path()),
            Self::Unit(actuator) => format!("AllowedCPUs of {}", actuator.name()),
        }
    }
}
