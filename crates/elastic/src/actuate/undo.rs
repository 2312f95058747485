//! Undoes the changes in a journal, from the last record to the first, unless something else has changed them since.
//! Undoing twice does no harm.

use std::collections::{BTreeMap, BTreeSet};

use atoll_process::inspect::{ProcessId, identify};
use atoll_sys::Root;
use atoll_topology::CpuSet;

use super::affinity::restore_thread;
use super::group::{disable, dissolve, write_back};
use super::{FoundJournal, Record, ThreadCalls, UnitCalls};

/// Result of undoing.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Undone {
    /// Threads that were checked.
    pub threads: usize,
    /// Groups, files and units that were restored.
    pub groups: usize,
    /// Changes that cannot be undone, a sentence each: moved memory.
    pub left: Vec<String>,
    /// Knobs of DBMSs that were restored; see [`undo_knobs`](crate::adapter::undo_knobs).
    pub knobs: usize,
    /// Failures, a sentence each.
    pub failed: Vec<String>,
}

/// Undoes the changes in a journal.
pub fn undo(
    root: &Root,
    threads: &dyn ThreadCalls,
    units: &dyn UnitCalls,
    journal: &FoundJournal,
) -> Undone {
    let mut undone = Undone::default();
    let given = given(journal);
    let homes = homes(journal);
    for record in journal.records.iter().rev() {
        match record {
            Record::UnitSet { unit, before } => {
                undone.groups += 1;
                let error = units.set_cpus(unit, &before.replace(' ', ",")).err();
                undone.failed.extend(error.map(|error| error.to_string()));
            }
            Record::GroupMade { path, home } if is_group(path) && is_group(home) => {
                undone.groups += 1;
                undone.failed.extend(dissolve(root, path, home, &homes));
            }
            Record::FileWritten { path, before } if is_group(path) => {
                undone.groups += 1;
                let is_ours = |now: &CpuSet| given.contains(&now.to_string());
                undone.failed.extend(write_back(root, path, before, is_ours));
            }
            Record::ControllerEnabled { path } if is_group(path) => {
                undone.failed.extend(disable(root, path));
            }
            Record::PagesMoved { pid, start, from, to } => {
                let is_there = identify(root, *pid).is_ok_and(|id| id.start == *start);
                if is_there {
                    undone.left.push(format!(
                        "pages of process {pid} were moved from nodes {from} to {to}; they stay there"
                    ));
                }
            }
            _ => {}
        }
    }
    undo_threads(threads, journal, &given, &mut undone);
    undone
}

/// Writes only below the control groups.
fn is_group(path: &str) -> bool {
    path.starts_with("/sys/fs/cgroup") && path.split('/').all(|part| part != "..")
}

/// All cpus ever given.
fn given(journal: &FoundJournal) -> BTreeSet<String> {
    let given = journal.records.iter().filter_map(|record| match record {
        Record::Given { cpus } => Some(cpus.clone()),
        _ => None,
    });
    given.collect()
}

/// The original groups of processes.
fn homes(journal: &FoundJournal) -> BTreeMap<u32, String> {
    let homes = journal.records.iter().filter_map(|record| match record {
        Record::Moved { pid, from, .. } if is_group(from) => Some((*pid, from.clone())),
        _ => None,
    });
    homes.collect()
}

/// Restores the cpus of threads; new threads get those of their process.
fn undo_threads(
    threads: &dyn ThreadCalls,
    journal: &FoundJournal,
    given: &BTreeSet<String>,
    undone: &mut Undone,
) {
    // A cpuset changes affinities unasked; bound threads have the cpus that were given.
    let is_affinity = journal.records.iter().any(|it| matches!(it, Record::Process { .. }));
    let was_given = |now: &CpuSet| given.contains(&now.to_string());
    let mut known = BTreeSet::new();
    for record in &journal.records {
        let Record::Thread { tid, start, cpus, .. } = record else { continue };
        let Ok(own) = CpuSet::parse(cpus) else { continue };
        if threads.thread(*tid).is_some_and(|thread| thread.start == *start) {
            known.insert(*tid);
            undone.threads += 1;
            let is_ours = |now: &CpuSet| !is_affinity || was_given(now);
            undone.failed.extend(restore_thread(threads, *tid, &own, is_ours));
        }
    }
    for record in &journal.records {
        let Record::Process { pid, start, cpus } = record else { continue };
        let Ok(own) = CpuSet::parse(cpus) else { continue };
        let later = threads.threads(ProcessId { pid: *pid, start: *start });
        for tid in later.into_iter().filter(|tid| !known.contains(tid)) {
            undone.threads += 1;
            undone.failed.extend(restore_thread(threads, tid, &own, was_given));
        }
    }
}
