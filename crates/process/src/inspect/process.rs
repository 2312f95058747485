//! A process in a snapshot.

use std::time::Duration;

use atoll_topology::NodeSet;

use super::node_row::{NodeRow, rows};
use super::nodes::NodeMap;
use super::process_memory::ProcessMemory;
use super::target::ProcessId;
use super::threads::Thread;

/// A process.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Number and start.
    pub id: ProcessId,
    /// Its name: any bytes.
    pub name: String,
    /// One letter, as in `ps`.
    pub state: char,
    /// Its user's number.
    pub user: Option<u32>,
    /// Nodes it may allocate from (its cpuset).
    pub nodes_allowed: NodeSet,
    /// Number of threads.
    pub threads_total: u64,
    /// The threads read, ordered by number.
    pub threads: Vec<Thread>,
    /// Where its memory is; `None` if not requested or unknown.
    pub memory: Option<ProcessMemory>,
    /// Time since the memory was read: its cost limits how often it is read.
    pub memory_age: Duration,
}

impl Process {
    /// Every node, with the threads and memory of the process on it.
    pub fn nodes(&self, nodes: &NodeMap) -> Vec<NodeRow> {
        let bytes = self.memory.as_ref().map(ProcessMemory::by_node).unwrap_or_default();
        rows(self.threads.iter(), &bytes, nodes)
    }

    /// Cpu usage of its threads, in cpus.
    pub fn cpu_share(&self) -> f64 {
        self.threads.iter().filter_map(|thread| thread.cpu_share).sum()
    }
}
