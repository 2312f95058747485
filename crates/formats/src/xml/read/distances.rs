//! Distances between nodes, from hwloc's matrix `NUMALatency`.

use std::collections::HashMap;

use super::ReadIndex;
use crate::FormatError;
use crate::xml::parts::{Distances, XmlInfo};
use crate::xml::scan::XmlPosition;
use atoll_topology::{Fact, Machine, NodeId, Quantity, Source, Subject, assemble};

impl ReadIndex<'_> {
    /// Distances between nodes, and whether the file has all of them.
    pub(super) fn distances(&self, ids: &[NodeId]) -> Result<(Vec<Vec<u32>>, bool), FormatError> {
        if let Some(info) = self.info("atoll.distances") {
            return Ok((rows(info, ids.len())?, true));
        }
        let told = self.told()?;
        let all = ids.iter().all(|from| ids.iter().all(|to| told.contains_key(&(*from, *to))));
        let row = |(from, row): (&NodeId, Vec<u32>)| {
            let value =
                |(to, assumed): (NodeId, u32)| told.get(&(*from, to)).copied().unwrap_or(assumed);
            ids.iter().copied().zip(row).map(value).collect()
        };
        let assumed = assemble::distances_assumed(ids.len());
        Ok((ids.iter().zip(assumed).map(row).collect(), all && !told.is_empty()))
    }

    /// The distances of a file that has only those between some nodes, as one fact each; the machine's distances are
    /// assumed then.
    pub(super) fn partial_distances(&self, machine: &Machine) -> Result<Vec<Fact>, FormatError> {
        if machine.distances_source != Source::Assumed || self.info("atoll.distances").is_some() {
            return Ok(Vec::new());
        }
        let mut told: Vec<_> = self.told()?.into_iter().collect();
        told.sort_unstable();
        let fact = |((from, to), distance)| {
            let subject = Subject::Path { from, to };
            let origin = format!("{}, distances between some nodes", self.document.file);
            Fact::new(subject, Quantity::Distance, f64::from(distance), Source::Declared, origin)
        };
        Ok(told.into_iter().map(fact).filter(|fact| machine.has(fact.subject)).collect())
    }

    /// The distances of the file, by pair of nodes.
    fn told(&self) -> Result<HashMap<(NodeId, NodeId), u32>, FormatError> {
        let of_nodes = || self.document.distances.iter().filter(|matrix| matrix.of == "NUMANode");
        let named = of_nodes().find(|matrix| matrix.name.as_deref() == Some("NUMALatency"));
        // hwloc before 2.1 writes no names; bit 4 of the kind means latency.
        let unnamed = || of_nodes().find(|matrix| matrix.name.is_none() && matrix.kind & 4 != 0);
        named.or_else(unnamed).map_or_else(|| Ok(HashMap::new()), |matrix| self.matrix(matrix))
    }

    /// Values of a matrix by pair of nodes.
    fn matrix(
        &self,
        matrix: &Distances<'_>,
    ) -> Result<HashMap<(NodeId, NodeId), u32>, FormatError> {
        let place = matrix.place;
        let indexes: Vec<u64> = whole_numbers(&matrix.indexes, place)?;
        let values: Vec<u64> = whole_numbers(&matrix.values, place)?;
        let count = matrix.count;
        if indexes.len() != count || count.checked_mul(count) != Some(values.len()) {
            let found = format!("{} indexes and {} values", indexes.len(), values.len());
            return Err(place.fail(found, format!("{count} indexes and {count} × {count} values")));
        }
        let ids = indexes.iter().map(|&index| self.node_at(index, matrix.by_gp_index));
        let ids: Vec<Option<NodeId>> = ids.collect();
        let mut told = HashMap::with_capacity(values.len());
        for (position, value) in values.into_iter().enumerate() {
            if let (Some(from), Some(to)) = (ids[position / count], ids[position % count]) {
                let fail = |_| place.fail(format!("the distance {value}"), "a smaller one");
                told.insert((from, to), u32::try_from(value).map_err(fail)?);
            }
        }
        Ok(told)
    }

    fn node_at(&self, index: u64, by_gp_index: bool) -> Option<NodeId> {
        if !by_gp_index {
            return u32::try_from(index)
                .ok()
                .map(NodeId)
                .filter(|node| self.nodes.contains_key(node));
        }
        let has_index = |object: usize| self.document.objects[object].gp_index == Some(index);
        self.nodes.iter().find(|(_, object)| has_index(**object)).map(|(&node, _)| node)
    }
}

fn whole_numbers(text: &str, place: XmlPosition<'_>) -> Result<Vec<u64>, FormatError> {
    let number = |text: &str| text.parse().map_err(|_| place.fail_at(text, "a whole number"));
    text.split_whitespace().map(number).collect()
}

/// Rows such as `10,20 20,10`.
fn rows(info: &XmlInfo<'_>, nodes: usize) -> Result<Vec<Vec<u32>>, FormatError> {
    let row =
        |row: &str| row.split(',').map(|cell| cell.parse().ok()).collect::<Option<Vec<u32>>>();
    let rows: Option<Vec<Vec<u32>>> = info.value.split(' ').map(row).collect();
    let is_square =
        |rows: &Vec<Vec<u32>>| rows.len() == nodes && rows.iter().all(|row| row.len() == nodes);
    let fail = || info.place.fail_at(&info.value, format!("{nodes} rows of {nodes} distances"));
    rows.filter(is_square).ok_or_else(fail)
}
