//! The picture: for each arm its ratio to default, and the ends of the interval.

use atoll_tools::bench::stacked;

use super::report::PlacementReport;
use crate::bars::{Bar, BarChart};

/// The picture.
pub(super) fn plot(report: &PlacementReport) -> String {
    let names = ["least that it may be", "ratio to default", "most that it may be"];
    let bars = names.iter().enumerate().map(|(at, name)| Bar::new((*name).to_owned(), at, at != 1));
    let group = |arm: &super::verdict::ArmVerdict| {
        let change = arm.change?;
        let sure = |value| change.is_sure.then_some(value);
        let values = vec![sure(change.low), Some(change.ratio), sure(change.high)];
        let name = format!("{}: {}", arm.arm, arm.verdict);
        Some((name, values))
    };
    let server = report.plan.server.first().map_or("", String::as_str);
    let ratios = BarChart {
        title: format!("{server} under placements; above 1 is better than default"),
        unit: "times default",
        bars: bars.collect(),
        groups: report.arms.iter().filter_map(group).collect(),
    };
    let value = |arm: &super::verdict::ArmVerdict| {
        let spread = arm.spread?;
        Some((arm.arm.clone(), vec![Some(spread.median)]))
    };
    let values = BarChart {
        title: "Median of all rounds".to_owned(),
        unit: report.plan.unit(),
        bars: vec![Bar::new(report.measured(), 0, false)],
        groups: report.arms.iter().filter_map(value).collect(),
    };
    let charts = [ratios, values].into_iter().filter(|chart| !chart.groups.is_empty());
    stacked("atoll bench placement", &charts.map(|chart| chart.panel()).collect::<Vec<_>>())
}
