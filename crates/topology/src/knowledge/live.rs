//! The knowledge of the machine that this process runs on.

use std::time::SystemTime;

use atoll_sys::Root;

use super::structure;
use crate::{
    Allowed, CpuId, DiscoverError, Fact, Knowledge, Machine, Node, NodeId, Source, Subject,
    discover,
};

impl Knowledge {
    /// Discovers the machine this process runs on, restricted to what the process may use: see [`Machine::discover`].
    pub fn discover() -> Result<Self, DiscoverError> {
        let root = Root::live();
        Self::discover_at(&root, &Allowed::of_process(&root))
    }

    /// Discovers the machine under `root`, restricted to `allowed`: its structure, the firmware's facts about paths
    /// between nodes (HMAT), and the free memory with the time of reading.
    pub fn discover_at(root: &Root, allowed: &Allowed) -> Result<Self, DiscoverError> {
        let mut machine = Machine::discover_at(root, allowed)?;
        let firmware = discover::firmware_facts(root, &mut machine);
        let now = SystemTime::now();
        let nodes = machine.nodes.iter();
        let mut facts: Vec<Fact> =
            nodes.flat_map(|node| memory_facts(root, &machine, node, now)).collect();
        facts.extend(firmware);
        Ok(Self { machine, facts })
    }
}

/// A node's free memory; and its total memory if that was not read from the node's own file, which a kernel without
/// NUMA lacks.
fn memory_facts(root: &Root, machine: &Machine, node: &Node, now: SystemTime) -> Vec<Fact> {
    let free = Fact { at: Some(now), ..structure::memory_free(machine, node) };
    if machine.memory_source != Source::Discovered || root.exists(&free.origin) {
        return vec![free];
    }
    let origin = || discover::MEMINFO.to_owned();
    let memory = structure::memory(machine, node);
    vec![Fact { origin: origin(), ..memory }, Fact { origin: origin(), ..free }]
}

impl Machine {
    /// Whether this subject is a part of the machine that the process may use.
    pub fn has(&self, subject: Subject) -> bool {
        self.has_or(subject, |_| false, |_| false)
    }

    /// The same, including hidden parts, which may have facts.
    pub fn has_or_hides(&self, subject: Subject) -> bool {
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
