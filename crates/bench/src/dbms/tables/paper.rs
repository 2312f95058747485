//! The paper's figures and statements beside ours.

use crate::dbms::findings::Finding;
use crate::dbms::published::PublishedFigure;
use crate::dbms::report::DbmsReport;
use crate::table::table;

/// The published figures beside ours.
pub(in crate::dbms) fn figures(report: &DbmsReport) -> String {
    let head = ["figure", "machine", "quantity", "published", "here"].map(str::to_owned);
    let ratio = |it: Option<f64>| it.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
    let row = |it: &PublishedFigure| {
        let here = match it.quantity.as_str() {
            _ if report.is_lab || report.plan.nodes < 2 => "cannot be measured here".to_owned(),
            best if best.starts_with("best throughput") => ratio(best_aligned(report)),
            mean if mean.starts_with("mean") => ratio(mean_aligned(report)),
            _ => "no counters".to_owned(),
        };
        vec![it.place.clone(), it.machine.clone(), it.quantity.clone(), it.value.to_string(), here]
    };
    let rows: Vec<Vec<String>> = report.published.figure.iter().map(row).collect();
    table(&head, &rows)
}

/// The published statements, and what ours say to them.
pub(in crate::dbms) fn statements(report: &DbmsReport) -> String {
    let head = ["the paper", "system", "ours", "because"].map(str::to_owned);
    let row = |it: &Finding| {
        vec![it.says.clone(), it.system.clone(), it.verdict.to_string(), it.because.clone()]
    };
    table(&head, &report.findings.iter().map(row).collect::<Vec<_>>())
}

/// Ratios of aligned to `default`.
fn aligned(report: &DbmsReport) -> impl Iterator<Item = f64> {
    report.comparisons.iter().filter(|it| it.arm == "aligned").map(|it| it.ratio)
}

fn best_aligned(report: &DbmsReport) -> Option<f64> {
    aligned(report).max_by(f64::total_cmp)
}

fn mean_aligned(report: &DbmsReport) -> Option<f64> {
    let (sum, count) = aligned(report).fold((0.0, 0), |(sum, count), it| (sum + it, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
