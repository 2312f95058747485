//! What one look found.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_topology::{CpuSet, NodeId, NodeSet};

use super::bytes::{NodeBytes, add_all};
use super::kernel::Balancing;
use super::maps::MappingKind;
use super::memory::{ProcessMemory, together};
use super::missing::Missing;
use super::nodes::NodeMap;
use super::target::ProcessId;
use super::threads::Thread;
use super::union::{Union, United};

/// What lives on a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    /// The node; none for threads and memory of which the node is not known.
    pub node: Option<NodeId>,
    /// Its cpus.
    pub cpus: CpuSet,
    /// Threads that last ran on it.
    pub threads: u64,
    /// Cpus' worth of time that they use.
    pub cpu_share: f64,
    /// Bytes resident on it.
    pub bytes: u64,
    /// Of all that is resident: what a thread that runs here has locally. Resident, not accessed.
    pub share: f64,
}

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

/// What one look found.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The processes, ordered by number.
    pub processes: Vec<Process>,
    /// Those that ended since the look before.
    pub ended: Vec<ProcessId>,
    /// Memory of all processes by kind and node; what they map as one counts once.
    pub memory: BTreeMap<MappingKind, NodeBytes>,
    /// How that was counted.
    pub union: Union,
    /// Every node, with what lives on it.
    pub nodes: Vec<NodeRow>,
    /// Threads read in this look; the others are as they were read before.
    pub threads_read: u64,
    /// Automatic balancing.
    pub balancing: Balancing,
    /// What could not be read.
    pub missing: Vec<Missing>,
}

impl Snapshot {
    /// Threads of all processes.
    pub fn threads_total(&self) -> u64 {
        self.processes.iter().map(|process| process.threads_total).sum()
    }

    /// Resident bytes of all processes.
    pub fn bytes(&self) -> u64 {
        self.nodes.iter().map(|row| row.bytes).sum()
    }

    /// PSS of all processes; none where it is not known of each.
    pub fn proportional(&self) -> Option<u64> {
        let memories = self.processes.iter().filter_map(|process| process.memory.as_ref());
        memories.map(|memory| memory.proportional).sum()
    }

    /// Age of the oldest figures on memory.
    pub fn memory_age(&self) -> Duration {
        self.processes.iter().map(|process| process.memory_age).max().unwrap_or_default()
    }

    /// Every thread that was read, with its process.
    pub fn threads(&self) -> impl Iterator<Item = (&Process, &Thread)> {
        self.processes
            .iter()
            .flat_map(|process| process.threads.iter().map(move |thread| (process, thread)))
    }

    /// Resident bytes by node, of the kinds chosen.
    pub fn bytes_of(&self, chosen: impl Fn(MappingKind) -> bool) -> NodeBytes {
        let mut sum = NodeBytes::new();
        for (kind, bytes) in &self.memory {
            if chosen(*kind) {
                add_all(&mut sum, bytes);
            }
        }
        sum
    }

    /// Adds up what the processes have.
    pub(super) fn sum_up(&mut self, nodes: &NodeMap, united: &United) {
        let memories = self.processes.iter().filter_map(|process| process.memory.as_ref());
        self.memory = together(memories, &united.bytes);
        self.union = united.how;
        self.missing.extend(united.missing.iter().cloned());
        let threads = self.processes.iter().flat_map(|process| &process.threads);
        self.nodes = rows(threads, &self.bytes_of(|_| true), nodes);
        self.missing.sort();
        self.missing.dedup();
    }
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

fn rows<'a>(
    threads: impl Iterator<Item = &'a Thread>,
    bytes: &NodeBytes,
    nodes: &NodeMap,
) -> Vec<NodeRow> {
    let empty = |node, cpus: &CpuSet| NodeRow {
        node,
        cpus: cpus.clone(),
        threads: 0,
        cpu_share: 0.0,
        bytes: 0,
        share: 0.0,
    };
    let mut rows: BTreeMap<Option<NodeId>, NodeRow> =
        nodes.nodes().map(|(node, cpus)| (Some(node), empty(Some(node), cpus))).collect();
    for thread in threads {
        let row = rows.entry(thread.node).or_insert_with(|| empty(thread.node, &CpuSet::default()));
        row.threads += 1;
        row.cpu_share += thread.cpu_share.unwrap_or(0.0);
    }
    let total = bytes.values().sum::<u64>().max(1) as f64;
    for (node, bytes) in bytes {
        let row = rows.entry(*node).or_insert_with(|| empty(*node, &CpuSet::default()));
        row.bytes = *bytes;
        row.share = *bytes as f64 / total;
    }
    // What is not known comes last.
    let mut rows: Vec<NodeRow> = rows.into_values().collect();
    rows.sort_by_key(|row| (row.node.is_none(), row.node));
    rows
}
