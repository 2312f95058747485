//! Sections next to the nodes: distances, pages, hidden parts and limits.

use super::reader::{TomlItem, TomlTable};
use crate::FormatError;
use atoll_topology::assemble;
use atoll_topology::{Bytes, CpuSet, CpuTimeLimit, Hidden, Limits, MemoryLimit, NodeSet};
use atoll_topology::{HUGE_PAGE_SIZE, PAGE_SIZE};

/// The matrix, ordered by node id, and whether the file has one.
pub(super) fn distances(
    top: &TomlTable<'_>,
    nodes: usize,
) -> Result<(Vec<Vec<u32>>, bool), FormatError> {
    let Some(item) = top.get("distances") else {
        return Ok((assemble::distances_assumed(nodes), false));
    };
    let table = item.table()?;
    table.keys(&["matrix"])?;
    let item = table.need("matrix", "a row for each node")?;
    let square = format!("{nodes} rows of {nodes} distances, one for each node by id");
    let rows = item.items("rows")?;
    if rows.len() != nodes {
        return Err(item.wrong(square));
    }
    let mut matrix = Vec::new();
    for row in rows {
        let cells = row.items("distances")?;
        if cells.len() != nodes {
            return Err(row.wrong(square));
        }
        matrix.push(cells.map(|cell| cell.number(u32::MAX)).collect::<Result<_, _>>()?);
    }
    Ok((matrix, true))
}

/// Page sizes, and whether the file has them.
pub(super) fn pages(top: &TomlTable<'_>) -> Result<(Bytes, Option<Bytes>, bool), FormatError> {
    let Some(item) = top.get("pages") else {
        return Ok((PAGE_SIZE, Some(HUGE_PAGE_SIZE), false));
    };
    let table = item.table()?;
    table.keys(&["size", "huge"])?;
    let size = table.need("size", "the size of a base page")?.size()?;
    let item = table.need("huge", "the size of a transparent huge page, or \"none\"")?;
    let huge = match item.is_text() && item.text()? == "none" {
        true => None,
        false => Some(item.size()?),
    };
    Ok((size, huge, true))
}

/// Cpus and nodes that exist but are not allowed.
pub(super) fn hidden(top: &TomlTable<'_>) -> Result<Hidden, FormatError> {
    let Some(item) = top.get("hidden") else { return Ok(Hidden::default()) };
    let table = item.table()?;
    table.keys(&["cpus", "nodes"])?;
    Ok(Hidden {
        cpus: table.get("cpus").map_or_else(|| Ok(CpuSet::new()), TomlItem::set)?,
        nodes: table.get("nodes").map_or_else(|| Ok(NodeSet::new()), TomlItem::set)?,
    })
}

/// The limits of control groups.
pub(super) fn limits(top: &TomlTable<'_>) -> Result<Limits, FormatError> {
    let Some(item) = top.get("limits") else { return Ok(Limits::default()) };
    let table = item.table()?;
    table.keys(&["memory", "cpu_time"])?;
    let inner = |key, figure| -> Result<_, FormatError> {
        let Some(item) = table.get(key) else { return Ok(None) };
        let table = item.table()?;
        table.keys(&[figure, "file"])?;
        let file = table.need("file", "the file that says so")?.text()?.to_owned();
        Ok(Some((table.need(figure, "the limit")?, file)))
    };
    let memory = match inner("memory", "bytes")? {
        Some((item, file)) => Some(MemoryLimit { bytes: item.size()?, file }),
        None => None,
    };
    let cpu_time = match inner("cpu_time", "cpus")? {
        Some((item, file)) => Some(CpuTimeLimit { cpus: item.figure()?, file }),
        None => None,
    };
    Ok(Limits { memory, cpu_time })
}
