//! Distances between nodes, from the matrix that hwloc calls `NUMALatency`.

use std::collections::HashMap;

use super::{ReadIndex, whole};
use crate::FormatError;
use crate::xml::document::Distances;
use crate::xml::scan::XmlPosition;
use atoll_topology::{NodeId, assemble};

impl ReadIndex<'_> {
    /// Distances between nodes, and whether the file tells all of them.
    pub(super) fn distances(&self, ids: &[NodeId]) -> Result<(Vec<Vec<u32>>, bool), FormatError> {
        if let (&[_], Some(info)) = (ids, self.info("atoll.distance")) {
            let distance = whole(info)?.try_into();
            let distance = distance.map_err(|_| info.place.fail_at(&info.value, "a distance"))?;
            return Ok((vec![vec![distance]], true));
        }
        let of_nodes = || self.document.distances.iter().filter(|matrix| matrix.of == "NUMANode");
        let named = of_nodes().find(|matrix| matrix.name.as_deref() == Some("NUMALatency"));
        // hwloc before 2.1 writes no names; bit 4 of the kind means latency.
        let unnamed = || of_nodes().find(|matrix| matrix.name.is_none() && matrix.kind & 4 != 0);
        let assumed = assemble::distances_assumed(ids.len());
        let Some(matrix) = named.or_else(unnamed) else { return Ok((assumed, false)) };
        let told = self.matrix(matrix)?;
        let value = |from: &NodeId, to: &NodeId| told.get(&(*from, *to)).copied();
        let all = ids.iter().all(|from| ids.iter().all(|to| value(from, to).is_some()));
        let row = |(from, row): (&NodeId, Vec<u32>)| {
            ids.iter().zip(row).map(|(to, assumed)| value(from, to).unwrap_or(assumed)).collect()
        };
        Ok((ids.iter().zip(assumed).map(row).collect(), all))
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
