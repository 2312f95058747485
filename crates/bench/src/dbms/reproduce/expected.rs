//! What is expected of the counts: of the misses by the placements themselves, of caches, links and waiting by the
//! paper; and whether it was counted.

use super::counts::{ArmCounts, percent};
use crate::dbms::findings::{Finding, finding};
use crate::dbms::system::SystemName;
use crate::trials::Decision;

/// Shares that differ by less do not decide.
const SHARE_NOISE: f64 = 0.01;
/// Amounts that differ by less of the larger one do not decide.
const AMOUNT_NOISE: f64 = 0.03;
/// How far one amount is "about as much" as another.
const ABOUT: f64 = 0.2;

/// What is expected of `default`, `aligned`, `ahead(1)` and `interleave`, in this order, on so many nodes.
pub(super) fn findings(system: SystemName, nodes: usize, arms: &[ArmCounts]) -> Vec<Finding> {
    let [default, aligned, ahead, interleave] = arms else { return Vec::new() };
    let even = nodes.saturating_sub(1) as f64 / nodes.max(1) as f64;
    let others = [aligned, ahead, interleave];
    let hits = |it: &ArmCounts| (it.arm, it.hit_rate);
    let shared = |it: &ArmCounts| (it.arm, it.shared);
    let busiest = |it: &ArmCounts| (it.arm, it.busiest_link as f64 / 1024.0);
    let links = |it: &ArmCounts| (it.arm, it.links as f64 / 1024.0);
    let waits = |it: &ArmCounts| (it.arm, it.wait_ms);
    let statements: [(&str, Decision); 10] = [
        (
            "aligned: at most 5 % of the misses are remote",
            Ok((aligned.remote <= 0.05, percent(aligned.remote))),
        ),
        (
            "interleave: within 3 points of (S - 1)/S",
            Ok((
                (interleave.remote - even).abs() <= 0.03,
                format!("{}, expected {}", percent(interleave.remote), percent(even)),
            )),
        ),
        ("ahead(1): at least 95 %", Ok((ahead.remote >= 0.95, percent(ahead.remote)))),
        (
            "7a: default hits the last-level cache least (20 %, the others 35 %)",
            above_all(others.map(hits), hits(default)),
        ),
        (
            "7b: default has most hits on shared or forward lines (62.6 %, the others 26 %)",
            below_all(others.map(shared), shared(default)),
        ),
        (
            "7c: on one link aligned (near 0) < interleave < default < ahead(1)",
            rising([aligned, interleave, default, ahead].map(busiest), "KiB"),
        ),
        (
            "7d: on all links default takes about as much as ahead(1), within a fifth",
            about(links(default), links(ahead), "KiB"),
        ),
        (
            "figures 5 and 6: aligned is as fast as default or faster (cpus wait less)",
            rising([waits(aligned), waits(default)], "ms"),
        ),
        (
            "figure 6: interleave lies between aligned and ahead(1)",
            rising([aligned, interleave, ahead].map(waits), "ms"),
        ),
        (
            "figure 6: ahead(1) is mostly as fast as default or faster",
            rising([waits(ahead), waits(default)], "ms"),
        ),
    ];
    statements.map(|(says, decision)| finding(says, system.name(), decision)).into()
}

/// An arm's name and what is compared.
type Named = (&'static str, f64);

/// Whether the shares of all others are larger than `low`'s.
fn above_all(others: [Named; 3], low: Named) -> Decision {
    shares(others, low, |other| other - low.1)
}

/// Whether the shares of all others are smaller than `high`'s.
fn below_all(others: [Named; 3], high: Named) -> Decision {
    shares(others, high, |other| high.1 - other)
}

fn shares(others: [Named; 3], one: Named, ahead: impl Fn(f64) -> f64) -> Decision {
    let mut all = vec![one];
    all.extend(others);
    let text: Vec<String> =
        all.iter().map(|(arm, share)| format!("{arm} {}", percent(*share))).collect();
    decide(text.join(", "), others.iter().map(|(_, share)| (ahead(*share), SHARE_NOISE)))
}

/// Whether each amount is larger than the one before it.
fn rising<const N: usize>(all: [Named; N], unit: &str) -> Decision {
    let text: Vec<String> =
        all.iter().map(|(arm, amount)| format!("{arm} {amount:.1} {unit}")).collect();
    let steps =
        all.windows(2).map(|pair| (pair[1].1 - pair[0].1, AMOUNT_NOISE * pair[1].1.max(pair[0].1)));
    decide(text.join(", "), steps)
}

/// By differences and the noise of each: all must be more than noise.
fn decide(text: String, differences: impl Iterator<Item = (f64, f64)>) -> Decision {
    let differences: Vec<_> = differences.collect();
    if differences.iter().any(|(difference, noise)| *difference < -noise) {
        return Ok((false, text));
    }
    match differences.iter().all(|(difference, noise)| difference > noise) {
        true => Ok((true, text)),
        false => Err(format!("too close: {text}")),
    }
}

fn about(one: Named, other: Named, unit: &str) -> Decision {
    let text = format!("{} {:.1} {unit}, {} {:.1} {unit}", one.0, one.1, other.0, other.1);
    let difference = (one.1 - other.1).abs();
    Ok((difference <= ABOUT * one.1.max(other.1), text))
}

#[cfg(test)]
mod tests {
    use super::super::counts::tests::region;
    use super::*;
    use crate::trials::Verdict::{self, CannotDecide, Confirms, Contradicts};

    fn verdicts(remote: [u64; 4], waits: [f64; 4], hits: [f64; 4]) -> Vec<Verdict> {
        let names = ["default", "aligned", "ahead(1)", "interleave"];
        let arm = |at: usize| ArmCounts {
            wait_ms: waits[at],
            hit_rate: hits[at],
            shared: 1.0 - hits[at],
            ..ArmCounts::new(names[at], &region(remote[at]), true).expect("a table")
        };
        let arms: Vec<_> = (0..4).map(arm).collect();
        findings(SystemName::Atoll, 2, &arms).iter().map(|it| it.verdict).collect()
    }

    #[test]
    fn expectations_are_confirmed_contradicted_or_left_open() {
        let as_published = verdicts([90, 5, 95, 52], [4.0, 1.0, 3.0, 2.0], [0.2, 0.35, 0.35, 0.35]);
        assert_eq!(as_published, [Confirms; 10]);
        let otherwise = verdicts([10, 6, 94, 54], [1.0, 4.0, 2.0, 3.0], [0.35, 0.2, 0.2, 0.2]);
        assert_eq!(otherwise, [Contradicts; 10]);
        let close = verdicts([50, 0, 95, 50], [2.0, 2.0, 2.0, 2.0], [0.35, 0.355, 0.4, 0.4]);
        let open = [CannotDecide; 3];
        assert_eq!(close[..3], [Confirms; 3]);
        assert_eq!(close[3..6], open, "{close:?}");
        assert_eq!(close[6], Contradicts);
        assert_eq!(close[7..], open);
    }
}
