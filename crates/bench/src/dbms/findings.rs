//! What the paper found, and whether ours confirms it, contradicts it, or cannot decide; for each system.

use serde::Serialize;

use super::query::DbmsQuery;
use super::report::{Comparison, DbmsReport, NoiseVerdict};
use super::system::SystemName;
use crate::trials::{Decision, Verdict};

const ALIGNED: &str = "aligned";
const AHEAD: &str = "ahead(1)";
const INTERLEAVE: &str = "interleave";

/// A statement of the paper.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) says: String,
    /// The system of ours that it is about.
    pub(super) system: String,
    pub(super) verdict: Verdict,
    pub(super) because: String,
}

/// A statement in words, and what decides it.
type Statement = (&'static str, fn(&SystemView<'_>) -> Decision);

/// Statements of throughput.
const STATEMENTS: [Statement; 6] = [
    (
        "aligned is as fast as default or faster, at best 1.18 (AMD) and 1.75 times (Intel)",
        |view| view.never_below(ALIGNED),
    ),
    ("aligned gains 10 to 15 % on average (AMD)", |view| view.mean_gain()),
    ("ahead(1) is mostly as fast as default or faster (Intel; on AMD it often loses)", |view| {
        view.mostly_not_below(AHEAD)
    }),
    ("interleave is below default for no query (AMD)", |view| view.never_below(INTERLEAVE)),
    ("interleave lies between aligned and ahead(1) (Intel)", |view| view.between()),
    ("a scan loses most under ahead(1) and interleave: the first synthetic query", |view| {
        view.scan_loses()
    }),
];

/// Statements that need counters.
const COUNTED: [&str; 4] = [
    "7a: 20 % of accesses hit the last-level cache under default, 35 % under the others",
    "7b: 62.6 % hit shared or forward lines under default, 26 % under the others",
    "7c: on one link aligned (near 0) < interleave < default < ahead(1)",
    "7d: on all links default takes about as much as ahead(1)",
];

/// All statements.
pub(super) fn findings(report: &DbmsReport) -> Vec<Finding> {
    let mut all = Vec::new();
    for (says, decide) in STATEMENTS {
        for system in report.systems() {
            let decision = decidable(report).and_then(|()| decide(&SystemView { report, system }));
            all.push(finding(says, system.name(), decision));
        }
    }
    let counters = "it needs counters of caches and links; '--reproduce kiefer' has the lab's";
    all.extend(COUNTED.map(|says| finding(says, "all", Err(counters.to_owned()))));
    all
}

fn decidable(report: &DbmsReport) -> Result<(), String> {
    match (report.is_lab, report.plan.nodes) {
        (true, _) => Err("times in the lab are the emulator's".to_owned()),
        (_, 0 | 1) => {
            Err("this machine has one node; '--reproduce kiefer' has the paper's in the lab"
                .to_owned())
        }
        _ => Ok(()),
    }
}

pub(super) fn finding(says: &str, system: &str, decision: Decision) -> Finding {
    let (verdict, because) = Verdict::from_decision(decision);
    Finding { says: says.to_owned(), system: system.to_owned(), verdict, because }
}

/// The results of a system.
struct SystemView<'a> {
    report: &'a DbmsReport,
    system: SystemName,
}

impl SystemView<'_> {
    /// An arm beside `default` for all queries, each with enough runs.
    fn arm(&self, arm: &str) -> Result<Vec<&Comparison>, String> {
        let is_it = |it: &&Comparison| it.system == self.system && it.arm == arm;
        let all: Vec<_> = self.report.comparisons.iter().filter(is_it).collect();
        if all.is_empty() {
            return Err(format!("{arm} was not measured beside default"));
        }
        match all.iter().any(|it| it.verdict == NoiseVerdict::TooFewRuns) {
            true => Err("fewer than 3 repetitions do not tell a difference from noise".to_owned()),
            false => Ok(all),
        }
    }

    fn never_below(&self, arm: &str) -> Decision {
        let all = self.arm(arm)?;
        let below = all.iter().filter(|it| it.verdict == NoiseVerdict::Slower);
        let below: Vec<String> = below.map(|it| format!("{} {:.2}", it.query, it.ratio)).collect();
        match below.is_empty() {
            true => Ok((true, format!("{} at best, of {} queries", best(&all), all.len()))),
            false => Ok((false, format!("slower: {}", below.join(", ")))),
        }
    }

    fn mostly_not_below(&self, arm: &str) -> Decision {
        let all = self.arm(arm)?;
        let below = all.iter().filter(|it| it.verdict == NoiseVerdict::Slower).count();
        Ok((below * 2 < all.len(), format!("slower for {below} of {} queries", all.len())))
    }

    fn mean_gain(&self) -> Decision {
        let all = self.arm(ALIGNED)?;
        let gain = (mean(&all) - 1.0) * 100.0;
        let text = format!("{gain:+.1} % on average");
        if all.iter().all(|it| it.verdict == NoiseVerdict::WithinNoise) {
            return Err(format!("all within noise: {text}"));
        }
        Ok((gain >= 10.0, text))
    }

    fn between(&self) -> Decision {
        let [aligned, ahead, interleave] = [ALIGNED, AHEAD, INTERLEAVE].map(|arm| self.arm(arm));
        let [aligned, ahead, interleave] = [mean(&aligned?), mean(&ahead?), mean(&interleave?)];
        let text =
            format!("means: aligned {aligned:.2}, interleave {interleave:.2}, ahead(1) {ahead:.2}");
        Ok((ahead <= interleave && interleave <= aligned, text))
    }

    fn scan_loses(&self) -> Decision {
        let scans = [DbmsQuery::NarrowScan, DbmsQuery::WideScan];
        let mut parts = Vec::new();
        let mut is_so = true;
        for arm in [AHEAD, INTERLEAVE] {
            let all = self.arm(arm)?;
            let worst = all.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio));
            let Some(worst) = worst else { continue };
            if worst.verdict != NoiseVerdict::Slower {
                return Err(format!("no query loses more than noise under {arm}"));
            }
            is_so &= scans.contains(&worst.query);
            parts.push(format!("{} {:.2} under {arm}", worst.query, worst.ratio));
        }
        match self.report.plan.queries.iter().any(|query| scans.contains(query)) {
            true => Ok((is_so, parts.join(", "))),
            false => Err("neither narrow-scan nor wide-scan was measured".to_owned()),
        }
    }
}

fn mean(all: &[&Comparison]) -> f64 {
    all.iter().map(|it| it.ratio).sum::<f64>() / all.len().max(1) as f64
}

fn best(all: &[&Comparison]) -> String {
    let best = all.iter().map(|it| it.ratio).max_by(f64::total_cmp);
    best.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    fn verdicts(nodes: usize, factors: &[(&str, f64)]) -> Vec<Verdict> {
        let report = report(nodes, factors);
        let own = report.findings.iter().filter(|it| it.system == "atoll");
        own.map(|it| it.verdict).collect()
    }

    #[test]
    fn statements_are_decided_where_there_are_nodes() {
        use Verdict::{CannotDecide, Confirms, Contradicts};
        let as_published = verdicts(4, &[(ALIGNED, 1.4), (INTERLEAVE, 1.2), (AHEAD, 1.1)]);
        assert_eq!(
            as_published,
            [Confirms, Confirms, Confirms, Confirms, Confirms, CannotDecide],
            "no query loses"
        );
        let otherwise = verdicts(4, &[(ALIGNED, 0.9), (INTERLEAVE, 0.8), (AHEAD, 0.7)]);
        assert_eq!(
            otherwise,
            [Contradicts, Contradicts, Contradicts, Contradicts, Confirms, Confirms]
        );
        let one_node = verdicts(1, &[(ALIGNED, 1.4)]);
        assert!(one_node.iter().all(|it| *it == CannotDecide), "{one_node:?}");
    }

    #[test]
    fn what_needs_counters_is_not_decided() {
        let report = report(4, &[]);
        let counted = report.findings.iter().filter(|it| it.system == "all");
        assert!(
            counted.clone().count() == 4
                && counted.clone().all(|it| it.because.contains("counters"))
        );
    }
}
