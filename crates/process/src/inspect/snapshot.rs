//! The result of one look.

use std::collections::BTreeMap;
use std::time::Duration;

use super::bytes::{NodeBytes, add_all};
use super::memory::together;
use super::missing::Missing;
use super::node_row::{NodeRow, rows};
use super::nodes::NodeMap;
use super::process::Process;
use super::procfs::kernel::Balancing;
use super::procfs::maps::MappingKind;
use super::target::ProcessId;
use super::threads::Thread;
use super::union::{Union, United};

/// The result of one look.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The processes, ordered by number.
    pub processes: Vec<Process>,
    /// Processes that ended since the previous look.
    pub ended: Vec<ProcessId>,
    /// Memory of all processes by kind and node; shared objects count once.
    pub memory: BTreeMap<MappingKind, NodeBytes>,
    /// How the shared objects were counted.
    pub union: Union,
    /// Every node, with its threads and memory.
    pub nodes: Vec<NodeRow>,
    /// Number of threads read in this look; the others are from earlier looks.
    pub threads_read: u64,
    /// Automatic balancing.
    pub balancing: Balancing,
    /// Information that could not be read.
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

    /// PSS of all processes; `None` unless it is known for each.
    pub fn proportional(&self) -> Option<u64> {
        let memories = self.processes.iter().filter_map(|process| process.memory.as_ref());
        memories.map(|memory| memory.proportional).sum()
    }

    /// Age of the oldest memory figures.
    pub fn memory_age(&self) -> Duration {
        self.processes.iter().map(|process| process.memory_age).max().unwrap_or_default()
    }

    /// Every thread that was read, with its process.
    pub fn threads(&self) -> impl Iterator<Item = (&Process, &Thread)> {
        self.processes
            .iter()
            .flat_map(|process| process.threads.iter().map(move |thread| (process, thread)))
    }

    /// Resident bytes by node, of the chosen kinds.
    pub fn bytes_of(&self, chosen: impl Fn(MappingKind) -> bool) -> NodeBytes {
        let mut sum = NodeBytes::new();
        for (kind, bytes) in &self.memory {
            if chosen(*kind) {
                add_all(&mut sum, bytes);
            }
        }
        sum
    }

    /// Sums over the processes.
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
