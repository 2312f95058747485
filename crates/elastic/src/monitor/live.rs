//! A target on the running machine.

use std::time::Duration;

use atoll_process::inspect::{InspectError, NodeMap, ProcessId};
use atoll_sys::{Root, process_cpu_time_of};
use atoll_topology::Machine;

use super::accessed::AccessMonitor;
use super::pressure::PressureMonitor;
use super::traffic::TrafficMonitor;
use super::work::WorkCounter;
use super::{
    ElasticTarget, MonitorState, Pressure, TargetProcesses, TargetSource, Traffic, WorkKind,
    WorkReading,
};
use crate::mode::PageQueue;

/// Reads procfs, control groups and clocks.
#[derive(Debug)]
pub struct LiveTarget {
    root: Root,
    processes: TargetProcesses,
    now: Vec<ProcessId>,
    work: WorkCounter,
    accessed: AccessMonitor,
    pressure: PressureMonitor,
    traffic: TrafficMonitor,
}

impl LiveTarget {
    /// Monitors an existing target.
    pub fn open(
        root: &Root,
        machine: &Machine,
        target: ElasticTarget,
        work: WorkKind,
    ) -> Result<Self, InspectError> {
        let nodes = NodeMap::read(root, machine);
        Ok(Self {
            root: root.clone(),
            processes: TargetProcesses::open(root.clone(), target)?,
            now: Vec::new(),
            work: WorkCounter::new(work),
            accessed: AccessMonitor::new(nodes, machine.page_size.0.max(1)),
            pressure: PressureMonitor::default(),
            traffic: TrafficMonitor::default(),
        })
    }
}

impl TargetSource for LiveTarget {
    fn processes(&mut self, at: Duration) -> Result<Vec<ProcessId>, InspectError> {
        let has_ended = |id: &ProcessId| process_cpu_time_of(id.pid).is_err();
        if self.now.iter().all(has_ended) {
            self.processes.look_anew();
        }
        self.now = self.processes.now(at)?;
        Ok(self.now.clone())
    }

    fn cpu_time(&mut self, process: ProcessId) -> Option<Duration> {
        process_cpu_time_of(process.pid).ok()
    }

    fn work(&mut self, at: Duration) -> WorkReading {
        self.work.read(at, &self.root, &self.now)
    }

    fn pages(&mut self, at: Duration) -> Option<PageQueue> {
        self.accessed.look(at, &self.root, &self.now)
    }

    fn pressure(&mut self, at: Duration) -> Option<Pressure> {
        self.pressure.look(at, &self.root, self.now.first().copied())
    }

    fn traffic(&mut self, at: Duration) -> Option<Traffic> {
        self.traffic.look(at, &self.root)
    }

    fn states(&self) -> Vec<MonitorState> {
        let load =
            MonitorState::real("cpu load", "the cpu clock of each process, to the nanosecond");
        let mut states = vec![load, self.work.state(), self.accessed.state()];
        states.extend(self.pressure.states());
        states.push(self.traffic.state(&self.root));
        states
    }
}
