//! What the lab counted while an arm's queries ran, and what is expected of it.

use atoll_simulation::{Region, Traffic};
use serde::Serialize;

use super::findings::Verdict;

/// Counts of an arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct ArmCounts {
    arm: &'static str,
    /// Loads and stores of the queries.
    accesses: u64,
    /// Lines of tables that missed the last-level cache.
    table_misses: u64,
    /// Share of them whose page is on another node than the cpu.
    table_remote: f64,
    /// The same share of all lines.
    remote: f64,
    /// Share of the accesses that reached a last-level cache that hit there (figure 7a).
    hit_rate: f64,
    /// Share of these hits on shared or forward lines, the others being exclusive or modified (7b).
    shared: f64,
    /// Bytes on the busiest link, one way, for each access (7c).
    busiest_link: f64,
    /// Bytes on all links for each access (7d).
    links: f64,
}

/// What is expected, and whether it was counted.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CountedFinding {
    pub(super) says: &'static str,
    pub(super) because: String,
    pub(super) verdict: Verdict,
}

impl ArmCounts {
    /// Heads of a row.
    pub(super) const HEAD: [&'static str; 9] = [
        "arm",
        "accesses",
        "tables' misses",
        "of them remote",
        "all misses remote",
        "LLC hits (7a)",
        "on S+F lines (7b)",
        "busiest link B/access (7c)",
        "all links B/access (7d)",
    ];

    /// Of the arm's region; `None` if no page of a table was read in it.
    pub(super) fn new(arm: &'static str, region: &Region) -> Option<Self> {
        let traffic = &region.traffic;
        let tag = traffic.tags.iter().find(|it| it.tag == region.number)?;
        let accesses = sum(&traffic.loads) + sum(&traffic.stores);
        let caches = || traffic.caches.iter();
        let shared: u64 = caches().map(|it| it.llc_hits.shared + it.llc_hits.forward).sum();
        let owned: u64 = caches().map(|it| it.llc_hits.modified + it.llc_hits.exclusive).sum();
        let misses: u64 = caches().map(|it| it.llc_misses).sum();
        let (busiest, all) = links(traffic);
        Some(Self {
            arm,
            accesses,
            table_misses: sum(&tag.lines),
            table_remote: remote(&tag.lines),
            remote: remote(&traffic.lines),
            hit_rate: share(shared + owned, shared + owned + misses),
            shared: share(shared, shared + owned),
            busiest_link: share(busiest, accesses),
            links: share(all, accesses),
        })
    }

    /// As a row of a table.
    pub(super) fn row(&self) -> Vec<String> {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        vec![
            self.arm.to_owned(),
            self.accesses.to_string(),
            self.table_misses.to_string(),
            percent(self.table_remote),
            percent(self.remote),
            percent(self.hit_rate),
            percent(self.shared),
            format!("{:.3}", self.busiest_link),
            format!("{:.3}", self.links),
        ]
    }
}

/// What is expected of `default`, `aligned`, `ahead(1)` and `interleave`, in this order, on so many nodes.
pub(super) fn findings(nodes: usize, arms: &[ArmCounts]) -> Vec<CountedFinding> {
    let [default, aligned, ahead, interleave] = arms else { return Vec::new() };
    let even = (nodes.saturating_sub(1)) as f64 / nodes.max(1) as f64;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let others = [aligned, ahead, interleave];
    let each = |of: fn(&ArmCounts) -> f64, show: fn(f64) -> String| {
        let one = |it: &ArmCounts| format!("{} {}", it.arm, show(of(it)));
        arms.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let shares = |of| each(of, |share| format!("{:.1} %", share * 100.0));
    let bytes = |of| each(of, |bytes| format!("{bytes:.3}"));
    let finding = |says, because: String, is_so| CountedFinding {
        says,
        because,
        verdict: if is_so { Verdict::Confirms } else { Verdict::Contradicts },
    };
    vec![
        finding(
            "aligned: at most 5 % of the tables' misses are remote",
            percent(aligned.table_remote),
            aligned.table_remote <= 0.05,
        ),
        finding(
            "interleave: within 3 points of (S - 1)/S",
            format!("{}, expected {}", percent(interleave.table_remote), percent(even)),
            (interleave.table_remote - even).abs() <= 0.03,
        ),
        finding("ahead(1): at least 95 %", percent(ahead.table_remote), ahead.table_remote >= 0.95),
        finding(
            "7a: default hits the last-level cache least (20 %, the others 35 %)",
            shares(|it| it.hit_rate),
            others.iter().all(|it| default.hit_rate < it.hit_rate),
        ),
        finding(
            "7b: default has most hits on shared or forward lines (62.6 %, the others 26 %)",
            shares(|it| it.shared),
            others.iter().all(|it| default.shared > it.shared),
        ),
        finding(
            "7c: on one link aligned (near 0) < interleave < default < ahead(1)",
            bytes(|it| it.busiest_link),
            [aligned, interleave, default, ahead]
                .is_sorted_by(|a, b| a.busiest_link < b.busiest_link),
        ),
        finding(
            "7d: on all links default takes as much as ahead(1), within a fifth",
            bytes(|it| it.links),
            (default.links / ahead.links.max(1e-9) - 1.0).abs() <= 0.2,
        ),
    ]
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
mod tests {
    use atoll_simulation::{CacheCounts, LinkTraffic, RunSeries, StateCounts, TagCounts};

    use super::*;

    /// A region of two nodes in which so many of a hundred lines are remote.
    fn region(remote: u64) -> Region {
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
        let counts = ArmCounts::new("aligned", &region(4)).expect("a table");
        assert_eq!((counts.accesses, counts.table_misses), (1000, 100));
        assert_eq!((counts.table_remote, counts.hit_rate, counts.shared), (0.04, 0.5, 0.8));
        assert_eq!((counts.busiest_link, counts.links), (0.256, 0.288));
        let mut untagged = region(4);
        untagged.traffic.tags[0].tag = 2;
        assert_eq!(ArmCounts::new("aligned", &untagged), None);
    }

    #[test]
    fn expectations_are_confirmed_or_contradicted() {
        let arm = |name, remote| ArmCounts::new(name, &region(remote)).expect("a table");
        let verdicts = |remote: [u64; 4]| {
            let names = ["default", "aligned", "ahead(1)", "interleave"];
            let arms: Vec<_> = names.into_iter().zip(remote).map(|it| arm(it.0, it.1)).collect();
            let confirms = |it: &CountedFinding| it.verdict == Verdict::Confirms;
            findings(2, &arms).iter().map(confirms).collect::<Vec<_>>()
        };
        assert_eq!(verdicts([90, 5, 95, 52]), [true, true, true, false, false, true, true]);
        assert_eq!(verdicts([10, 6, 94, 54]), [false, false, false, false, false, false, false]);
    }
}
