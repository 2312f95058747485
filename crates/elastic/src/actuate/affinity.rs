//! Assigns cores by binding every thread, for systems without a writable cpuset.
//!
//! A thread inherits the affinity of its creator, so one created while threads are being bound may have the old cpus:
//! threads are listed again until no new one is found, and again at every look. For threads that existed before the
//! first act, the original affinity is recorded. A later thread has that of its process, unless it has cpus that were
//! not given here: then it binds itself and is left alone, like every thread that bound itself before or does so later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_process::inspect::ProcessId;
use atoll_sys::{CallError, CallErrorKind};
use atoll_topology::CpuSet;

use super::{ActuateError, Applied, Journal, Record, ThreadCalls, ThreadId};

/// Maximum number of listings in one act: the next look finds the rest.
const PASSES_MAX: usize = 8;
/// Maximum number of notes about threads that bind themselves; more are only counted.
const NOTES_MAX: usize = 3;

/// State of a thread.
#[derive(Clone, Debug)]
struct BoundThread {
    id: ThreadId,
    /// Its original affinity.
    own: CpuSet,
    /// Its affinity as reported by the kernel after binding.
    bound: Option<CpuSet>,
    /// Whether it binds itself.
    is_left_alone: bool,
}

/// Binds threads.
#[derive(Debug)]
pub struct AffinityActuator {
    calls: Arc<dyn ThreadCalls>,
    processes: BTreeMap<ProcessId, CpuSet>,
    threads: BTreeMap<u32, BoundThread>,
    /// All cpus ever given, in list notation.
    given: BTreeSet<String>,
    left_alone: usize,
    /// Whether threads were bound: new ones may have inherited cpus from here.
    has_acted: bool,
}

impl AffinityActuator {
    /// An actuator over these calls.
    pub fn new(calls: Arc<dyn ThreadCalls>) -> Self {
        Self {
            calls,
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            given: BTreeSet::new(),
            left_alone: 0,
            has_acted: false,
        }
    }

    pub(super) fn apply(
        &mut self,
        journal: &mut Journal,
        processes: &[ProcessId],
        cpus: &CpuSet,
    ) -> Result<Applied, ActuateError> {
        let mut applied = Applied::default();
        if !self.given.contains(&cpus.to_string()) {
            journal.write(&[Record::Given { cpus: cpus.to_string() }])?;
            self.given.insert(cpus.to_string());
        }
        for _ in 0..PASSES_MAX {
            let there = self.there(processes);
            let is_new = self.meet(journal, &there, &mut applied)?;
            let bound = self.bind_all(&there, cpus, &mut applied)?;
            applied.threads += bound;
            if bound == 0 && !is_new {
                break;
            }
        }
        self.has_acted = true;
        self.forget(processes);
        Ok(applied)
    }

    /// All threads with their processes.
    fn there(&self, processes: &[ProcessId]) -> Vec<(ProcessId, u32)> {
        let threads = |process: &ProcessId| {
            let process = *process;
            self.calls.threads(process).into_iter().map(move |tid| (process, tid))
        };
        processes.iter().flat_map(threads).collect()
    }

    /// Records the original affinity of new threads; returns whether there are any.
    fn meet(
        &mut self,
        journal: &mut Journal,
        there: &[(ProcessId, u32)],
        applied: &mut Applied,
    ) -> Result<bool, ActuateError> {
        let mut records = Vec::new();
        let mut new = Vec::new();
        for (process, tid) in there {
            let Some(id) = self.calls.thread(*tid) else { continue };
            // Another thread with a reused number.
            if self.threads.get(tid).is_some_and(|known| known.id == id) {
                continue;
            }
            let Ok(now) = self.calls.affinity(*tid) else { continue };
            let is_late = self.has_acted || self.processes.contains_key(process);
            let base = self.base(*process, &now, &mut records);
            let is_ours = now == base || (is_late && self.given.contains(&now.to_string()));
            let own = if is_ours { base } else { now };
            records.push(Record::Thread {
                pid: process.pid,
                tid: *tid,
                start: id.start,
                cpus: own.to_string(),
            });
            if !is_ours {
                self.note_left(*tid, &own, applied);
            }
            new.push(BoundThread { id, own, bound: None, is_left_alone: !is_ours });
        }
        if !records.is_empty() {
            journal.write(&records)?;
        }
        let is_new = !new.is_empty();
        self.threads.extend(new.into_iter().map(|thread| (thread.id.tid, thread)));
        Ok(is_new)
    }

    /// The original affinity of a process: that of its first thread when first seen.
    fn base(&mut self, process: ProcessId, now: &CpuSet, records: &mut Vec<Record>) -> CpuSet {
        if let Some(known) = self.processes.get(&process) {
            return known.clone();
        }
        let first = self.calls.affinity(process.pid).unwrap_or_else(|_| now.clone());
        // A process started by a bound one has inherited its cpus.
        let cpus = match self.has_acted && self.given.contains(&first.to_string()) {
            true => self.processes.values().next().cloned().unwrap_or(first),
            false => first,
        };
        records.push(Record::Process {
            pid: process.pid,
            start: process.start,
            cpus: cpus.to_string(),
        });
        self.processes.insert(process, cpus.clone());
        cpus
    }

    fn note_left(&mut self, tid: u32, cpus: &CpuSet, applied: &mut Applied) {
        self.left_alone += 1;
        if self.left_alone <= NOTES_MAX {
            applied.notes.push(format!("thread {tid} binds itself to cpus {cpus}: left alone"));
        } else if self.left_alone == NOTES_MAX + 1 {
            applied.notes.push("more threads bind themselves: left alone".to_owned());
        }
    }

    /// Binds the threads that are elsewhere; returns their number.
    fn bind_all(
        &mut self,
        there: &[(ProcessId, u32)],
        cpus: &CpuSet,
        applied: &mut Applied,
    ) -> Result<usize, ActuateError> {
        let mut count = 0;
        for (_, tid) in there {
            let Some(thread) = self.threads.get(tid).filter(|it| !it.is_left_alone) else {
                continue;
            };
            let Ok(now) = self.calls.affinity(*tid) else { continue };
            if now == *cpus {
                if let Some(thread) = self.threads.get_mut(tid) {
                    thread.bound = Some(now);
                }
                continue;
            }
            // The kernel may already have reduced the earlier cpus to these.
            let is_changed = match &thread.bound {
                Some(bound) => now != *bound && !self.given.contains(&now.to_string()),
                None => now != thread.own && !self.given.contains(&now.to_string()),
            };
            if is_changed {
                if let Some(thread) = self.threads.get_mut(tid) {
                    thread.is_left_alone = true;
                }
                self.note_left(*tid, &now, applied);
                continue;
            }
            let wanted_before = thread.bound.as_ref() == Some(&now) && now.is_subset(cpus);
            if self.bind(*tid, cpus)? {
                let after = self.calls.affinity(*tid).unwrap_or_else(|_| cpus.clone());
                // Unchanged: the kernel has no more of these cpus.
                count += usize::from(!(wanted_before && after == now));
                if let Some(thread) = self.threads.get_mut(tid) {
                    thread.bound = Some(after);
                }
            }
        }
        Ok(count)
    }

    /// Binds a thread; returns whether it still exists.
    fn bind(&self, tid: u32, cpus: &CpuSet) -> Result<bool, ActuateError> {
        match self.calls.bind(tid, cpus) {
            Ok(()) => Ok(true),
            Err(error) if is_gone(&error) => Ok(false),
            Err(source) if source.kind() == CallErrorKind::Refused => {
                Err(ActuateError::Refused { tid, source })
            }
            Err(source) if source.errno_name() == "EINVAL" => {
                Err(ActuateError::CpusGone { tid, cpus: cpus.clone() })
            }
            Err(source) => Err(ActuateError::Call { tid, source }),
        }
    }

    /// Forgets threads that have ended: their numbers may be reused.
    fn forget(&mut self, processes: &[ProcessId]) {
        let calls = &self.calls;
        let there: BTreeSet<u32> =
            processes.iter().flat_map(|process| calls.threads(*process)).collect();
        self.threads.retain(|tid, _| there.contains(tid));
        self.processes.retain(|process, _| processes.contains(process));
    }

    pub(super) fn restore(&mut self) -> Vec<String> {
        let mut failed = Vec::new();
        // Threads created since the last look have inherited cpus.
        let processes: Vec<(ProcessId, CpuSet)> =
            std::mem::take(&mut self.processes).into_iter().collect();
        let threads = std::mem::take(&mut self.threads);
        for (process, base) in processes {
            for tid in self.calls.threads(process) {
                let known = threads.get(&tid);
                let own = known.map_or(&base, |thread| &thread.own);
                if known.is_some_and(|thread| thread.is_left_alone) {
                    continue;
                }
                failed.extend(restore_thread(&*self.calls, tid, own, |now| {
                    self.given.contains(&now.to_string())
                        || known.and_then(|thread| thread.bound.as_ref()) == Some(now)
                }));
            }
        }
        failed
    }
}

/// Restores a thread's own cpus if it has those that were given; returns the failure.
pub(super) fn restore_thread(
    calls: &dyn ThreadCalls,
    tid: u32,
    own: &CpuSet,
    was_given: impl Fn(&CpuSet) -> bool,
) -> Option<String> {
    let now = calls.affinity(tid).ok()?;
    if now == *own || !was_given(&now) {
        return None;
    }
    match calls.bind(tid, own) {
        Err(error) if !is_gone(&error) => {
            Some(format!("thread {tid} still runs on cpus {now} instead of {own}: {error}"))
        }
        _ => None,
    }
}

fn is_gone(error: &CallError) -> bool {
    error.errno_name() == "ESRCH"
}
