//! What is seen of a target, each figure with where it comes from: real, or a fallback that says so.
//!
//! | File | Reads | Finds |
//! |---|---|---|
//! | `processes` | what the user named, `/proc`, control groups | the processes that are meant, as they come and go |
//! | `meter` | the cpu clock of each process | the cpus' worth of time that it uses: the load |
//! | `work` | a command's counter, system calls in `/proc/PID/io`, or that time again | performance |
//! | `accessed` | NUMA hint faults of each thread in `/proc/PID/task/TID/sched`, else resident pages | pages by node |
//! | `pressure` | pressure of the control group or the machine (PSI), quota, time stolen | what cores cannot help against |
//! | `traffic` | bytes to and from memory of each last-level cache (resctrl) | the load of controllers and links |
//! | `live` | all of these together | [`TargetSource`] of the running machine |
//!
//! Reading is paced: clocks at every look, everything else when its cost since the last time, as measured,
//! is a small share of the time that has passed.

mod accessed;
mod live;
mod meter;
mod pressure;
mod processes;
mod traffic;
mod work;

use std::time::Duration;

use atoll_process::inspect::{InspectError, ProcessId};

use crate::mode::PageQueue;

pub use live::LiveTarget;
pub use meter::LoadMeter;
pub use pressure::Pressure;
pub use processes::{ElasticTarget, TargetProcesses};
pub use traffic::{LoadKind, Traffic, traffic_by_cache};
pub use work::{WorkKind, WorkReading};

/// Whether a monitor sees what it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MonitorSource {
    /// It does.
    Real,
    /// It sees something else that stands for it.
    Fallback,
    /// It sees nothing here.
    Absent,
}

/// A monitor and what it has to say of itself.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MonitorState {
    /// What is asked for.
    pub monitor: &'static str,
    /// Whether that is what it sees.
    pub source: MonitorSource,
    /// Where it comes from, and what would make it better.
    pub says: String,
}

impl MonitorState {
    pub(crate) fn real(monitor: &'static str, says: impl Into<String>) -> Self {
        Self { monitor, source: MonitorSource::Real, says: says.into() }
    }

    pub(crate) fn fallback(monitor: &'static str, says: impl Into<String>) -> Self {
        Self { monitor, source: MonitorSource::Fallback, says: says.into() }
    }

    pub(crate) fn absent(monitor: &'static str, says: impl Into<String>) -> Self {
        Self { monitor, source: MonitorSource::Absent, says: says.into() }
    }
}

/// What can be asked of a target, behind a trait, so that tests can model one.
pub trait TargetSource {
    /// Its processes now; none once it has ended.
    fn processes(&mut self, at: Duration) -> Result<Vec<ProcessId>, InspectError>;

    /// Time that a process has spent on cpus; none where it has ended.
    fn cpu_time(&mut self, process: ProcessId) -> Option<Duration>;

    /// Work done so far.
    fn work(&mut self, at: Duration) -> WorkReading;

    /// Pages accessed by node, where there is a new figure.
    fn pages(&mut self, at: Duration) -> Option<PageQueue>;

    /// What else bears on it, where there is a new figure.
    fn pressure(&mut self, at: Duration) -> Option<Pressure>;

    /// Memory traffic so far, where there is a new figure.
    fn traffic(&mut self, at: Duration) -> Option<Traffic>;

    /// What the monitors have to say of themselves.
    fn states(&self) -> Vec<MonitorState>;
}
