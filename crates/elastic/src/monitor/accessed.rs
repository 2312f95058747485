//! Pages that a target accesses, by node.
//!
//! With automatic NUMA balancing, the kernel occasionally unmaps pages to see which thread touches them, and counts
//! these faults for each thread and node: accessed pages, sampled by the kernel itself (`numa_faults` in
//! `/proc/PID/task/TID/sched`). Otherwise resident pages approximate accessed ones, which is right for data that is
//! read completely and wrong for idle data.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_process::inspect::{LivePages, MemoryOptions, NodeMap, ProcessId, memory};
use atoll_sys::{Root, thread_cpu_time};
use atoll_topology::NodeId;

use super::MonitorState;
use crate::mode::{AccessEntry, PageQueue};

/// Minimum time between two looks.
const EVERY: Duration = Duration::from_millis(500);
/// Minimum pause after a look, as a multiple of its cost: a fifth of a percent of a cpu.
const COST: u32 = 500;
/// Multiple at the start, while a program still allocates its memory.
const BEGINNING: Duration = Duration::from_secs(10);
const COST_FIRST: u32 = 10;
/// Maximum number of threads read in one look; the others keep their last values.
const THREADS_MAX: usize = 64;
/// Pages sampled in a process: half the width of the confidence interval is 2 %.
const SAMPLE_PAGES: u64 = 2_048;
/// Resident bytes up to which every page is counted.
const EXACT_BYTES_MAX: u64 = 256 << 20;

/// Measures accessed pages.
#[derive(Debug)]
pub(super) struct AccessMonitor {
    nodes: NodeMap,
    page_size: u64,
    threads: BTreeMap<(ProcessId, u32), BTreeMap<NodeId, u64>>,
    last: Option<(ProcessId, u32)>,
    next: Duration,
    is_faults: Option<bool>,
    denied: bool,
}

impl AccessMonitor {
    pub(super) fn new(nodes: NodeMap, page_size: u64) -> Self {
        Self {
            nodes,
            page_size,
            threads: BTreeMap::new(),
            last: None,
            next: Duration::ZERO,
            is_faults: None,
            denied: false,
        }
    }

    /// Pages by node; None before the next look is due.
    pub(super) fn look(
        &mut self,
        at: Duration,
        root: &Root,
        processes: &[ProcessId],
    ) -> Option<PageQueue> {
        if at < self.next {
            return None;
        }
        let before = thread_cpu_time();
        let queue = self.read(root, processes);
        let cost = thread_cpu_time().saturating_sub(before);
        let pause = if at < BEGINNING { cost * COST_FIRST } else { cost * COST };
        self.next = at + EVERY.max(pause);
        Some(queue)
    }

    fn read(&mut self, root: &Root, processes: &[ProcessId]) -> PageQueue {
        if self.nodes.with_memory().len() < 2 {
            return PageQueue::default();
        }
        self.read_faults(root, processes);
        let faults = PageQueue::new(self.threads.iter().map(|((process, _), pages)| AccessEntry {
            pid: process.pid,
            addresses: 0..0,
            pages: pages.clone(),
        }));
        self.is_faults = Some(faults.total() > 0);
        if faults.total() > 0 { faults } else { self.resident(root, processes) }
    }

    /// Reads some threads, in turn.
    fn read_faults(&mut self, root: &Root, processes: &[ProcessId]) {
        let balancing = root.read_text("/proc/sys/kernel/numa_balancing").unwrap_or_default();
        if matches!(balancing.trim(), "" | "0") {
            self.threads.clear();
            return;
        }
        let mut there = Vec::new();
        for process in processes {
            let names = root.list(&format!("/proc/{}/task", process.pid)).unwrap_or_default();
            let tids = names.iter().filter_map(|name| name.parse::<u32>().ok());
            there.extend(tids.map(|tid| (*process, tid)));
        }
        there.sort_unstable();
        self.threads.retain(|key, _| there.binary_search(key).is_ok());
        let first = there.iter().position(|key| Some(*key) > self.last).unwrap_or(0);
        there.rotate_left(first);
        for key in there.into_iter().take(THREADS_MAX) {
            self.last = Some(key);
            let (process, tid) = key;
            let file = format!("/proc/{}/task/{tid}/sched", process.pid);
            let text = root.read_text(&file).unwrap_or_default();
            self.threads.insert(key, faults(&text));
        }
    }

    fn resident(&mut self, root: &Root, processes: &[ProcessId]) -> PageQueue {
        let options = MemoryOptions {
            sample_pages: SAMPLE_PAGES,
            exact_bytes_max: EXACT_BYTES_MAX,
            ..MemoryOptions::default()
        };
        let mut queue = PageQueue::default();
        let mut missing = Vec::new();
        for process in processes {
            let (nodes, page_size) = (&self.nodes, self.page_size);
            let read = memory::read(
                root,
                &LivePages,
                nodes,
                page_size,
                process.pid,
                &options,
                &mut missing,
            );
            let Ok(found) = read else { continue };
            let pages = found
                .by_node()
                .into_iter()
                .filter_map(|(node, bytes)| Some((node?, bytes / page_size.max(1))));
            queue.push(AccessEntry { pid: process.pid, addresses: 0..0, pages: pages.collect() });
        }
        self.denied = !missing.is_empty() && queue.total() == 0;
        queue
    }

    pub(super) fn state(&self) -> MonitorState {
        const NAME: &str = "pages accessed";
        match (self.nodes.with_memory().len(), self.is_faults) {
            (0 | 1, _) => MonitorState::absent(NAME, "this machine has one node with memory"),
            (_, Some(true)) => MonitorState::real(
                NAME,
                "NUMA hint faults of each thread, as the kernel samples them",
            ),
            _ if self.denied => MonitorState::absent(
                NAME,
                "memory by node requires the right to trace the target (root or CAP_SYS_PTRACE)",
            ),
            _ => MonitorState::fallback(
                NAME,
                "resident pages: automatic NUMA balancing reports no faults (kernel.numa_balancing=1)",
            ),
        }
    }
}

/// `numa_faults node=1 task_private=3 task_shared=0 group_private=9 group_shared=1`: those of the task.
fn faults(text: &str) -> BTreeMap<NodeId, u64> {
    let mut found = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("numa_faults ")) {
        let value = |key: &str| {
            let mut words = line.split_whitespace().filter_map(|word| word.split_once('='));
            words.find(|(name, _)| *name == key).and_then(|(_, value)| value.parse::<u64>().ok())
        };
        let node = value("node").and_then(|node| u32::try_from(node).ok());
        let count = value("task_private").unwrap_or(0) + value("task_shared").unwrap_or(0);
        if let Some(node) = node.filter(|_| count > 0) {
            *found.entry(NodeId(node)).or_insert(0) += count;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_a_thread_are_counted_by_node() {
        let text = "se.nr_migrations : 3\nmm->numa_scan_seq : 2\ncurrent_node=0, numa_group_id=0\n\
            numa_faults node=0 task_private=5 task_shared=2 group_private=0 group_shared=0\n\
            numa_faults node=3 task_private=0 task_shared=90 group_private=7 group_shared=7\n\
            numa_faults node=x task_private=1\nnuma_faults\n";
        assert_eq!(faults(text), BTreeMap::from([(NodeId(0), 7), (NodeId(3), 90)]));
        assert!(faults("numa_faults node=1 task_private=0 task_shared=0").is_empty());
    }
}
