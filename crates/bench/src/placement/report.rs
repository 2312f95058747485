//! The results: each arm's ratio to default with a verdict, the placement achieved, the papers' findings.

use std::fmt::Write;

use anyhow::Result;
use atoll_tools::bench::{Manifest, Measurement};
use atoll_topology::Bytes;
use serde::Serialize;
use serde_json::json;

use super::plan::PlacementPlan;
use super::plot;
use super::rounds::{PlacementAnswer, PlacementResult, PlacementRun};
use super::verdict::{ArmVerdict, Rules, verdicts};
use super::worth::{PublishedWorth, published};
use super::{BetterName, PlacementArgs};
use crate::table::table;
use crate::trials::TrialReport;

/// The whole report.
#[derive(Debug, Serialize)]
pub(super) struct PlacementReport {
    pub(super) plan: PlacementPlan,
    confidence: f64,
    threshold: f64,
    /// Times in the lab are the emulator's.
    is_lab: bool,
    notes: Vec<String>,
    pub(super) arms: Vec<ArmVerdict>,
    results: Vec<PlacementResult>,
    published: Vec<PublishedWorth>,
    pub(super) problems: Vec<String>,
}

impl TrialReport for PlacementReport {
    const NAME: &'static str = "placement";

    fn measurements(&self) -> Vec<Measurement> {
        let case = json!({ "load": self.plan.load });
        let of = match self.plan.better {
            BetterName::More => Measurement::rates,
            BetterName::Less => Measurement::times,
        };
        let unit = self.plan.unit();
        let measured = self.arms.iter().filter(|arm| !arm.values.is_empty());
        measured.map(|arm| of(&case, arm.arm.as_str(), unit, arm.values.clone())).collect()
    }

    fn to_markdown(&self, manifest: &Manifest) -> String {
        let mut text = format!(
            "# What placement is worth\n\n{manifest}- server: `{}`\n- load: `{}`\n- {}\n\n",
            self.plan.server.join(" "),
            self.plan.load,
            self.measured()
        );
        for note in &self.notes {
            let _ = writeln!(text, "{note}\n");
        }
        text.push_str(&self.ratios());
        let _ = write!(
            text,
            "\nRatios are to default, medians of all pairs of rounds; above 1 is better. Intervals hold with {} % \
             confidence over all looks at them; differences up to {} % count as the same.\n",
            percent(self.confidence),
            percent(self.threshold)
        );
        text.push_str("\n## Placement achieved\n\n");
        text.push_str(&self.placements());
        text.push_str("\n## What it was worth elsewhere\n\n");
        text.push_str(&self.elsewhere());
        if !self.problems.is_empty() {
            text.push_str("\n## Problems\n\n");
            for problem in &self.problems {
                let _ = writeln!(text, "- {}", problem.replace('\n', "\n  "));
            }
        }
        text
    }

    fn plot(&self) -> String {
        plot::plot(self)
    }

    fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl PlacementReport {
    /// The report of a run.
    ///
    /// # Errors
    /// When the published figures cannot be read.
    pub(super) fn new(
        plan: PlacementPlan,
        args: &PlacementArgs,
        run: PlacementRun,
        manifest: &Manifest,
    ) -> Result<Self> {
        let arms = verdicts(&plan, &Rules::new(args), &run.results);
        let problem = |it: &PlacementResult| {
            let after = it.answer.as_ref().and_then(|answer| answer.problem.as_ref());
            Some(format!("{}: {}", it.case, it.error.as_ref().or(after)?))
        };
        let problems = run.results.iter().filter_map(problem).collect();
        let is_lab = manifest.machine.is_lab;
        Ok(Self {
            confidence: args.confidence,
            threshold: args.threshold,
            is_lab,
            notes: notes(&plan, is_lab),
            arms,
            results: run.results,
            published: published()?,
            problems,
            plan,
        })
    }

    /// What is measured, in words.
    pub(super) fn measured(&self) -> String {
        let better = match self.plan.better {
            BetterName::More => "more is better",
            BetterName::Less => "less is better",
        };
        match &self.plan.metric {
            Some(metric) => format!("metric `{metric}`; {better}"),
            None => format!("seconds of the load; {better}"),
        }
    }

    fn ratios(&self) -> String {
        let head = ["arm", "rounds", "median", "least–most", "ratio", "interval", "verdict"];
        let row = |arm: &ArmVerdict| {
            let spread = arm.spread;
            let change = arm.change;
            let interval = change.filter(|it| it.is_sure);
            vec![
                arm.arm.clone(),
                arm.values.len().to_string(),
                spread.map_or_else(String::new, |it| figure(it.median)),
                spread.map_or_else(String::new, |it| {
                    format!("{}–{}", figure(it.least), figure(it.most))
                }),
                change.map_or_else(String::new, |it| format!("{:.3}", it.ratio)),
                interval.map_or_else(String::new, |it| format!("{:.3}–{:.3}", it.low, it.high)),
                arm.verdict.to_string(),
            ]
        };
        let rows: Vec<Vec<String>> = self.arms.iter().map(row).collect();
        table(&head.map(str::to_owned), &rows)
    }

    /// Of the last case of each arm.
    fn placements(&self) -> String {
        let head = [
            "arm",
            "asked",
            "cpus allowed",
            "memory",
            "pages by node",
            "threads by node",
            "busy cpus by node",
            "policies in force",
            "refused or unknown",
        ];
        let row = |arm: &ArmVerdict| {
            let answers = self.results.iter().filter(|it| it.case.arm == arm.arm);
            let answer: &PlacementAnswer =
                answers.filter_map(|it| it.answer.as_ref()).next_back()?;
            let placement = &answer.placement;
            let seen = &placement.seen;
            let bytes = Bytes(seen.nodes.values().sum());
            let by_node = |pairs: Vec<String>| pairs.join(", ");
            let threads = seen.threads.iter().map(|(node, count)| format!("{node}: {count}"));
            let busy = placement.busy_cpus.iter().map(|(node, cpus)| format!("{node}: {cpus:.2}"));
            let policies = seen.policies.iter();
            let policies = policies.map(|(name, bytes)| format!("{} under {name}", Bytes(*bytes)));
            Some(vec![
                arm.arm.clone(),
                seen.asked.clone(),
                seen.cpus.clone(),
                bytes.to_string(),
                seen.shares(),
                by_node(threads.collect()),
                by_node(busy.collect()),
                by_node(policies.collect()),
                seen.obstacles.join("; "),
            ])
        };
        let rows: Vec<Vec<String>> = self.arms.iter().filter_map(row).collect();
        table(&head.map(str::to_owned), &rows)
    }

    fn elsewhere(&self) -> String {
        let head = ["arm", "here", "there", "of", "origin"];
        let mut rows = Vec::new();
        for arm in self.arms.iter().skip(1) {
            let here = arm.change.map_or_else(String::new, |it| format!("{:.2}", it.ratio));
            for found in self.published.iter().filter(|it| it.is_about(&arm.arm)) {
                let PublishedWorth { worth, what, origin, .. } = found;
                let cells = [&arm.arm, &here, worth, what, origin];
                rows.push(cells.map(Clone::clone).to_vec());
            }
        }
        match rows.is_empty() {
            true => "Neither paper has these arms.\n".to_owned(),
            false => table(&head.map(str::to_owned), &rows),
        }
    }
}

fn notes(plan: &PlacementPlan, is_lab: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.nodes < 2 {
        notes.push(
            "This machine has one node: all arms put threads and memory in the same place, and differences \
             are noise. `atoll lab run` starts the same command on a machine of several nodes."
                .to_owned(),
        );
    }
    if is_lab {
        notes.push(
            "In the lab times are the emulator's: only the placement achieved counts.".to_owned(),
        );
    }
    notes
}

/// `95`, `99.5`.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// A figure with four digits or as many as it has before the point.
pub(super) fn figure(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => format!("{value:.0}"),
        large if large >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
