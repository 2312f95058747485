//! What the lab counted while the clients of a system ran under an arm.

use atoll_simulation::{Region, Traffic};
use serde::Serialize;

/// Counts of an arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct ArmCounts {
    pub(super) arm: &'static str,
    /// Share of an instance's resident memory on its own node, as the kernel reports it.
    pub(super) own_pages: f64,
    /// Loads and stores.
    pub(super) accesses: u64,
    /// Whether misses are those of lines of tables, and not all.
    pub(super) is_of_tables: bool,
    /// Lines that missed the last-level caches.
    pub(super) misses: u64,
    /// Share of them whose page is on another node than the cpu.
    pub(super) remote: f64,
    /// The same share of all lines.
    pub(super) all_remote: f64,
    /// Share of the accesses that reached a last-level cache that hit there (figure 7a).
    pub(super) hit_rate: f64,
    /// Share of these hits on shared or forward lines, the others being exclusive or modified (7b).
    pub(super) shared: f64,
    /// Bytes on the busiest link, one way (7c).
    pub(super) busiest_link: u64,
    /// Bytes on all links (7d).
    pub(super) links: u64,
    /// Milliseconds that all cpus wait for memory, by the machine's model.
    pub(super) wait_ms: f64,
}

impl ArmCounts {
    /// Heads of a row.
    pub(super) const HEAD: [&'static str; 11] = [
        "arm",
        "pages on own node",
        "accesses",
        "misses",
        "of them remote",
        "all misses remote",
        "LLC hits (7a)",
        "on S+F lines (7b)",
        "busiest link KiB (7c)",
        "all links KiB (7d)",
        "waiting ms",
    ];

    /// Of the arm's region, and of tagged pages if the system tags its tables; `None` if none of these was read.
    pub(super) fn new(arm: &'static str, region: &Region, is_of_tables: bool) -> Option<Self> {
        let traffic = &region.traffic;
        let lines = match is_of_tables {
            true => &traffic.tags.iter().find(|it| it.tag == region.number)?.lines,
            false => &traffic.lines,
        };
        let caches = || traffic.caches.iter();
        let shared: u64 = caches().map(|it| it.llc_hits.shared + it.llc_hits.forward).sum();
        let owned: u64 = caches().map(|it| it.llc_hits.modified + it.llc_hits.exclusive).sum();
        let misses: u64 = caches().map(|it| it.llc_misses).sum();
        let (busiest_link, links) = links(traffic);
        (sum(lines) > 0).then(|| Self {
            arm,
            own_pages: 0.0,
            accesses: sum(&traffic.loads) + sum(&traffic.stores),
            is_of_tables,
            misses: sum(lines),
            remote: remote(lines),
            all_remote: remote(&traffic.lines),
            hit_rate: share(shared + owned, shared + owned + misses),
            shared: share(shared, shared + owned),
            busiest_link,
            links,
            wait_ms: 0.0,
        })
    }

    /// As a row of a table.
    pub(super) fn row(&self) -> Vec<String> {
        vec![
            self.arm.to_owned(),
            percent(self.own_pages),
            self.accesses.to_string(),
            self.misses.to_string(),
            percent(self.remote),
            percent(self.all_remote),
            percent(self.hit_rate),
            percent(self.shared),
            (self.busiest_link >> 10).to_string(),
            (self.links >> 10).to_string(),
            format!("{:.1}", self.wait_ms),
        ]
    }
}

/// A share in words.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn sum(matrix: &[Vec<u64>]) -> u64 {
    matrix.iter().flatten().sum()
}

/// Share of what is off the diagonal.
fn remote(matrix: &[Vec<u64>]) -> f64 {
    let local: u64 = matrix.iter().enumerate().filter_map(|(node, row)| row.get(node)).sum();
    share(sum(matrix) - local, sum(matrix))
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Bytes on the busiest link, one way, and on all.
fn links(traffic: &Traffic) -> (u64, u64) {
    let ways = || traffic.links.iter().flat_map(|it| [it.forward, it.backward]);
    (ways().max().unwrap_or_default(), ways().sum())
}

#[cfg(test)]
pub(super) mod tests {
    use atoll_simulation::{CacheCounts, LinkTraffic, RunSeries, StateCounts, TagCounts};

    use super::*;

    /// A region of two nodes in which so many of a hundred lines are remote.
    pub(in crate::dbms::reproduce) fn region(remote: u64) -> Region {
        let lines = vec![vec![100 - remote, remote], vec![0, 0]];
        let llc_hits = StateCounts { modified: 10, exclusive: 10, shared: 60, forward: 20 };
        Region {
            number: 3,
            opened: 1,
            series: RunSeries::default(),
            traffic: Traffic {
                loads: vec![vec![900, 0], vec![0, 0]],
                stores: vec![vec![100, 0], vec![0, 0]],
                lines: lines.clone(),
                caches: vec![CacheCounts { llc_hits, llc_misses: 100, ..CacheCounts::default() }],
                links: vec![LinkTraffic { forward: remote * 8, backward: remote * 64 }],
                tags: vec![TagCounts { tag: 3, lines, ..TagCounts::default() }],
                ..Traffic::default()
            },
        }
    }

    #[test]
    fn shares_are_of_what_was_counted() {
        let counts = ArmCounts::new("aligned", &region(4), true).expect("a table");
        assert_eq!((counts.accesses, counts.misses), (1000, 100));
        assert_eq!((counts.remote, counts.hit_rate, counts.shared), (0.04, 0.5, 0.8));
        assert_eq!((counts.busiest_link, counts.links), (256, 288));
        let mut untagged = region(4);
        untagged.traffic.tags[0].tag = 2;
        assert_eq!(ArmCounts::new("aligned", &untagged, true), None);
        assert_eq!(ArmCounts::new("aligned", &untagged, false).map(|it| it.remote), Some(0.04));
    }
}
