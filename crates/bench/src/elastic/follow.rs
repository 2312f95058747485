//! Follows a process under the load of its clients: the cores it was given, and the machine's counters meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use atoll_elastic::actuate::{
    Actuator, AffinityActuator, JournalDirectory, LiveThreads, ThreadCalls,
};
use atoll_elastic::decide::CorePolicy;
use atoll_elastic::mode::CoreTable;
use atoll_elastic::monitor::{ElasticTarget, LiveTarget, Traffic, WorkKind, traffic_by_cache};
use atoll_elastic::session::{Hand, TargetSession};
use atoll_process::inspect::identify;
use atoll_sys::{PerfCounter, PerfEvent, Root};
use atoll_topology::Machine;
use serde::{Deserialize, Serialize};

/// Time between two looks, as in `atoll elastic`.
const INTERVAL: Duration = Duration::from_millis(100);

/// Counters of a run; None if this machine does not have the counter.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Followed {
    /// Cores that it had, on average over the time.
    pub(super) cores_mean: f64,
    /// How often they were changed.
    pub(super) acts: u64,
    /// How often the kernel moved a thread to another cpu.
    pub(super) migrations: Option<u64>,
    /// Misses of the last-level cache.
    pub(super) llc_misses: Option<u64>,
    /// Memory traffic, GB/s.
    pub(super) memory_gbps: Option<f64>,
    /// Share of it that was remote: the paper's HT/IMC.
    pub(super) remote_share: Option<f64>,
    /// Memory traffic of each last-level cache over time.
    pub(super) caches: BTreeMap<u32, Vec<CacheMoment>>,
}

/// Memory traffic of a cache in the time before a moment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct CacheMoment {
    pub(super) seconds: f64,
    pub(super) gbps: f64,
}

/// Runs the work while the process is followed under a policy; without one it is only observed.
pub(super) fn followed<T>(
    machine: &Machine,
    pid: u32,
    policy: Option<&CorePolicy>,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, Followed)> {
    let is_over = AtomicBool::new(false);
    let (begin, begun) = channel();
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let follower = scope.spawn(move || {
            let mut follower = Follower::new(machine, pid, policy)?;
            follower.look()?;
            // The work waits for it.
            let _ = begin.send(());
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(INTERVAL);
                follower.look()?;
            }
            follower.finish()
        });
        let over = OverOnDrop(is_over);
        // If the process cannot be followed, the error comes at the end.
        let _ = begun.recv();
        let done = work();
        drop(over);
        let followed = follower.join().map_err(|_| anyhow::anyhow!("the follower panicked"))?;
        Ok((done?, followed?))
    })
}

/// Ends the following, also where the work panics.
struct OverOnDrop<'a>(&'a AtomicBool);

impl Drop for OverOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Follower {
    root: Root,
    pid: u32,
    began: Instant,
    cores_all: usize,
    session: Option<TargetSession>,
    /// Sum of cores over the looks.
    cores_sum: usize,
    looks: usize,
    migrations_before: Option<u64>,
    misses: Vec<PerfCounter>,
    traffic_first: BTreeMap<u32, Traffic>,
    traffic_last: (Duration, BTreeMap<u32, Traffic>),
    caches: BTreeMap<u32, Vec<CacheMoment>>,
    /// Holds the journals.
    _home: tempfile::TempDir,
}

impl Follower {
    fn new(machine: &Machine, pid: u32, policy: Option<&CorePolicy>) -> Result<Self> {
        let root = Root::live();
        let home = tempfile::tempdir().context("cannot create a directory for the journal")?;
        let threads = Arc::new(LiveThreads::new(root.clone()));
        let table = Arc::new(CoreTable::new(machine, &threads.affinity(pid)?));
        let session = match policy {
            None => None,
            Some(policy) => {
                let journals = JournalDirectory::open(&home.path().join("journals"))?;
                let journal =
                    journals.begin(&root, identify(&root, std::process::id())?, "bench")?;
                let hand =
                    Hand { actuator: Actuator::Affinity(AffinityActuator::new(threads)), journal };
                let target = ElasticTarget::Process(pid);
                let source = LiveTarget::open(&root, machine, target, WorkKind::default())?;
                let (policy, offered) = (policy.clone(), table.ids());
                let session = TargetSession::new(
                    "bench",
                    policy,
                    table.clone(),
                    offered,
                    Box::new(source),
                    Some(hand),
                );
                Some(session?)
            }
        };
        let traffic = traffic_by_cache(&root);
        Ok(Self {
            pid,
            began: Instant::now(),
            cores_all: table.len(),
            session,
            cores_sum: 0,
            looks: 0,
            migrations_before: migrations(&root, pid),
            misses: counters(&root, pid),
            traffic_first: traffic.clone(),
            traffic_last: (Duration::ZERO, traffic),
            caches: BTreeMap::new(),
            root,
            _home: home,
        })
    }

    fn look(&mut self) -> Result<()> {
        let at = self.began.elapsed();
        let mut cores = self.cores_all;
        if let Some(session) = &mut self.session {
            session.tick(at)?;
            cores = session.controller().map_or(cores, |controller| controller.given().len());
        }
        self.cores_sum += cores;
        self.looks += 1;
        let now = traffic_by_cache(&self.root);
        let (before_at, before) = std::mem::replace(&mut self.traffic_last, (at, now.clone()));
        let seconds = at.saturating_sub(before_at).as_secs_f64();
        for (cache, traffic) in now {
            let old = before.get(&cache).copied().unwrap_or_default();
            let gbps = traffic.total.saturating_sub(old.total) as f64 / 1e9 / seconds.max(1e-9);
            let moment = CacheMoment { seconds: at.as_secs_f64(), gbps };
            self.caches.entry(cache).or_default().push(moment);
        }
        Ok(())
    }

    /// Gives everything back.
    fn finish(mut self) -> Result<Followed> {
        let seconds = self.began.elapsed().as_secs_f64();
        let acts = self.session.as_ref().map_or(0, TargetSession::acts);
        let failed = self.session.as_mut().map(TargetSession::finish).unwrap_or_default();
        anyhow::ensure!(failed.is_empty(), "failed to give back cores: {}", failed.join("; "));
        let sum = |of: &BTreeMap<u32, Traffic>| {
            of.values().fold((0_u64, 0_u64), |sum, it| {
                (sum.0.saturating_add(it.total), sum.1.saturating_add(it.local))
            })
        };
        let (first, last) = (sum(&self.traffic_first), sum(&self.traffic_last.1));
        let total = last.0.saturating_sub(first.0) as f64;
        let local = last.1.saturating_sub(first.1) as f64;
        let has_traffic = !self.traffic_first.is_empty() && total > 0.0;
        let after = migrations(&self.root, self.pid);
        let misses =
            self.misses.iter().filter_map(|counter| counter.read().ok()).reduce(|a, b| a + b);
        Ok(Followed {
            cores_mean: self.cores_sum as f64 / self.looks.max(1) as f64,
            acts,
            migrations: after
                .zip(self.migrations_before)
                .map(|(now, then)| now.saturating_sub(then)),
            llc_misses: misses,
            memory_gbps: has_traffic.then(|| total / 1e9 / seconds.max(1e-9)),
            remote_share: has_traffic.then(|| (total - local).max(0.0) / total),
            caches: self.caches,
        })
    }
}

/// A counter of cache misses for each thread of a process; empty without such a counter or access to it.
fn counters(root: &Root, pid: u32) -> Vec<PerfCounter> {
    let threads = root.list(&format!("/proc/{pid}/task")).unwrap_or_default();
    let threads = threads.iter().filter_map(|tid| tid.parse().ok());
    threads.filter_map(|tid| PerfCounter::open_other(PerfEvent::LlcLoadMisses, tid).ok()).collect()
}

/// How often the threads of a process were moved to another cpu; None if the kernel does not report it.
fn migrations(root: &Root, pid: u32) -> Option<u64> {
    let of = |tid: &String| {
        let text = root.read_text(&format!("/proc/{pid}/task/{tid}/sched")).ok()?;
        let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
        line.split(':').nth(1)?.trim().parse::<u64>().ok()
    };
    let threads = root.list(&format!("/proc/{pid}/task")).ok()?;
    let counts: Vec<u64> = threads.iter().filter_map(of).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}
