//! What is known of the machine that this process runs on.

use std::path::Path;
use std::time::SystemTime;

use atoll_sys::Root;

use super::store::{self, StoreError};
use super::structure;
use crate::{Allowed, CpuId, DiscoverError, Fact, Knowledge, Machine, NodeId, Subject, discover};

/// Knowledge of the live machine.
#[derive(Debug)]
pub struct Live {
    /// What is known, as far as it could be read.
    pub knowledge: Knowledge,
    /// Why figures measured before are not in it, where they could not be read: a warning to show.
    pub warning: Option<StoreError>,
}

impl Knowledge {
    /// What discovery finds out about the machine this process runs on, as far as the process may
    /// use it: see [`Machine::discover`].
    pub fn discover() -> Result<Self, DiscoverError> {
        let root = Root::live();
        Self::discover_at(&root, &Allowed::of_process(&root)?)
    }

    /// What discovery finds out under `root`, bounded by `allowed`: the machine, what its firmware
    /// tells of paths between nodes (HMAT), and the free memory with the time at which it was read.
    pub fn discover_at(root: &Root, allowed: &Allowed) -> Result<Self, DiscoverError> {
        let machine = Machine::discover_at(root, allowed)?;
        let now = SystemTime::now();
        let free = machine.nodes.iter().map(|node| structure::memory_free(&machine, node));
        let mut facts: Vec<Fact> = free.map(|fact| Fact { at: Some(now), ..fact }).collect();
        facts.extend(discover::firmware_facts(root, &machine)?);
        Ok(Self { machine, facts })
    }

    /// Discovery and the figures measured on this machine before, from [`store::directory`].
    pub fn live() -> Result<Live, DiscoverError> {
        let root = Root::live();
        let allowed = Allowed::of_process(&root)?;
        match store::directory() {
            Ok(directory) => Self::live_at(&root, &allowed, &directory),
            Err(error) => {
                let knowledge = Self::discover_at(&root, &allowed)?;
                Ok(Live { knowledge, warning: Some(error) })
            }
        }
    }

    /// As [`live`](Self::live) for the machine under `root`, with the figures in a directory. Figures
    /// about nodes and cpus that the process may not use are left out.
    pub fn live_at(
        root: &Root,
        allowed: &Allowed,
        directory: &Path,
    ) -> Result<Live, DiscoverError> {
        let mut knowledge = Self::discover_at(root, allowed)?;
        let whole = whole(root, &knowledge.machine)?;
        let warning = match store::load(directory, &whole) {
            Ok(facts) => {
                let machine = knowledge.machine.clone();
                knowledge.merge(facts.into_iter().filter(|fact| machine.has(fact.subject)));
                None
            }
            Err(error) => Some(error),
        };
        Ok(Live { knowledge, warning })
    }
}

/// The machine without the bounds of the process; `machine` is what the process may use of it.
fn whole(root: &Root, machine: &Machine) -> Result<Machine, DiscoverError> {
    if machine.hidden.cpus.is_empty() && machine.hidden.nodes.is_empty() {
        return Ok(machine.clone());
    }
    Machine::discover_at(root, &Allowed::everything())
}

impl Machine {
    /// Whether a fact about this subject is about a part of the machine that the process may use.
    pub fn has(&self, subject: Subject) -> bool {
        self.has_or(subject, |_| false, |_| false)
    }

    /// The same, with what is hidden from the process: it cannot be used and may be known.
    pub(crate) fn has_or_hides(&self, subject: Subject) -> bool {
        let hidden = &self.hidden;
        self.has_or(subject, |id| hidden.nodes.contains(id), |id| hidden.cpus.contains(id))
    }

    fn has_or(
        &self,
        subject: Subject,
        other_node: impl Fn(NodeId) -> bool,
        other_cpu: impl Fn(CpuId) -> bool,
    ) -> bool {
        let place = |id: NodeId| self.nodes.binary_search_by_key(&id, |node| node.id);
        let node = |id| place(id).is_ok() || other_node(id);
        let cpu = |id| self.cpu(id).is_some() || other_cpu(id);
        match subject {
            Subject::Machine => true,
            Subject::Package(id) => self.packages.iter().any(|package| package.id == id),
            Subject::Node(id) => node(id),
            Subject::Domain(id) => id.index() < self.domains.len(),
            Subject::Link(id) => id.index() < self.links.len(),
            Subject::Path { from, to } => node(from) && node(to),
            Subject::CpuPair { from, to } => cpu(from) && cpu(to),
        }
    }
}
