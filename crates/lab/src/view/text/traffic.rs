//! Accesses between nodes: in total, by region, by tag.

use atoll_simulation::{TagCounts, Traffic};

use super::super::counts::{accesses, hit_rate, local_share, share, sum, total};
use super::super::table::TextTable;
use super::super::words::{count, percent, percent_short, time};
use super::by_node;
use crate::record::RunRecord;

/// With more nodes than this a matrix is shortened to its rows' sums.
const MATRIX_NODES_MAX: usize = 16;
/// Homes of a tag's pages that are named.
const HOMES_NAMED_MAX: usize = 6;

/// Totals, and the matrices of accesses and of missed lines.
pub(super) fn traffic(record: &RunRecord) -> Vec<String> {
    let traffic = &record.report.total;
    let accesses = accesses(traffic);
    vec![
        totals(traffic, &accesses),
        matrix(record, "Accesses", &accesses),
        matrix(record, "Lines that missed the last-level caches", &traffic.lines),
    ]
}

fn totals(traffic: &Traffic, accesses: &[Vec<u64>]) -> String {
    let (loads, stores) = (count(total(&traffic.loads)), count(total(&traffic.stores)));
    let bytes = |rows| atoll_topology::Bytes(total(rows));
    format!(
        "{} accesses ({loads} loads of {}, {stores} stores of {}), {} of them local\n\
         {} lines missed the last-level caches, {} of them of local pages\n\
         {} instructions\n",
        count(total(accesses)),
        bytes(&traffic.load_bytes),
        bytes(&traffic.store_bytes),
        percent(local_share(accesses)),
        count(total(&traffic.lines)),
        percent(local_share(&traffic.lines)),
        count(sum(&traffic.instructions)),
    )
}

/// A matrix with each cell's share of its row.
fn matrix(record: &RunRecord, what: &str, rows: &[Vec<u64>]) -> String {
    let nodes = &record.report.setup.nodes;
    if nodes.len() > MATRIX_NODES_MAX {
        let title = format!("{what} by node of the cpu (the whole matrix is in the JSON)");
        return by_node(record, &title, &["all", "local", "remote"], |at| sums(at, &rows[at]));
    }
    let title = format!("{what}: from cpus of a node (row) to pages of a node (column)");
    let heads: Vec<String> = nodes.iter().map(|node| node.id.to_string()).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    by_node(record, &title, &heads, |at| {
        let row = &rows[at];
        let all = sum(row);
        let cell = |value: &u64| match value {
            0 => "0".to_owned(),
            _ => format!("{} {:>4}", count(*value), percent_short(share(*value, all))),
        };
        (all > 0).then(|| row.iter().map(cell).collect())
    })
}

fn sums(at: usize, row: &[u64]) -> Option<Vec<String>> {
    let all = sum(row);
    let local = share(row[at], all);
    let remote = local.map(|local| 1.0 - local);
    (all > 0).then(|| vec![count(all), percent(local), percent(remote)])
}

/// A line for each region; empty if there are none.
pub(super) fn regions(record: &RunRecord) -> String {
    let heads = [
        "region",
        "opened",
        "accesses",
        "local",
        "missed",
        "local",
        "LLC hit rate",
        "at least",
        "at most",
    ];
    let mut table = TextTable::new(heads);
    for (region, time_of) in record.report.regions.iter().zip(&record.regions) {
        let traffic = &region.traffic;
        let accesses = accesses(traffic);
        let bounds = &time_of.estimate.independent;
        table.row([
            region.number.to_string(),
            count(region.opened),
            count(total(&accesses)),
            percent(local_share(&accesses)),
            count(total(&traffic.lines)),
            percent(local_share(&traffic.lines)),
            percent(hit_rate(traffic)),
            time(bounds.lower),
            time(bounds.upper),
        ]);
    }
    if table.is_empty() {
        return String::new();
    }
    format!(
        "Regions: accesses, lines that missed the last-level caches, estimated time\n{}",
        table.text()
    )
}

/// A line for each tag; empty if there are none.
pub(super) fn tags(record: &RunRecord) -> String {
    let tags = &record.report.total.tags;
    if tags.is_empty() {
        return String::new();
    }
    let mut table =
        TextTable::new(["tag", "accesses", "local", "missed", "local", "pages by home"]);
    for tag in tags {
        table.row([
            tag.tag.to_string(),
            count(total(&tag.accesses)),
            percent(local_share(&tag.accesses)),
            count(total(&tag.lines)),
            percent(local_share(&tag.lines)),
            homes(record, tag),
        ]);
    }
    format!("Tagged pages: accesses, lines that missed the last-level caches\n{}", table.text())
}

/// `0: 12, 1: 13`
fn homes(record: &RunRecord, tag: &TagCounts) -> String {
    let nodes = record.report.setup.nodes.iter().zip(&tag.pages);
    let homes = nodes.filter(|(_, pages)| **pages > 0);
    let mut named: Vec<String> =
        homes.map(|(node, pages)| format!("{}: {}", node.id, count(*pages))).collect();
    if named.len() > HOMES_NAMED_MAX {
        let more = named.len() - HOMES_NAMED_MAX;
        named.truncate(HOMES_NAMED_MAX);
        named.push(format!("{more} more"));
    }
    if named.is_empty() { "none".to_owned() } else { named.join(", ") }
}
