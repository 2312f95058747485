//! A record as text, at most 100 columns wide unless a name is longer.
//!
//! | File | Owns |
//! |---|---|
//! | `head` | command and settings |
//! | `traffic` | who accessed whose memory, by region and tag too |
//! | `caches` | caches, controllers and links |
//! | `time` | the estimate and its figures |

mod caches;
mod head;
mod time;
mod traffic;

use atoll_topology::NodeSet;

use super::nothing::why_nothing;
use super::table::TextTable;
use crate::record::RunRecord;

/// A run and its counts as text: traffic by node, caches, controllers, links,
/// regions, tags, and the time that the machine itself would take. Where nothing was counted it says
/// why instead.
pub fn text(record: &RunRecord) -> String {
    let head = head::head(record);
    if why_nothing(record).is_some() {
        return head;
    }
    let sections = [
        vec![head],
        traffic::traffic(record),
        vec![caches::hits(record), caches::states(record), caches::sources(record)],
        vec![caches::controllers(record), caches::links(record)],
        vec![traffic::regions(record), traffic::tags(record)],
        vec![time::nodes(record), time::bounds(record), time::figures(record)],
    ];
    let said = sections.into_iter().flatten().filter(|section| !section.is_empty());
    said.collect::<Vec<_>>().join("\n")
}

/// Rows of a table by node; nodes that have nothing to show are named in a line below it.
fn by_node(
    record: &RunRecord,
    title: &str,
    heads: &[&str],
    cells: impl Fn(usize) -> Option<Vec<String>>,
) -> String {
    let mut table = TextTable::new(std::iter::once("node").chain(heads.iter().copied()));
    let mut others = NodeSet::new();
    for (at, node) in record.report.setup.nodes.iter().enumerate() {
        match cells(at) {
            Some(cells) => table.row(std::iter::once(node.id.to_string()).chain(cells)),
            None => {
                others.insert(node.id);
            }
        }
    }
    if table.is_empty() {
        return format!("{title}: nothing\n");
    }
    let rest = match others.len() {
        0 => String::new(),
        1 => format!("  node {others}: nothing\n"),
        _ => format!("  nodes {others}: nothing\n"),
    };
    format!("{title}\n{}{rest}", table.text())
}
