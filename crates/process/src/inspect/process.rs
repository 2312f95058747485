//! What one look found of a process.

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
    /// One letter, as `ps` has them.
    pub state: char,
    /// Its user's number.
    pub user: Option<u32>,
    /// Nodes it may allocate from (its cpuset).
    pub nodes_allowed: NodeSet,
    /// Threads it has.
    pub threads_total: u64,
    /// Those that were read, ordered by number.
    pub threads: Vec<Thread>,
    /// Where its memory is; none where that was not asked or cannot be told.
    pub memory: Option<ProcessMemory>,
    /// How long before this look the memory was read: reading is paced by what it costs.
    pub memory_age: Duration,
}

impl Process {
    /// Every node, with what of the process lives on it.
    pub fn nodes(&self, nodes: &NodeMap) -> Vec<NodeRow> {
        let bytes = self.memory.as_ref().map(ProcessMemory::by_node).unwrap_or_default();
        rows(self.threads.iter(), &bytes, nodes)
    }

    /// Cpus' worth of time that its threads use.
    pub fn cpu_share(&self) -> f64 {
        self.threads.iter().filter_map(|thread| thread.cpu_share).sum()
    }
}
