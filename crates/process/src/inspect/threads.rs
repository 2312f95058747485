//! The threads of a process: where each runs, where it may run, and its cpu usage.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use atoll_sys::Root;
use atoll_topology::{CpuId, CpuSet, NodeId};

use super::InspectError;
use super::memory::end_or;
use super::nodes::NodeMap;
use super::pace::Purse;
use super::procfs::numa_maps::policy_in;
use super::procfs::read::Unread;
use super::procfs::sched::{self, SchedStat};
use super::procfs::stat::{self, Stat};
use super::procfs::status;

/// Ticks per second in the kernel's interface, whatever its own clock (`USER_HZ`).
const TICKS: f64 = 100.0;
/// Maximum age of the data of an idle thread: its affinity may be changed.
const KEPT: Duration = Duration::from_secs(60);
/// Bytes read for a thread's policy. The kernel stops after the mapping that fills them, and the
/// first is the program's text: reading more would walk the page tables of the heap.
const POLICY_BYTES: usize = 64;
/// Maximum number of cached affinities.
const SETS_MAX: usize = 4096;

/// A thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its name: any bytes.
    pub name: Arc<str>,
    /// One letter, as in `ps`.
    pub state: char,
    /// The cpu it last ran on.
    pub cpu: CpuId,
    /// The node of that cpu.
    pub node: Option<NodeId>,
    /// Where it may run.
    pub cpus_allowed: Arc<CpuSet>,
    /// Its own memory policy, where it can be read.
    pub policy: Option<Arc<str>>,
    /// Share of one cpu used since it was last read, at most 1; `None` after one reading.
    pub cpu_share: Option<f64>,
    /// Moves from cpu to cpu since it started.
    pub migrations: Option<u64>,
    /// Voluntary context switches.
    pub switches_voluntary: Option<u64>,
    /// Involuntary context switches.
    pub switches_involuntary: Option<u64>,
    /// Pages that automatic balancing moved for it.
    pub pages_migrated: Option<u64>,
    /// The node on which automatic balancing wants it.
    pub node_preferred: Option<NodeId>,
}

/// Data of a thread kept between looks.
#[derive(Debug)]
struct TrackedThread {
    thread: Thread,
    start: u64,
    ticks: u64,
    run: Option<SchedStat>,
    read_at: Duration,
    kept_since: Duration,
}

/// Reads the threads of one process repeatedly.
#[derive(Debug)]
pub struct ThreadReader {
    pid: u32,
    /// Every thread listed; `None` for those not read yet.
    threads: BTreeMap<u32, Option<TrackedThread>>,
    /// The thread after which the next look continues.
    last: u32,
    sets: HashMap<CpuSet, Arc<CpuSet>>,
}

impl ThreadReader {
    /// Reads the threads of this process.
    pub fn new(pid: u32) -> Self {
        Self { pid, threads: BTreeMap::new(), last: 0, sets: HashMap::new() }
    }

    /// Lists the threads: ended threads are dropped, new threads are added unread.
    pub fn list(&mut self, root: &Root) -> Result<(), InspectError> {
        let directory = format!("/proc/{}/task", self.pid);
        let names = root.list(&directory).map_err(|error| end_or(error.into(), root, self.pid))?;
        let mut old = std::mem::take(&mut self.threads);
        for tid in names.iter().filter_map(|name| name.parse().ok()) {
            self.threads.insert(tid, old.remove(&tid).flatten());
        }
        Ok(())
    }

    /// Reads every thread listed. `at` is the time since a moment of the caller's choice.
    pub fn read(&mut self, root: &Root, nodes: &NodeMap, at: Duration) -> Result<(), InspectError> {
        self.read_some(root, nodes, at, Purse::new(None)).map(|_| ())
    }

    /// Reads threads in turn until the budget is spent; returns their number.
    pub(super) fn read_some(
        &mut self,
        root: &Root,
        nodes: &NodeMap,
        at: Duration,
        purse: Purse,
    ) -> Result<usize, InspectError> {
        let mut read = 0;
        for _ in 0..self.threads.len() {
            let behind = self.threads.range(self.last.saturating_add(1)..).next();
            let Some((tid, _)) = behind.or_else(|| self.threads.first_key_value()) else { break };
            self.last = *tid;
            self.read_one(root, nodes, at, self.last)?;
            read += 1;
            if purse.is_empty() {
                break;
            }
        }
        Ok(read)
    }

    fn read_one(
        &mut self,
        root: &Root,
        nodes: &NodeMap,
        at: Duration,
        tid: u32,
    ) -> Result<(), InspectError> {
        let directory = format!("/proc/{}/task/{tid}", self.pid);
        let run = sched::read_run(root, &directory).filter(|run| run.turns > 0);
        let mut old = self.threads.remove(&tid).flatten();
        if let Some(known) = old.as_mut().filter(|known| is_asleep(known, run, at)) {
            known.thread.cpu_share = Some(0.0);
            known.read_at = at;
            self.threads.insert(tid, old);
            return Ok(());
        }
        match self.look_at(root, nodes, at, tid, run, old) {
            Ok(tracked) => {
                self.threads.insert(tid, Some(tracked));
                Ok(())
            }
            // It has ended, so it is no longer in the list.
            Err(Unread::Absent) => Ok(()),
            Err(unread) => Err(end_or(unread, root, self.pid)),
        }
    }

    fn look_at(
        &mut self,
        root: &Root,
        nodes: &NodeMap,
        at: Duration,
        tid: u32,
        run: Option<SchedStat>,
        old: Option<TrackedThread>,
    ) -> Result<TrackedThread, Unread> {
        let directory = format!("/proc/{}/task/{tid}", self.pid);
        let stat = stat::read(root, &format!("{directory}/stat"))?;
        // Another thread with the same number is not the old one.
        let old = old.filter(|old| old.start == stat.start);
        let status = status::read_thread(root, &format!("{directory}/status"))?;
        let sched = sched::read(root, &directory);
        let kept = old.as_ref().filter(|old| at.saturating_sub(old.kept_since) < KEPT);
        let policy = match kept {
            Some(old) => old.thread.policy.clone(),
            None => policy(root, &directory),
        };
        Ok(TrackedThread {
            kept_since: kept.map_or(at, |old| old.kept_since),
            thread: Thread {
                tid,
                cpu: stat.cpu,
                node: nodes.node(stat.cpu),
                cpus_allowed: self.interned(status.cpus_allowed),
                policy,
                cpu_share: old.as_ref().and_then(|old| share(old, run, &stat, at)),
                migrations: sched.migrations,
                switches_voluntary: status.switches_voluntary,
                switches_involuntary: status.switches_involuntary,
                pages_migrated: sched.pages_migrated,
                node_preferred: sched.node_preferred.map(NodeId),
                state: stat.state,
                name: stat.name.into(),
            },
            start: stat.start,
            ticks: stat.ticks,
            run,
            read_at: at,
        })
    }

    /// Most threads have the same affinity.
    fn interned(&mut self, cpus: CpuSet) -> Arc<CpuSet> {
        if self.sets.len() >= SETS_MAX {
            self.sets.clear();
        }
        match self.sets.get(&cpus) {
            Some(known) => Arc::clone(known),
            None => {
                let known = Arc::new(cpus.clone());
                self.sets.insert(cpus, Arc::clone(&known));
                known
            }
        }
    }

    /// The threads read so far, ordered by number.
    pub fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.values().flatten().map(|tracked| &tracked.thread)
    }

    /// Number of threads listed, read or not.
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Whether none is listed.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }
}

/// Whether a thread has not run since it was read, so that nothing has changed except settings made by
/// others.
fn is_asleep(old: &TrackedThread, run: Option<SchedStat>, at: Duration) -> bool {
    run.is_some() && old.run == run && at.saturating_sub(old.kept_since) < KEPT
}

/// Cpu usage between two readings, from nanoseconds if the kernel counts them.
fn share(old: &TrackedThread, run: Option<SchedStat>, stat: &Stat, at: Duration) -> Option<f64> {
    let elapsed = at.saturating_sub(old.read_at).as_secs_f64();
    let used = match (old.run, run) {
        (Some(old), Some(run)) => run.nanos.saturating_sub(old.nanos) as f64 / 1e9,
        _ => stat.ticks.saturating_sub(old.ticks) as f64 / TICKS,
    };
    (elapsed > 0.0).then(|| used / elapsed)
}

/// The thread's own memory policy: that of its first mapping, the program's text, which has none of
/// its own.
fn policy(root: &Root, directory: &str) -> Option<Arc<str>> {
    let path = root.path(&format!("{directory}/numa_maps")).ok()?;
    let mut buffer = [0; POLICY_BYTES];
    let length = std::fs::File::open(path).and_then(|mut file| file.read(&mut buffer)).ok()?;
    let text = String::from_utf8_lossy(&buffer[..length]);
    // The last word may be cut off: a policy is complete only if something follows it.
    let line = text.split_once('\n').map(|(line, _)| line);
    let line = line.or_else(|| text.rsplit_once(' ').map(|(whole, _)| whole))?;
    policy_in(line).map(Into::into)
}
