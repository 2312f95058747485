//! Measurements of a target, each with its source: direct, or a declared fallback.
//!
//! | File | Reads | Finds |
//! |---|---|---|
//! | `processes` | the target's name, `/proc`, control groups | its processes, as they come and go |
//! | `meter` | the cpu clock of each process | cpus of time that it uses: the load |
//! | `work` | a command's counter, system calls in `/proc/PID/io`, or cpu time again | performance |
//! | `accessed` | NUMA hint faults of each thread in `/proc/PID/task/TID/sched`, else resident pages | pages by node |
//! | `pressure` | pressure of the control group or the machine (PSI), quota, stolen time | limits that more cores cannot lift |
//! | `traffic` | bytes to and from memory of each last-level cache (resctrl) | the load of controllers and links |
//! | `live` | all of these | [`TargetSource`] of the running machine |
//!
//! Reading is paced: clocks at every look, everything else when its last measured cost is a small share of the time
//! since.

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

/// Whether a monitor measures its quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MonitorSource {
    /// It does.
    Real,
    /// It measures a substitute.
    Fallback,
    /// It measures nothing here.
    Absent,
}

/// The state of a monitor.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MonitorState {
    /// The quantity.
    pub monitor: &'static str,
    /// Whether it measures that.
    pub source: MonitorSource,
    /// The source, and how to get a better one.
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

/// Measurements of a target, as a trait, so that tests can model it.
pub trait TargetSource {
    /// Its processes now; empty once it has ended.
    fn processes(&mut self, at: Duration) -> Result<Vec<ProcessId>, InspectError>;

    /// Cpu time of a process; None if it has ended.
    fn cpu_time(&mut self, process: ProcessId) -> Option<Duration>;

    /// Work done so far.
    fn work(&mut self, at: Duration) -> WorkReading;

    /// Pages accessed by node, if there is a new figure.
    fn pages(&mut self, at: Duration) -> Option<PageQueue>;

    /// Pressure on the target, if there is a new figure.
    fn pressure(&mut self, at: Duration) -> Option<Pressure>;

    /// Memory traffic so far, if there is a new figure.
    fn traffic(&mut self, at: Duration) -> Option<Traffic>;

    /// The states of the monitors.
    fn states(&self) -> Vec<MonitorState>;
}
