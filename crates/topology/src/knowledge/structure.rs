//! The facts of a [`Machine`]'s structure: memory, free memory, last-level caches, distances.

use std::borrow::Cow;

use crate::{Domain, Fact, Knowledge, Machine, Node, NodeId, Quantity, Source, Subject};

impl Knowledge {
    /// All facts: those of the structure, then the stored ones. The iterator is lazy, as a machine of thousands of
    /// nodes has millions of distances.
    ///
    /// A node's free memory comes from the structure only if there is no stored fact, such as those of
    /// [`discover`](Self::discover), which have the time of reading.
    pub fn all_facts(&self) -> impl Iterator<Item = Cow<'_, Fact>> {
        let structure = of_machine(&self.machine).filter(|fact| !self.is_told(fact));
        structure.map(Cow::Owned).chain(self.facts.iter().map(Cow::Borrowed))
    }

    /// The structure's facts about the subject.
    pub(super) fn structural(&self, subject: Subject, quantity: Quantity) -> Option<Fact> {
        let machine = &self.machine;
        let fact = match (subject, quantity) {
            (Subject::Node(id), Quantity::Memory) => memory(machine, machine.node(id)?),
            (Subject::Node(id), Quantity::MemoryFree) => memory_free(machine, machine.node(id)?),
            (Subject::Domain(id), Quantity::Cache) => {
                cache(machine, machine.domains.get(id.index())?)?
            }
            (Subject::Path { from, to }, Quantity::Distance) => {
                distance(machine, from, to, machine.distance(from, to)?)
            }
            _ => return None,
        };
        (!self.is_told(&fact)).then_some(fact)
    }

    /// Whether a stored fact duplicates what the structure read at the same moment: free memory, and memory that was
    /// read from another file than the structure assumes.
    fn is_told(&self, fact: &Fact) -> bool {
        let same = |other: &Fact| other.subject == fact.subject && other.quantity == fact.quantity;
        let discovered = |other: &Fact| same(other) && other.source == Source::Discovered;
        match fact.quantity {
            Quantity::MemoryFree => self.facts.iter().any(same),
            Quantity::Memory if fact.source == Source::Discovered => {
                self.facts.iter().any(discovered)
            }
            _ => false,
        }
    }
}

/// All facts of the structure.
pub(super) fn of_machine(machine: &Machine) -> impl Iterator<Item = Fact> {
    let nodes = machine.nodes.iter();
    let memories = nodes.flat_map(|node| [memory(machine, node), memory_free(machine, node)]);
    let caches = machine.domains.iter().filter_map(|domain| cache(machine, domain));
    memories.chain(caches).chain(distances(machine))
}

/// The distances, row by row.
pub(super) fn distances(machine: &Machine) -> impl Iterator<Item = Fact> {
    machine.nodes.iter().zip(&machine.distances).flat_map(|(from, row)| {
        let columns = machine.nodes.iter().zip(row);
        columns.map(|(to, &value)| distance(machine, from.id, to.id, value))
    })
}

/// The file that discovery reads, or the origin of a described machine.
fn origin(machine: &Machine, source: Source, file: impl FnOnce() -> String) -> String {
    match source {
        Source::Discovered => file(),
        Source::Assumed => "unknown; assumed".to_owned(),
        _ => machine.name.clone(),
    }
}

pub(super) fn memory(machine: &Machine, node: &Node) -> Fact {
    let source = machine.memory_source;
    let meminfo = || format!("/sys/devices/system/node/node{}/meminfo", node.id);
    let origin = origin(machine, source, meminfo);
    Fact::new(Subject::Node(node.id), Quantity::Memory, node.memory.0 as f64, source, origin)
}

/// Free memory, which changes all the time if it was read from a live machine.
pub(super) fn memory_free(machine: &Machine, node: &Node) -> Fact {
    let source = machine.memory_free_source;
    let origin = match source {
        Source::Assumed => origin(machine, source, String::new),
        _ => memory(machine, node).origin,
    };
    let value = node.memory_free.0 as f64;
    Fact::new(Subject::Node(node.id), Quantity::MemoryFree, value, source, origin)
}

fn cache(machine: &Machine, domain: &Domain) -> Option<Fact> {
    let source = machine.caches_source;
    let cpu = domain.cpus.first()?;
    let origin = origin(machine, source, || format!("/sys/devices/system/cpu/cpu{cpu}/cache"));
    let size = domain.cache?.0 as f64;
    Some(Fact::new(Subject::Domain(domain.id), Quantity::Cache, size, source, origin))
}

fn distance(machine: &Machine, from: NodeId, to: NodeId, value: u32) -> Fact {
    let source = machine.distances_source;
    let origin =
        origin(machine, source, || format!("/sys/devices/system/node/node{from}/distance"));
    Fact::new(Subject::Path { from, to }, Quantity::Distance, value.into(), source, origin)
}
