//! Inspects processes repeatedly, and keeps the data from which two looks yield a rate.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_sys::Root;
use atoll_topology::Machine;

use super::InspectError;
use super::memory::{self, end_or};
use super::missing::Missing;
use super::nodes::NodeMap;
use super::pace::{Pace, Purse};
use super::process::Process;
use super::process_memory::{MemoryOptions, ProcessMemory};
use super::procfs::kernel::Balancing;
use super::procfs::{stat, status};
use super::residency::homes::PageHomes;
use super::snapshot::Snapshot;
use super::target::ProcessId;
use super::threads::ThreadReader;
use super::union::{Union, United};

/// Parts of the watching budget for the list of threads, for the threads themselves,
/// for the memory, and for shared objects. The rest is for displaying the results.
const SHARE_LIST: f64 = 0.1;
const SHARE_THREADS: f64 = 0.35;
const SHARE_MEMORY: f64 = 0.2;
const SHARE_UNION: f64 = 0.1;

/// The sources.
#[derive(Clone, Copy)]
pub struct ProcessSource<'a> {
    /// procfs and sysfs.
    pub root: &'a Root,
    /// Homes of pages.
    pub homes: &'a dyn PageHomes,
    /// The node of every cpu.
    pub nodes: &'a NodeMap,
    /// Base page size in bytes.
    pub page_size: u64,
}

impl<'a> ProcessSource<'a> {
    /// The parts together.
    pub fn new(
        root: &'a Root,
        homes: &'a dyn PageHomes,
        machine: &Machine,
        nodes: &'a NodeMap,
    ) -> Self {
        Self { root, homes, nodes, page_size: machine.page_size.0.max(1) }
    }
}

/// What to inspect and at what cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WatchOptions {
    /// How memory is read.
    pub memory: MemoryOptions,
    /// Average share of one cpu that looking may cost, and the time between two looks; unlimited
    /// if `None`.
    pub budget: Option<(f64, Duration)>,
}

/// Data of a process kept between looks.
struct TrackedProcess {
    threads: ThreadReader,
    list: Pace,
    memory_pace: Pace,
    memory: Option<ProcessMemory>,
    memory_read: Duration,
    missing: Vec<Missing>,
}

/// Inspects processes repeatedly.
pub struct Watcher {
    options: WatchOptions,
    processes: BTreeMap<ProcessId, TrackedProcess>,
    /// The process whose threads are read first in the next look is the one after this.
    last: Option<ProcessId>,
    united: United,
    union_pace: Pace,
}

impl Watcher {
    /// Watches these processes.
    pub fn new(processes: &[ProcessId], options: WatchOptions) -> Self {
        let mut watcher = Self {
            options,
            processes: BTreeMap::new(),
            last: None,
            united: United::default(),
            union_pace: Pace::default(),
        };
        watcher.follow(processes);
        watcher
    }

    /// Adds processes.
    pub fn follow(&mut self, processes: &[ProcessId]) {
        for id in processes {
            self.processes.entry(*id).or_insert_with(|| TrackedProcess {
                threads: ThreadReader::new(id.pid),
                list: Pace::default(),
                memory_pace: Pace::default(),
                memory: None,
                memory_read: Duration::ZERO,
                missing: Vec::new(),
            });
        }
    }

    /// The watched processes.
    pub fn processes(&self) -> Vec<ProcessId> {
        self.processes.keys().copied().collect()
    }

    /// Reads every thread regardless of cost, and no memory, so that the next look knows their cpu
    /// usage. `at` is the time since a moment of the caller's choice, here and in [`look`](Self::look).
    pub fn prime(&mut self, source: &ProcessSource<'_>, at: Duration) -> Result<(), InspectError> {
        self.read_threads(source, at, None).map(|_| ())
    }

    /// Takes a snapshot. Processes that ended are listed by number, and are not inspected again.
    pub fn look(
        &mut self,
        source: &ProcessSource<'_>,
        at: Duration,
    ) -> Result<Snapshot, InspectError> {
        let budget = self.options.budget.map(|(share, every)| every.mul_f64(share * SHARE_THREADS));
        let (threads_read, mut ended) = self.read_threads(source, at, budget)?;
        let memory_share = self.share_each(SHARE_MEMORY);
        let mut snapshot = Snapshot {
            processes: Vec::new(),
            ended: Vec::new(),
            memory: BTreeMap::new(),
            union: Union::default(),
            nodes: Vec::new(),
            threads_read,
            balancing: Balancing::read(source.root),
            missing: Vec::new(),
        };
        for (id, tracked) in &mut self.processes {
            let memory = tracked.read_memory(source, *id, at, memory_share, &self.options.memory);
            match memory.and_then(|()| tracked.process(source, *id, at)) {
                Ok(process) => {
                    snapshot.missing.extend(tracked.missing.iter().cloned());
                    snapshot.processes.push(process);
                }
                Err(error) if error.is_end() => ended.push(*id),
                Err(error) => return Err(error),
            }
        }
        self.forget(&ended);
        snapshot.ended = ended;
        self.unite(source, at, &snapshot.processes);
        snapshot.sum_up(source.nodes, &self.united);
        Ok(snapshot)
    }

    /// Counts shared objects, if it is time.
    fn unite(&mut self, source: &ProcessSource<'_>, at: Duration, processes: &[Process]) {
        if self.union_pace.is_due(at) {
            let share = self.options.budget.map(|(share, _)| share * SHARE_UNION);
            let (homes, options) = (source.homes, &self.options.memory);
            self.united = self.union_pace.run(at, share, || {
                United::read(homes, source.page_size, processes, options, share.is_some())
            });
        }
    }

    /// Each process's part of the budget, as a share of a cpu.
    fn share_each(&self, part: f64) -> Option<f64> {
        let (share, _) = self.options.budget?;
        Some(share * part / self.processes.len().max(1) as f64)
    }

    fn read_threads(
        &mut self,
        source: &ProcessSource<'_>,
        at: Duration,
        budget: Option<Duration>,
    ) -> Result<(u64, Vec<ProcessId>), InspectError> {
        let list_share = self.share_each(SHARE_LIST);
        let (ids, mut ended) = self.listed(source, at, list_share)?;
        let purse = Purse::new(budget);
        let mut read = 0;
        for id in ids {
            let Some(tracked) = self.processes.get_mut(&id) else { continue };
            match tracked.threads.read_some(source.root, source.nodes, at, purse) {
                Ok(count) => read += count as u64,
                Err(error) if error.is_end() => ended.push(id),
                Err(error) => return Err(error),
            }
            self.last = Some(id);
            if purse.is_empty() {
                break;
            }
        }
        self.forget(&ended);
        Ok((read, ended))
    }

    /// The processes that still exist, with their threads listed, starting with the one whose
    /// turn it is; and those that have ended.
    fn listed(
        &mut self,
        source: &ProcessSource<'_>,
        at: Duration,
        share: Option<f64>,
    ) -> Result<(Vec<ProcessId>, Vec<ProcessId>), InspectError> {
        let (mut there, mut ended) = (Vec::new(), Vec::new());
        for id in self.in_turn() {
            let Some(tracked) = self.processes.get_mut(&id) else { continue };
            match tracked.list(source.root, id, at, share) {
                Ok(()) => there.push(id),
                Err(error) if error.is_end() => ended.push(id),
                Err(error) => return Err(error),
            }
        }
        Ok((there, ended))
    }

    /// The processes, starting with the one whose turn it is.
    fn in_turn(&self) -> Vec<ProcessId> {
        let mut ids: Vec<ProcessId> = self.processes.keys().copied().collect();
        let first = ids.iter().position(|id| Some(*id) > self.last).unwrap_or(0);
        ids.rotate_left(first);
        ids
    }

    fn forget(&mut self, ended: &[ProcessId]) {
        self.processes.retain(|id, _| !ended.contains(id));
    }
}

impl TrackedProcess {
    fn list(
        &mut self,
        root: &Root,
        id: ProcessId,
        at: Duration,
        share: Option<f64>,
    ) -> Result<(), InspectError> {
        still_there(root, id)?;
        if self.list.is_due(at) || self.threads.is_empty() {
            self.list.run(at, share, || self.threads.list(root))?;
        }
        Ok(())
    }

    fn read_memory(
        &mut self,
        source: &ProcessSource<'_>,
        id: ProcessId,
        at: Duration,
        share: Option<f64>,
        options: &MemoryOptions,
    ) -> Result<(), InspectError> {
        if self.memory.is_some() && !self.memory_pace.is_due(at) {
            return Ok(());
        }
        self.missing.clear();
        self.memory_read = at;
        let ProcessSource { root, homes, nodes, page_size } = *source;
        let missing = &mut self.missing;
        self.memory = Some(self.memory_pace.run(at, share, || {
            memory::read(root, homes, nodes, page_size, id.pid, options, missing)
        })?);
        Ok(())
    }

    fn process(
        &self,
        source: &ProcessSource<'_>,
        id: ProcessId,
        at: Duration,
    ) -> Result<Process, InspectError> {
        let (root, pid) = (source.root, id.pid);
        let stat = still_there(root, id)?;
        let status = status::read(root, pid).map_err(|unread| end_or(unread, root, pid))?;
        Ok(Process {
            id,
            name: stat.name,
            state: stat.state,
            user: status.user,
            nodes_allowed: status.nodes_allowed,
            threads_total: status.threads.max(self.threads.threads().count() as u64),
            threads: self.threads.threads().cloned().collect(),
            memory: self.memory.clone(),
            memory_age: at.saturating_sub(self.memory_read),
        })
    }
}

/// Its state. Returns an error once it has ended, even if another process has its number.
fn still_there(root: &Root, id: ProcessId) -> Result<stat::Stat, InspectError> {
    let pid = id.pid;
    // The state of the first thread: the kernel sums over all threads for that of the process.
    let stat = stat::read(root, &format!("/proc/{pid}/task/{pid}/stat"))
        .map_err(|unread| end_or(unread, root, pid))?;
    if stat.start == id.start { Ok(stat) } else { Err(InspectError::NoProcess { pid }) }
}
