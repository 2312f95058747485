//! Pictures as the paper's figures 5 and 6: throughput of each query under each arm, by that of `default`.

use atoll_tools::bench::stacked;

use super::report::{DEFAULT, DbmsReport};
use super::system::SystemName;
use crate::bars::{Bar, BarChart};

/// The pictures, one below the other.
pub(super) fn plot(report: &DbmsReport) -> String {
    let charts = report.systems().into_iter().filter_map(|system| ratios(report, system));
    let panels: Vec<_> = charts.map(|chart| chart.panel()).collect();
    stacked("atoll bench dbms", &panels)
}

fn ratios(report: &DbmsReport, system: SystemName) -> Option<BarChart> {
    let arms: Vec<&String> = report.plan.arms.iter().filter(|arm| *arm != DEFAULT).collect();
    let mut groups = Vec::new();
    for query in &report.plan.queries {
        let ratio = |arm: &&String| report.comparison(system, *query, arm).map(|it| it.ratio);
        groups.push((query.to_string(), arms.iter().map(ratio).collect::<Vec<_>>()));
    }
    let has_any = groups.iter().any(|(_, values)| values.iter().any(Option::is_some));
    let bars = arms.iter().enumerate().map(|(at, arm)| Bar::new((*arm).clone(), at, false));
    has_any.then(|| BarChart {
        title: format!("{}: throughput by that of default", system.name()),
        unit: "times default",
        bars: bars.collect(),
        groups,
    })
}
