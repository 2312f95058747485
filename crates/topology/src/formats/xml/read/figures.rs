//! Facts: those of ours, or what the memory attributes of a file of hwloc tell.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Reading;
use crate::formats::xml::document::AttributeValue;
use crate::formats::xml::facts::{self, ATTRIBUTES};
use crate::formats::{FormatError, mask};
use crate::{CpuSet, Fact, NodeId, Subject};

impl Reading<'_> {
    /// Facts of ours where the file has our infos, and of the memory attributes where not.
    pub(super) fn facts(&self) -> Result<Vec<Fact>, FormatError> {
        if self.info("atoll.sources").is_some() {
            return self.infos("atoll.fact").map(facts::read).collect();
        }
        let targets: HashMap<u64, NodeId> = self
            .nodes
            .iter()
            .filter_map(|(&node, &object)| Some((self.document.objects[object].gp_index?, node)))
            .collect();
        let cpus = self.cpus_by_node();
        let mut known = BTreeSet::new();
        let mut facts = Vec::new();
        for attribute in &ATTRIBUTES {
            for value in &self.document.attributes {
                let target = value.target.and_then(|index| targets.get(&index).copied());
                let (Some(to), true) = (target, value.attribute == attribute.name) else {
                    continue;
                };
                for from in self.initiators(value, &cpus)? {
                    let subject = Subject::Path { from, to };
                    if known.insert((attribute.quantity, subject)) {
                        facts.push(attribute.fact(value, subject));
                    }
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

    /// Nodes all of whose cpus make the accesses that a value tells of.
    fn initiators(
        &self,
        value: &AttributeValue<'_>,
        cpus: &BTreeMap<NodeId, CpuSet>,
    ) -> Result<Vec<NodeId>, FormatError> {
        let objects = &self.document.objects;
        let object = value
            .initiator_gp_index
            .and_then(|index| objects.iter().find(|object| object.gp_index == Some(index)));
        let text = value.initiator_cpuset.as_ref().or_else(|| object?.cpuset.as_ref());
        let Some(text) = text else { return Ok(Vec::new()) };
        let set: CpuSet =
            mask::parse(text).ok_or_else(|| value.place.fail_at(text, mask::EXPECTED))?;
        let within = cpus.iter().filter(|(_, cpus)| cpus.is_subset(&set));
        Ok(within.map(|(&node, _)| node).collect())
    }
}
