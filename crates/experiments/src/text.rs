//! Results as a table in the manner of the paper's table 1.

use std::fmt::Write;

use crate::plan::size_text;
use crate::{ArmOutcome, ExperimentResults, PlanRow};

/// The table, then notes; at most 100 columns wide.
pub fn table(results: &ExperimentResults) -> String {
    let mut text = results.manifest.text();
    for row in &results.rows {
        push_row(&mut text, results, row);
    }
    push_counters(&mut text, results);
    if !results.notes.is_empty() {
        text.push_str("\nNotes\n");
        for note in &results.notes {
            let _ = writeln!(text, "  {note}");
        }
    }
    text
}

fn push_row(text: &mut String, results: &ExperimentResults, row: &PlanRow) {
    let baseline = results.arms.get(row.baseline);
    let arms: Vec<&ArmOutcome> = std::iter::once(&row.baseline)
        .chain(&row.contrasts)
        .filter_map(|index| results.arms.get(*index))
        .collect();
    if arms.is_empty() {
        return;
    }
    let title = match row.experiment {
        0 => row.name.clone(),
        number => format!("Experiment {number}: {}", row.name),
    };
    let as_run = baseline.filter(|arm| arm.arm.size != arm.arm.size_run);
    let as_run =
        as_run.map_or(String::new(), |arm| format!(" (run with {})", size_text(arm.arm.size_run)));
    let _ = writeln!(
        text,
        "\n{:<46} {:>9}  {:>15} {:>6} {:>8} {:>8}",
        format!("{title}{as_run}"),
        "ns/access",
        "spread",
        "ratio",
        "hit rate",
        "placed"
    );
    for arm in arms {
        push_arm(text, arm, baseline);
    }
}

fn push_arm(text: &mut String, arm: &ArmOutcome, baseline: Option<&ArmOutcome>) {
    if let Some(failure) = &arm.failure {
        let _ = writeln!(text, "  {:<44} failed: {failure}", arm.arm.setting);
        return;
    }
    let Some(ns) = arm.ns else { return };
    let base = baseline.and_then(|baseline| baseline.ns).map(|ns| ns.median);
    let is_baseline = baseline.is_some_and(|baseline| std::ptr::eq(baseline, arm));
    let ratio = match base.filter(|base| *base > 0.0 && !is_baseline) {
        Some(base) => format!("{:.2}", ns.median / base),
        None => String::new(),
    };
    let hits = arm.cache.and_then(crate::CacheLoads::hit_rate);
    let _ = writeln!(
        text,
        "  {:<44} {:>9.2}  {:>15} {ratio:>6} {:>8} {:>8}",
        arm.arm.setting,
        ns.median,
        format!("{:.2} - {:.2}", ns.min, ns.max),
        percent(hits),
        percent(arm.achieved.share()),
    );
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// Why there are no hit rates, once.
fn push_counters(text: &mut String, results: &ExperimentResults) {
    if let Some(reason) = results.arms.iter().find_map(|arm| arm.cache_missing.as_ref()) {
        let _ = writeln!(
            text,
            "\nHit rate: no counters here, the lab counts hits and line states\n  {reason}"
        );
    }
}
