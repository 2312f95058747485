//! The processes that are meant, found again as they come and go, and looks at them.

use std::time::{Duration, Instant};

use anyhow::Context;
use atoll_process::inspect::{
    InspectError, LivePages, MemoryOptions, NodeMap, PageHomes, PagesError, ProcessId,
    ProcessSource, Target, WatchOptions, Watcher, descendants, find, skew,
};
use atoll_sys::{Root, process_cpu_time};
use atoll_topology::{Allowed, Machine, NodeId};

use super::{Look, WhereArgs};
use crate::exit::{CommandError, Exit};
use crate::terminal;

/// Time between two searches for processes that came.
const SEARCH_EVERY: Duration = Duration::from_secs(10);
/// Share of one cpu that watching may cost: below 1 %, with room for showing.
const BUDGET: f64 = 0.008;

/// The shortest time over which the cost of watching is reported.
const COST_OVER: Duration = Duration::from_secs(1);

/// A copied tree has no pages to ask for.
struct NoPages;

impl PageHomes for NoPages {
    fn homes(&self, _: u32, _: &[u64]) -> Result<Vec<Option<NodeId>>, PagesError> {
        Err(PagesError::Unsupported("a copied tree has no pages".to_owned()))
    }
}

/// Processes and looks at them.
pub(super) struct WatchSession {
    root: Root,
    pub(super) machine: Machine,
    pub(super) nodes: NodeMap,
    targets: Vec<Target>,
    has_children: bool,
    watcher: Watcher,
    began: Instant,
    /// When the first look was done, and what this process had used by then.
    began_watching: Instant,
    cost_began: Duration,
    is_watching: bool,
    searched: Duration,
    looked: Duration,
}

impl WatchSession {
    /// Finds the processes. `every` is the time between two looks, if more than one.
    pub(super) fn open(args: &WhereArgs, every: Option<Duration>) -> Result<Self, CommandError> {
        let root = args.root.as_ref().map_or_else(Root::live, Root::at);
        let machine = match root.is_live() {
            true => Machine::discover(),
            false => Machine::discover_at(&root, &Allowed::everything()),
        };
        let machine = machine.context("cannot discover this machine")?;
        let nodes = NodeMap::read(&root, &machine);
        let targets = args.meant();
        let found = found(&root, &targets, args.children).map_err(ends)?;
        let mut memory = MemoryOptions { is_exact: args.exact, ..MemoryOptions::default() };
        if let Some(pages) = args.sample {
            (memory.sample_pages, memory.exact_bytes_max) = (pages, 0);
        }
        let budget = every.map(|every| (BUDGET, every));
        Ok(Self {
            root,
            machine,
            nodes,
            targets,
            has_children: args.children,
            watcher: Watcher::new(&found, WatchOptions { memory, budget }),
            began: Instant::now(),
            began_watching: Instant::now(),
            cost_began: process_cpu_time(),
            is_watching: every.is_some(),
            searched: Duration::ZERO,
            looked: Duration::ZERO,
        })
    }

    /// Reads the threads a first time.
    pub(super) fn prime(&mut self) -> Result<(), CommandError> {
        let at = self.began.elapsed();
        let Self { root, machine, nodes, watcher, .. } = self;
        let homes = homes(root);
        watcher.prime(&ProcessSource::new(root, homes, machine, nodes), at).map_err(ends)
    }

    /// Looks.
    pub(super) fn look(&mut self, over: Duration) -> Result<Look, CommandError> {
        let at = self.began.elapsed();
        if at >= self.searched + SEARCH_EVERY {
            self.search(at);
        }
        let Self { root, machine, nodes, watcher, .. } = self;
        let homes = homes(root);
        let snapshot =
            watcher.look(&ProcessSource::new(root, homes, machine, nodes), at).map_err(ends)?;
        let warnings = skew::warnings(&snapshot, nodes);
        let over = if self.looked.is_zero() { over } else { at - self.looked };
        if self.looked.is_zero() {
            // The first look costs more than later ones.
            (self.began_watching, self.cost_began) = (Instant::now(), process_cpu_time());
        }
        self.looked = at;
        Ok(Look { snapshot, warnings, over, cost: self.cost() })
    }

    /// Processes that came since the last search. A target that no longer exists is not an error here:
    /// the look itself shows what ended.
    fn search(&mut self, at: Duration) {
        self.searched = at;
        if self.has_children
            && let Ok(new) = descendants(&self.root, &self.watcher.processes())
        {
            self.watcher.follow(&new);
        }
        let names: Vec<Target> = self
            .targets
            .iter()
            .filter(|target| !matches!(target, Target::Pid(_)))
            .cloned()
            .collect();
        for target in names {
            if let Ok(new) = found(&self.root, &[target], self.has_children) {
                self.watcher.follow(&new);
            }
        }
    }

    /// Share of one cpu that this process has used since its first look.
    fn cost(&self) -> Option<f64> {
        let elapsed = self.began_watching.elapsed();
        let used = process_cpu_time().saturating_sub(self.cost_began);
        (self.is_watching && elapsed > COST_OVER).then(|| used.div_duration_f64(elapsed))
    }

    /// Whether processes may still come: not where all were named by number.
    pub(super) fn may_go_on(&self) -> bool {
        self.targets.iter().any(|target| !matches!(target, Target::Pid(_)))
    }

    /// Says on stderr what ended.
    pub(super) fn tell_ended(&self, look: &Look) {
        for id in &look.snapshot.ended {
            terminal::say(format_args!("process {} has ended", id.pid));
        }
    }

    /// The request, for a heading.
    pub(super) fn asked(&self) -> String {
        let names = self.targets.iter().map(|target| match target {
            Target::Pid(pid) => pid.to_string(),
            Target::Name(name) | Target::Cgroup(name) => name.clone(),
        });
        names.collect::<Vec<_>>().join(" ")
    }
}

fn homes(root: &Root) -> &'static dyn PageHomes {
    if root.is_live() { &LivePages } else { &NoPages }
}

fn found(
    root: &Root,
    targets: &[Target],
    has_children: bool,
) -> Result<Vec<ProcessId>, InspectError> {
    let own = root.is_live().then(std::process::id);
    let mut found = Vec::new();
    for target in targets {
        found.extend(find(root, target, own)?);
    }
    if has_children {
        found = descendants(root, &found)?;
    }
    Ok(found)
}

/// A process that is not there is an answer; all else is our own failure.
fn ends(error: InspectError) -> CommandError {
    match error {
        InspectError::NoProcess { .. }
        | InspectError::NoName { .. }
        | InspectError::NoGroup { .. }
        | InspectError::EmptyGroup { .. } => CommandError::with(Exit::Statement, error),
        error => CommandError::with(Exit::Own, error),
    }
}
