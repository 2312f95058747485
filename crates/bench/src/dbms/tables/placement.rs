//! Tables of the placement that was achieved: each instance, the moves of its threads, and its balance over time.

use atoll_topology::Bytes;

use crate::dbms::case::{DbmsAnswer, InstanceSeen};
use crate::dbms::report::DbmsReport;
use crate::dbms::system::SystemName;
use crate::dbms::watch::balance::BalanceSample;
use crate::table::table;

/// The last answer of each arm, of the last query that was measured.
pub(in crate::dbms) fn last_answers(
    report: &DbmsReport,
    system: SystemName,
) -> impl Iterator<Item = (&str, &DbmsAnswer)> {
    report.plan.arms.iter().filter_map(move |arm| {
        let queries = report.plan.queries.iter().rev();
        let mut last = queries.filter_map(|query| report.answers(system, *query, arm).pop());
        Some((arm.as_str(), last.next()?))
    })
}

/// Each instance with its number.
fn instances(
    report: &DbmsReport,
    system: SystemName,
) -> impl Iterator<Item = (&str, usize, &InstanceSeen)> {
    last_answers(report, system).flat_map(|(arm, answer)| {
        let numbered = answer.instances.iter().enumerate();
        numbered.map(move |(number, seen)| (arm, number, seen))
    })
}

/// Where instances were before the clock started.
pub(in crate::dbms) fn placements(report: &DbmsReport, system: SystemName) -> String {
    let head = [
        "arm",
        "instance",
        "clients",
        "per s",
        "asked",
        "cpus",
        "threads by node",
        "pages by node",
        "on its node",
        "policies in force",
        "refused",
    ];
    let rows = instances(report, system).map(|(arm, number, seen)| row(arm, number, seen));
    table(&head.map(str::to_owned), &rows.collect::<Vec<_>>())
}

fn row(arm: &str, number: usize, seen: &InstanceSeen) -> Vec<String> {
    let threads = seen.threads.iter().map(|(node, count)| format!("{node}: {count}"));
    let pages = seen.nodes.iter().map(|(node, bytes)| format!("{node}: {}", Bytes(*bytes)));
    vec![
        arm.to_owned(),
        format!("{number}, node {}", seen.node),
        seen.clients.to_string(),
        format!("{:.2}", seen.per_s),
        seen.asked.clone(),
        seen.cpus.clone(),
        threads.collect::<Vec<_>>().join(", "),
        pages.collect::<Vec<_>>().join(", "),
        seen.local_share().map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        seen.policies.keys().cloned().collect::<Vec<_>>().join(", "),
        seen.obstacles.join("; "),
    ]
}

/// What came of moving threads; empty if no arm does so.
pub(in crate::dbms) fn moves(report: &DbmsReport, system: SystemName) -> String {
    let mut text = String::new();
    for (arm, number, seen) in instances(report, system) {
        let Some(moves) = &seen.migration else { continue };
        let refused = match &moves.why {
            Some(why) => format!("; {} were refused: {why}", moves.refused),
            None => String::new(),
        };
        text.push_str(&format!(
            "- {arm}: all threads of instance {number} were moved {} times; {} threads were then on the node{refused}\n",
            moves.turns, moves.moved
        ));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// The shares on the instance's own node over time; empty if it was not looked at.
pub(in crate::dbms) fn balance(report: &DbmsReport, system: SystemName) -> String {
    let head = ["arm", "instance", "seconds", "pages on its node, %", "cpu time on its node, %"];
    let each = |series: &[BalanceSample], value: &dyn Fn(&BalanceSample) -> String| {
        series.iter().map(value).collect::<Vec<_>>().join(" ")
    };
    let percent =
        |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.0}", share * 100.0));
    let looked = instances(report, system).filter(|(.., seen)| !seen.balance.is_empty());
    let rows = looked.map(|(arm, number, seen)| {
        let (series, node) = (&seen.balance, seen.node);
        vec![
            arm.to_owned(),
            format!("{number}, node {node}"),
            each(series, &|it| format!("{:.1}", it.seconds)),
            each(series, &|it| percent(it.shares(node).0)),
            each(series, &|it| percent(it.shares(node).1)),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!(
            "\nBalance while clients run, from their start:\n\n{}",
            table(&head.map(str::to_owned), &rows)
        ),
    }
}
