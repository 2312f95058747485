//! SLIT distances: `/sys/devices/system/node/node*/distance`.
//!
//! A node's row has one column for each node that is online, in the order of their numbers, which
//! may be sparse. Firmware may give different distances there and back; they are kept as they are.

use atoll_sys::Root;

use super::nodes::{self, Nodes};
use super::read;
use crate::assemble;
use crate::discover::DiscoverError;
use crate::{NodeId, NodeSet, Source};

/// Distances among the kept nodes, and where they come from: assumed where the kernel has none.
pub(super) fn read(
    root: &Root,
    nodes: &Nodes,
    kept: &NodeSet,
) -> Result<(Vec<Vec<u32>>, Source), DiscoverError> {
    let mut rows = Vec::with_capacity(kept.len());
    for node in kept.iter() {
        match row(root, nodes, node)? {
            Some(row) => rows.push(only(&row, nodes, kept)),
            None => return Ok((assemble::distances_assumed(kept.len()), Source::Assumed)),
        }
    }
    Ok((rows, Source::Discovered))
}

/// Distances from one node to all that are online; none where the kernel has none.
fn row(root: &Root, nodes: &Nodes, node: NodeId) -> Result<Option<Vec<u32>>, DiscoverError> {
    let name = nodes::file(node, "distance");
    let Some(text) = root.read_text_if_present(&name)? else { return Ok(None) };
    let row: Result<Vec<u32>, _> = text.split_whitespace().map(str::parse).collect();
    let expected = "one distance for each node online";
    match row {
        Ok(row) if row.len() == nodes.online.len() => Ok(Some(row)),
        _ => Err(read::malformed(root, &name, expected, &text)),
    }
}

/// The columns of the kept nodes.
fn only(row: &[u32], nodes: &Nodes, kept: &NodeSet) -> Vec<u32> {
    let columns = nodes.online.iter().zip(row);
    columns.filter(|(node, _)| kept.contains(node.id)).map(|(_, &distance)| distance).collect()
}
