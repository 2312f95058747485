//! Facts: from Atoll's infos, or from the memory attributes of an hwloc file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::ReadIndex;
use crate::FormatError;
use crate::xml::facts::{self, ATTRIBUTES};
use crate::xml::parts::AttributeValue;
use atoll_topology::mask;
use atoll_topology::{CpuSet, Fact, Machine, NodeId, Subject};

/// Limit for the figures from memory attributes: one for each pair of 1,024 nodes.
const FIGURES_MAX: usize = 1 << 20;

impl ReadIndex<'_> {
    /// The facts of Atoll's infos if the file has them, or else of the memory attributes.
    pub(super) fn facts(&self, machine: &Machine) -> Result<Vec<Fact>, FormatError> {
        if self.info("atoll.sources").is_some() {
            return self.infos("atoll.fact").map(facts::read).collect();
        }
        Ok([self.partial_distances(machine)?, self.figures()?].concat())
    }

    /// Facts of the memory attributes; if two give the same figure of a path, the first attribute's.
    fn figures(&self) -> Result<Vec<Fact>, FormatError> {
        let targets: HashMap<u64, NodeId> = self
            .nodes
            .iter()
            .filter_map(|(&node, &object)| Some((self.document.objects[object].gp_index?, node)))
            .collect();
        let mut initiators = Initiators::new(self);
        let mut values: Vec<&AttributeValue<'_>> = self.document.attributes.iter().collect();
        values.sort_by_key(|value| value.attribute);
        let mut known = BTreeSet::new();
        let mut facts = Vec::new();
        let mut figures = 0;
        for value in values {
            let target = value.target.and_then(|index| targets.get(&index));
            let Some(&to) = target else { continue };
            let attribute = &ATTRIBUTES[value.attribute];
            let nodes = initiators.nodes(value)?;
            figures += nodes.len();
            if figures > FIGURES_MAX {
                let expected = format!("at most {FIGURES_MAX} of paths");
                return Err(value.place.fail("more figures", expected));
            }
            for &from in nodes.iter() {
                let subject = Subject::Path { from, to };
                if known.insert((attribute.quantity, subject)) {
                    facts.push(attribute.fact(value, subject));
                }
            }
        }
        Ok(facts)
    }

    fn cpus_by_node(&self) -> BTreeMap<NodeId, CpuSet> {
        let mut nodes: BTreeMap<NodeId, CpuSet> = BTreeMap::new();
        for cpu in self.cpus.keys() {
            nodes.entry(self.home[cpu]).or_default().insert(*cpu);
        }
        nodes
    }
}

/// Resolves the initiators of values to nodes.
struct Initiators<'a> {
    cpus: BTreeMap<NodeId, CpuSet>,
    /// Cpus of the objects, as masks, by `gp_index`.
    objects: HashMap<u64, &'a str>,
    /// Cached nodes within the cpus of objects.
    known: HashMap<u64, Rc<[NodeId]>>,
}

impl<'a> Initiators<'a> {
    fn new(reading: &ReadIndex<'a>) -> Self {
        let objects = reading.document.objects.iter().rev();
        let objects = objects.filter_map(|o| Some((o.gp_index?, o.cpuset.as_deref()?))).collect();
        Self { cpus: reading.cpus_by_node(), objects, known: HashMap::new() }
    }

    /// Nodes all of whose cpus are initiators of a value.
    fn nodes(&mut self, value: &AttributeValue<'_>) -> Result<Rc<[NodeId]>, FormatError> {
        if let Some(mask) = &value.initiator_cpuset {
            return self.within(mask, value);
        }
        let object = value.initiator_gp_index.and_then(|i| Some((i, *self.objects.get(&i)?)));
        let Some((index, mask)) = object else { return Ok([].into()) };
        if let Some(nodes) = self.known.get(&index) {
            return Ok(nodes.clone());
        }
        let nodes = self.within(mask, value)?;
        self.known.insert(index, nodes.clone());
        Ok(nodes)
    }

    fn within(&self, mask: &str, value: &AttributeValue<'_>) -> Result<Rc<[NodeId]>, FormatError> {
        let set: CpuSet =
            mask::parse(mask).ok_or_else(|| value.place.fail_at(mask, mask::EXPECTED))?;
        let within = self.cpus.iter().filter(|(_, cpus)| cpus.is_subset(&set));
        Ok(within.map(|(&node, _)| node).collect())
    }
}
