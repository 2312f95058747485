//! Tables of throughput.

use crate::dbms::query::DbmsQuery;
use crate::dbms::report::{BESIDE, DEFAULT, DbmsReport, OWN};
use crate::dbms::system::SystemName;
use crate::table::table;

/// Share by which the halves of a run may differ.
const DRIFT_MAX: f64 = 0.1;

/// Throughput of each query under each arm.
pub(in crate::dbms) fn throughputs(report: &DbmsReport, system: SystemName) -> String {
    let mut head = vec!["query".to_owned(), "access".to_owned()];
    for arm in &report.plan.arms {
        head.push(format!("{arm} per s"));
        if arm != DEFAULT {
            head.push("by default".to_owned());
            head.push("verdict".to_owned());
        }
    }
    let row = |query: &DbmsQuery| {
        let mut row = vec![query.to_string(), query.pattern().to_owned()];
        for arm in &report.plan.arms {
            let answers = report.answers(system, *query, arm);
            let is_unsteady = answers
                .iter()
                .any(|it| it.drift.is_some_and(|drift| (drift - 1.0).abs() > DRIFT_MAX));
            let mark = if is_unsteady { " (unsteady)" } else { "" };
            let summary = report.summary(system, *query, arm, OWN);
            row.push(summary.map_or("-".to_owned(), |it| format!("{it}{mark}")));
            if arm == DEFAULT {
                continue;
            }
            let comparison = report.comparison(system, *query, arm);
            row.push(comparison.map_or("-".to_owned(), |it| format!("{:.2}", it.ratio)));
            row.push(comparison.map_or("-", |it| it.verdict.words()).to_owned());
        }
        row
    };
    let rows: Vec<Vec<String>> = report.plan.queries.iter().map(row).collect();
    let mut text = table(&head, &rows);
    if text.contains("(unsteady)") {
        text.push_str(
            "\nUnsteady: the halves of a run differ by more than 10 %; more --warmup helps.\n",
        );
    }
    text
}

/// Throughput of the query beside each query.
pub(in crate::dbms) fn throughputs_beside(report: &DbmsReport, system: SystemName) -> String {
    let Some(beside) = report.plan.beside else { return String::new() };
    let mut head = vec!["beside".to_owned()];
    for arm in &report.plan.arms {
        head.push(format!("{arm} {beside}/s"));
        head.extend((arm != DEFAULT).then(|| "by default".to_owned()));
    }
    let row = |query: &DbmsQuery| {
        let mut row = vec![query.to_string()];
        for arm in &report.plan.arms {
            let found = report.summary(system, *query, arm, BESIDE);
            row.push(found.map_or("-".to_owned(), |it| it.to_string()));
            if arm != DEFAULT {
                let ratio = report.ratio(system, *query, arm, BESIDE);
                row.push(ratio.map_or("-".to_owned(), |it| format!("{it:.2}")));
            }
        }
        row
    };
    let rows: Vec<Vec<String>> = report.plan.queries.iter().map(row).collect();
    format!("\nThroughput of {beside} beside each query:\n\n{}", table(&head, &rows))
}

/// Transactions that failed and were run again, under each arm.
pub(in crate::dbms) fn repeated(report: &DbmsReport, system: SystemName) -> String {
    let of_arm = |arm: &String| -> u64 {
        let answers = |query: &DbmsQuery| report.answers(system, *query, arm);
        report.plan.queries.iter().flat_map(answers).map(|it| it.repeats).sum()
    };
    let counts = report.plan.arms.iter().map(|arm| (arm, of_arm(arm)));
    let counts: Vec<String> =
        counts.filter(|it| it.1 > 0).map(|(arm, count)| format!("{arm} {count}")).collect();
    match counts.is_empty() {
        true => String::new(),
        false => {
            format!("\nTransactions that failed and were run again: {}.\n", counts.join(", "))
        }
    }
}
