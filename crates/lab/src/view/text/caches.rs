//! Counts of each node's caches, and the bytes of controllers and links.

use atoll_simulation::CacheCounts;
use atoll_topology::Bytes;

use super::super::counts::{controller_bytes, hits as llc_hits, link_bytes, share, sum};
use super::super::table::TextTable;
use super::super::words::{count, percent, percent_short, time};
use super::by_node;
use crate::record::RunRecord;

/// More directions of links than this are counted.
const LINKS_MAX: usize = 64;

/// Hits by level, misses, and what else happened on the way.
pub(super) fn hits(record: &RunRecord) -> String {
    let heads = [
        "L1 hits",
        "L2 hits",
        "LLC hits",
        "misses",
        "LLC hit rate",
        "upgrades",
        "written back",
        "DTLB misses",
    ];
    by_node(record, "Caches, by node of the cpus", &heads, |at| {
        let caches = &record.report.total.caches[at];
        let hits = llc_hits(caches);
        let lookups = hits.saturating_add(caches.llc_misses);
        let all = sum(&[caches.private.l1, caches.private.l2, lookups, caches.dtlb_misses]);
        (all > 0).then(|| {
            vec![
                count(caches.private.l1),
                count(caches.private.l2),
                count(hits),
                count(caches.llc_misses),
                percent(share(hits, lookups)),
                count(caches.upgrades),
                count(caches.writebacks),
                count(caches.dtlb_misses),
            ]
        })
    })
}

/// States in which lines were found in the last-level caches.
pub(super) fn states(record: &RunRecord) -> String {
    let title = "Lines hit in the last-level caches, by the state in which they were";
    let heads = ["modified", "exclusive", "shared", "forward"];
    by_node(record, title, &heads, |at| {
        let caches = &record.report.total.caches[at];
        let states = caches.llc_hits;
        let hits = llc_hits(caches);
        let parts = [states.modified, states.exclusive, states.shared, states.forward];
        (hits > 0).then(|| parts.iter().map(|part| percent(share(*part, hits))).collect())
    })
}

/// Suppliers of the lines that missed.
pub(super) fn sources(record: &RunRecord) -> String {
    let title = "Lines that missed, by who supplied them";
    let heads = ["local memory", "remote memory", "another cache, clean", "another cache, written"];
    by_node(record, title, &heads, |at| {
        let parts = supplied(&record.report.total.caches[at], at);
        let all = sum(&parts);
        let cell = |part: &u64| format!("{} {:>4}", count(*part), percent_short(share(*part, all)));
        (all > 0).then(|| parts.iter().map(cell).collect())
    })
}

/// Lines from local memory, remote memory, clean and written ones from other caches.
fn supplied(caches: &CacheCounts, at: usize) -> [u64; 4] {
    let sources = &caches.sources;
    let local = sources.memory[at];
    let remote = sum(&sources.memory).saturating_sub(local);
    [local, remote, sum(&sources.clean), sum(&sources.dirty)]
}

/// Bytes through each memory controller.
pub(super) fn controllers(record: &RunRecord) -> String {
    let traffic = &record.report.total;
    let bytes = controller_bytes(traffic);
    let busiest = bytes.iter().copied().max().unwrap_or(0);
    let heads = ["read", "written", "of the busiest", "time at its bandwidth"];
    by_node(record, "Memory controllers", &heads, |at| {
        let both = traffic.controllers[at];
        (bytes[at] > 0).then(|| {
            vec![
                Bytes(both.read).to_string(),
                Bytes(both.written).to_string(),
                percent(share(bytes[at], busiest)),
                time(record.estimate.controllers[at].time),
            ]
        })
    })
}

/// Bytes over each link and direction.
pub(super) fn links(record: &RunRecord) -> String {
    let bytes = link_bytes(&record.report.total);
    if bytes.is_empty() && record.report.setup.nodes.len() > 1 {
        return "Links: none are known of this machine\n".to_owned();
    }
    let busiest = bytes.iter().copied().max().unwrap_or(0);
    let mut table =
        TextTable::new(["link", "direction", "bytes", "of the busiest", "time at its bandwidth"]);
    let crossed = record.estimate.links.iter().zip(&bytes).filter(|(_, bytes)| **bytes > 0);
    for (link, bytes) in crossed.clone().take(LINKS_MAX) {
        table.row([
            link.link.to_string(),
            format!("{} → {}", link.from, link.to),
            Bytes(*bytes).to_string(),
            percent(share(*bytes, busiest)),
            time(link.time),
        ]);
    }
    match (bytes.is_empty(), table.is_empty(), crossed.count()) {
        (true, ..) => String::new(),
        (_, true, _) => "Links: nothing crossed one\n".to_owned(),
        (_, _, all) if all > LINKS_MAX => {
            format!("Links\n{}  and {} more\n", table.text(), all - LINKS_MAX)
        }
        _ => format!("Links\n{}", table.text()),
    }
}
