//! Interconnect links: `[[link]]`, each for one pair of nodes or for several equal ones.

use super::reader::{TomlItem, TomlTable};
use crate::FormatError;
use atoll_topology::{Link, LinkId, NodeId, Quantity};

/// Maximum number of links: several for each possible node.
const LINKS_MAX: usize = 65_536;

/// The links in file order, which defines their numbers.
pub(super) fn read(top: &TomlTable<'_>, nodes: &[NodeId]) -> Result<Vec<Link>, FormatError> {
    let mut links = Vec::new();
    for table in top.tables("link")? {
        let figures = Quantity::ALL.map(Quantity::name);
        let known: Vec<&str> =
            ["nodes", "kind", "source", "origin"].into_iter().chain(figures).collect();
        table.keys(&known)?;
        let kind = table.need("kind", "what it is, such as \"QPI\"")?.text()?;
        for (a, b) in pairs(&table, nodes)? {
            if links.len() == LINKS_MAX {
                return Err(table.fail("more links", format!("at most {LINKS_MAX}")));
            }
            links.push(Link { id: LinkId(links.len() as u32), a, b, kind: kind.to_owned() });
        }
    }
    Ok(links)
}

/// Number of links of an entry.
pub(super) fn count(table: &TomlTable<'_>) -> Result<usize, FormatError> {
    let item = nodes_of(table)?;
    Ok(if item.is_nested() { item.items("pairs")?.len() } else { 1 })
}

fn nodes_of<'a>(table: &TomlTable<'a>) -> Result<TomlItem<'a>, FormatError> {
    table.need("nodes", "two nodes such as [0, 1], or pairs such as [[0, 1], [1, 2]]")
}

fn pairs(table: &TomlTable<'_>, nodes: &[NodeId]) -> Result<Vec<(NodeId, NodeId)>, FormatError> {
    let item = nodes_of(table)?;
    match item.is_nested() {
        true => item.items("pairs")?.map(|item| pair(item, nodes)).collect(),
        false => Ok(vec![pair(item, nodes)?]),
    }
}

/// Two different nodes of the machine, the smaller first.
fn pair(item: TomlItem<'_>, nodes: &[NodeId]) -> Result<(NodeId, NodeId), FormatError> {
    let ends: Vec<NodeId> = item
        .items("two nodes")?
        .take(3)
        .map(|end| match end.number(u32::MAX).map(NodeId) {
            Ok(id) if nodes.binary_search(&id).is_err() => Err(end.wrong("a node of the machine")),
            other => other,
        })
        .collect::<Result<_, _>>()?;
    match ends[..] {
        [a, b] if a != b => Ok((a.min(b), a.max(b))),
        _ => Err(item.wrong("two different nodes")),
    }
}
