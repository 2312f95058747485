//! Pictures as the paper's figures 5 and 6: throughput of each query under each arm, by that of `default`; and how much
//! stays on the instances' own nodes over time.

use atoll_tools::bench::{ChartAxis, Curve, CurveChart, stacked};

use super::case::InstanceSeen;
use super::query::DbmsQuery;
use super::report::{BESIDE, DEFAULT, DbmsReport, OWN};
use super::system::SystemName;
use super::tables::placement::last_answers;
use crate::bars::{Bar, BarChart};

/// The pictures, one below the other.
pub(super) fn plot(report: &DbmsReport) -> String {
    let mut panels = Vec::new();
    for system in report.systems() {
        let loads = [None].into_iter().chain(report.plan.beside.map(Some));
        let charts = loads.filter_map(|beside| ratios(report, system, beside));
        panels.extend(charts.map(|chart| chart.panel()));
        panels.extend(balance(report, system).map(|chart| chart.panel()));
    }
    stacked("atoll bench dbms", &panels)
}

/// Throughput of the queries, or of the one beside each of them.
fn ratios(report: &DbmsReport, system: SystemName, beside: Option<DbmsQuery>) -> Option<BarChart> {
    let of = if beside.is_some() { BESIDE } else { OWN };
    let what = beside.map_or_else(String::new, |beside| format!(" of {beside} beside each query"));
    let arms: Vec<&String> = report.plan.arms.iter().filter(|arm| *arm != DEFAULT).collect();
    let mut groups = Vec::new();
    for query in &report.plan.queries {
        let ratio = |arm: &&String| report.ratio(system, *query, arm, of);
        groups.push((query.to_string(), arms.iter().map(ratio).collect::<Vec<_>>()));
    }
    let has_any = groups.iter().any(|(_, values)| values.iter().any(Option::is_some));
    let bars = arms.iter().enumerate().map(|(at, arm)| Bar::new((*arm).clone(), at, false));
    has_any.then(|| BarChart {
        title: format!("{}: throughput{what} by that of default", system.name()),
        unit: "times default",
        bars: bars.collect(),
        groups,
    })
}

/// Shares of pages and of cpu time on the instances' own nodes, of all instances of an arm together.
fn balance(report: &DbmsReport, system: SystemName) -> Option<CurveChart> {
    let mut curves = Vec::new();
    for (arm, answer) in last_answers(report, system) {
        let looks = answer.instances.iter().map(|it| it.balance.len()).min().unwrap_or(0);
        for look in 0..looks {
            let Some(seconds) = answer.instances.first().map(|it| it.balance[look].seconds) else {
                continue;
            };
            let shares = |of: &dyn Fn(&InstanceSeen) -> Option<f64>| {
                let shares: Vec<f64> = answer.instances.iter().filter_map(of).collect();
                let sum: f64 = shares.iter().sum();
                (!shares.is_empty()).then(|| 100.0 * sum / shares.len() as f64)
            };
            let pages = shares(&|it| it.balance[look].shares(it.node).0);
            let cpus = shares(&|it| it.balance[look].shares(it.node).1);
            for (what, share) in [("pages", pages), ("cpu time", cpus)] {
                if let Some(share) = share {
                    Curve::add(&mut curves, format!("{arm}: {what}"), (seconds, share));
                }
            }
        }
    }
    let axis = |label| ChartAxis { label, logarithmic: false };
    (!curves.is_empty()).then(|| CurveChart {
        title: format!("{}: share of pages and cpu time on the own node", system.name()),
        across: axis("seconds since the clients started"),
        up: axis("%, mean of all instances"),
        curves,
    })
}
