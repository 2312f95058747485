//! SLIT distances: `/sys/devices/system/node/node*/distance`.
//!
//! A node's row has one column for each online node, ordered by number, which may be sparse; some kernels (3.10) have
//! one for each possible node. Distances may be asymmetric; they are kept as the firmware reports them.

use super::files::KernelFiles;
use super::nodes::{self, Nodes};
use crate::assemble;
use crate::{NodeId, NodeSet, Source};

/// Distances among the kept nodes, and their source: assumed if the kernel has none.
pub(super) fn read(
    files: &KernelFiles<'_>,
    nodes: &Nodes,
    kept: &NodeSet,
) -> (Vec<Vec<u32>>, Source) {
    let online: Vec<NodeId> = nodes.online.iter().map(|node| node.id).collect();
    let row = |node| row(files, &online, node).map(|row| only(row, kept));
    let rows: Option<Vec<Vec<u32>>> = kept.iter().map(row).collect();
    match rows {
        Some(rows) => (rows, Source::Discovered),
        None => (assemble::distances_assumed(kept.len()), Source::Assumed),
    }
}

/// Distances from one node to others. Returns None if the kernel has none.
fn row(files: &KernelFiles<'_>, online: &[NodeId], node: NodeId) -> Option<Vec<(NodeId, u32)>> {
    let name = nodes::file(node, "distance");
    let text = files.text(&name)?;
    let row: Result<Vec<u32>, _> = text.split_whitespace().map(str::parse).collect();
    let columns = |row: Vec<u32>| {
        let possible = nodes::possible(files);
        let has_all = online.iter().all(|&id| possible.contains(id));
        let ids: Vec<NodeId> = match row.len() {
            columns if columns == online.len() => online.to_vec(),
            columns if columns == possible.len() && has_all => possible.iter().collect(),
            _ => return None,
        };
        Some(ids.into_iter().zip(row).collect())
    };
    let columns: Option<Vec<(NodeId, u32)>> = row.ok().and_then(columns);
    if columns.is_none() {
        files.malformed(&name, "one distance for each node online", &text);
    }
    columns
}

/// The columns of the kept nodes.
fn only(row: Vec<(NodeId, u32)>, kept: &NodeSet) -> Vec<u32> {
    let columns = row.into_iter().filter(|(node, _)| kept.contains(*node));
    columns.map(|(_, distance)| distance).collect()
}
