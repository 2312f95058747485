//! Plots of the results: throughput by the number of clients, and memory traffic of each last-level cache over time.

use atoll_tools::bench::{ChartAxis, Curve, CurveChart, picture};

use super::report::{ElasticReport, SettingRuns};

/// The picture.
pub(super) fn plot(report: &ElasticReport) -> String {
    let axis = |label, logarithmic| ChartAxis { label, logarithmic };
    let mut throughput = Vec::new();
    for case in report.cases.iter().filter(|case| case.settings["work"] == "random") {
        let Some(clients) = case.settings["clients"].as_f64() else { continue };
        for runs in &case.modes {
            let Some(rate) = runs.rate() else { continue };
            Curve::add(&mut throughput, runs.mode.to_owned(), (clients, rate));
        }
    }
    let mut charts = vec![CurveChart {
        title: format!("TPC-H in random order, {}", report.engine),
        across: axis("clients", true),
        up: axis("queries/h", false),
        curves: throughput,
    }];
    for case in report.cases.iter().filter(|case| case.settings["work"] != "random") {
        let curves = traffic(case);
        if !curves.is_empty() {
            charts.push(CurveChart {
                title: format!("Memory traffic: {}", case.name()),
                across: axis("seconds", false),
                up: axis("GB/s of each last-level cache", false),
                curves,
            });
        }
    }
    charts.retain(|chart| !chart.curves.is_empty());
    picture("atoll bench elastic", &charts)
}

/// A curve for each mode and cache, of the first run.
fn traffic(case: &SettingRuns) -> Vec<Curve> {
    let mut curves = Vec::new();
    for runs in &case.modes {
        for (cache, moments) in runs.followed.first().into_iter().flat_map(|it| &it.caches) {
            let points = moments.iter().map(|moment| (moment.seconds, moment.gbps)).collect();
            curves.push(Curve { name: format!("{}, cache {cache}", runs.mode), points });
        }
    }
    curves
}
