//! Where a server of several processes is while it works: looks at all of them, shared memory counted once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use atoll_process::inspect::{
    LivePages, MappingKind, NodeMap, ProcessId, ProcessSource, Snapshot, WatchOptions, Watcher,
    descendants, identify,
};
use atoll_sys::Root;
use atoll_topology::{CpuSet, Machine};
use serde::{Deserialize, Serialize};

use super::placement::PlacementSeen;

/// The first look, and the longest time between two; the time doubles in between.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(10);

/// What the last look found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerPlacement {
    pub(crate) seen: PlacementSeen,
    /// Cpus that its threads used on each node, since the look before.
    pub(crate) busy_cpus: BTreeMap<u32, f64>,
    pub(crate) processes: usize,
    pub(crate) looks: u32,
}

/// Looks at a process and all that it started.
pub(crate) struct ServerLooks<'a> {
    root: Root,
    machine: &'a Machine,
    nodes: NodeMap,
    first: ProcessId,
    watcher: Watcher,
    begun: Instant,
    due: Duration,
    found: ServerPlacement,
    /// Why the last look failed.
    missed: Option<String>,
}

impl<'a> ServerLooks<'a> {
    /// Begins: cpu time counts from now on.
    ///
    /// # Errors
    /// When the process is gone, or belongs to another user.
    pub(crate) fn new(machine: &'a Machine, pid: u32) -> Result<Self> {
        let root = Root::live();
        let first = identify(&root, pid)?;
        let watcher = Watcher::new(&descendants(&root, &[first])?, WatchOptions::default());
        let mut looks = Self {
            nodes: NodeMap::read(&root, machine),
            root,
            machine,
            first,
            watcher,
            begun: Instant::now(),
            due: FIRST,
            found: ServerPlacement::default(),
            missed: None,
        };
        let Self { root, nodes, watcher, .. } = &mut looks;
        watcher.prime(&ProcessSource::new(root, &LivePages, machine, nodes), Duration::ZERO)?;
        Ok(looks)
    }

    /// Looks if it is time.
    pub(crate) fn look_when_due(&mut self) {
        let at = self.begun.elapsed();
        if at >= self.due {
            self.due = at + at.min(LONGEST);
            self.look(at);
        }
    }

    /// Looks; `None` if that fails.
    pub(crate) fn now(&mut self) -> Option<&ServerPlacement> {
        let looks = self.found.looks;
        self.look(self.begun.elapsed());
        (self.found.looks > looks).then_some(&self.found)
    }

    /// What the last look found; one is taken now if there was none.
    pub(crate) fn finish(mut self) -> ServerPlacement {
        if self.found.looks == 0 {
            self.look(self.begun.elapsed());
        }
        if self.found.looks == 0 {
            self.found.seen.obstacles.extend(self.missed);
        }
        self.found
    }

    fn look(&mut self, at: Duration) {
        match self.snapshot(at) {
            Ok(snapshot) => {
                let looks = self.found.looks + 1;
                self.found = ServerPlacement { looks, ..placement(&snapshot) };
            }
            Err(error) => self.missed = Some(format!("{error:#}")),
        }
    }

    fn snapshot(&mut self, at: Duration) -> Result<Snapshot> {
        let Self { root, machine, nodes, first, watcher, .. } = self;
        watcher.follow(&descendants(root, &[*first])?);
        Ok(watcher.look(&ProcessSource::new(root, &LivePages, machine, nodes), at)?)
    }
}

fn placement(snapshot: &Snapshot) -> ServerPlacement {
    let mut found = ServerPlacement::default();
    let seen = &mut found.seen;
    for (node, bytes) in snapshot.bytes_of(|kind| kind != MappingKind::Program) {
        if let Some(node) = node {
            seen.nodes.insert(u32::from(node), bytes);
        }
    }
    for row in &snapshot.nodes {
        if let Some(node) = row.node.filter(|_| row.threads > 0) {
            seen.threads.insert(u32::from(node), row.threads as u32);
            found.busy_cpus.insert(u32::from(node), row.cpu_share);
        }
    }
    let memories = snapshot.processes.iter().filter_map(|process| process.memory.as_ref());
    for policy in memories.flat_map(|memory| memory.policies.iter().flatten()) {
        if policy.bytes > 0 {
            *seen.policies.entry(policy.policy.clone()).or_default() += policy.bytes;
        }
    }
    let allowed = snapshot.threads().map(|(_, thread)| &thread.cpus_allowed);
    let cpus = allowed.fold(CpuSet::new(), |all, cpus| all.union(cpus));
    seen.cpus = cpus.to_string();
    seen.balancing = snapshot.balancing.mode;
    let missing = snapshot.missing.iter();
    seen.obstacles = missing.map(|it| format!("{}: needs {}", it.what, it.need)).collect();
    found.processes = snapshot.processes.len();
    found
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_seen_with_its_children() {
        let machine = Machine::discover().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & read end; kill $!"]).stdin(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let looks = ServerLooks::new(&machine, child.id()).unwrap();
        let mut found = looks.finish();
        // The shell may not have started the other yet.
        while found.processes < 2 {
            found = ServerLooks::new(&machine, child.id()).unwrap().finish();
        }
        drop(child.stdin.take());
        assert!(child.wait().is_ok());
        let threads: u32 = found.seen.threads.values().sum();
        assert_eq!((threads, found.looks), (2, 1), "{found:?}");
    }
}
