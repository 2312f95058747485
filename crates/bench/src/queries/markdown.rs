//! Tables of queries and engines in Markdown.

use std::fmt::Write;

use super::engines::EngineMeasured;
use super::times::{QueryTimes, ScanReached, TimedQueries, Total};
use crate::table::table;
use crate::trials::TrialCase;

impl<C: TrialCase> TimedQueries<C> {
    /// A section with a row for each query, their sums and means, and the problems.
    pub(crate) fn to_markdown(&self, engines: &[EngineMeasured]) -> String {
        let mut text =
            "\n## Queries: median ms (half the spread between the quartiles)\n\n".to_owned();
        let engines: Vec<&str> = engines.iter().map(|it| it.loaded.engine.as_str()).collect();
        let has_scans = self.queries.iter().any(|query| query.scan.is_some());
        let mut head = vec!["query".to_owned()];
        head.extend(engines.iter().map(|engine| format!("{engine} ms")));
        head.extend(engines.iter().skip(1).map(|rival| format!("atoll / {rival}")));
        head.push("rows".to_owned());
        if has_scans {
            head.extend(["scan GB/s", "of bandwidth"].map(str::to_owned));
        }
        let mut rows: Vec<Vec<String>> =
            self.queries.iter().map(|query| row(query, engines.len())).collect();
        rows.extend(self.sums("all", |total| (total.total_ms, total.atoll_ratio)));
        rows.extend(self.sums("geometric mean", |total| {
            (total.geometric_mean_ms, total.atoll_ratio_geometric_mean)
        }));
        rows.iter_mut().for_each(|row| row.resize(head.len(), String::new()));
        text.push_str(&table(&head, &rows));
        // Writing to a string cannot fail.
        if self.totals_queries < self.queries.len() {
            let (some, all) = (self.totals_queries, self.queries.len());
            let _ = writeln!(
                text,
                "\nThe last two rows are over {some} of {all} queries; see the problems."
            );
        }
        text
    }

    /// A section with the problems; empty where there are none.
    pub(crate) fn problems_markdown(&self) -> String {
        if self.problems.is_empty() {
            return String::new();
        }
        let lines = self.problems.iter().map(|problem| format!("- ERROR: {problem}\n"));
        format!("\n## Problems\n\n{}", lines.collect::<String>())
    }

    /// A row of sums; None if no query was answered.
    fn sums(&self, name: &str, of: impl Fn(&Total) -> (f64, f64)) -> Option<Vec<String>> {
        if self.totals.is_empty() {
            return None;
        }
        let mut row = vec![name.to_owned()];
        row.extend(self.totals.iter().map(|total| format!("{:.1}", of(total).0)));
        row.extend(self.totals.iter().skip(1).map(|total| format!("{:.2}", of(total).1)));
        Some(row)
    }
}

fn row<C: TrialCase>(query: &QueryTimes<C>, engines: usize) -> Vec<String> {
    let mut row = vec![query.case.to_string()];
    if query.times.is_empty() {
        row.extend((0..engines).map(|_| "FAILED".to_owned()));
        row.extend((1..engines).map(|_| "-".to_owned()));
    } else {
        row.extend(query.times.iter().map(|times| {
            let half = (times.ms.quartile_high - times.ms.quartile_low) / 2.0;
            format!("{:.1} (±{half:.1})", times.ms.median)
        }));
        row.extend(query.times.iter().skip(1).map(|it| format!("{:.2}", it.atoll_ratio)));
    }
    row.push(query.rows.to_string());
    if let Some(ScanReached { bytes_per_second, bandwidth_share, .. }) = query.scan {
        row.push(format!("{:.1}", bytes_per_second / 1e9));
        row.push(format!("{:.0} %", bandwidth_share * 100.0));
    }
    row
}
