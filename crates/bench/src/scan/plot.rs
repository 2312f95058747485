//! Plots of the results: cost of a query by the number of clients, and throughput by the share of changes.

use atoll_tools::bench::{ChartAxis, Curve, CurveChart, picture};

use super::report::{ScanCase, ScanReport};

/// The picture. Cases of several relations are curves of their own.
pub(super) fn plot(report: &ScanReport) -> String {
    let axis = |label, logarithmic| ChartAxis { label, logarithmic };
    let charts = [
        CurveChart {
            title: "What a query costs".to_owned(),
            across: axis("clients that wait at a time", true),
            up: axis("µs of elapsed time for each query", true),
            curves: curves(report, "read", "clients", |rate| 1e6 / rate),
        },
        CurveChart {
            title: "Throughput while rows change".to_owned(),
            across: axis("share of changes", false),
            up: axis("statements/s", false),
            curves: curves(report, "changes", "changes", |rate| rate),
        },
    ];
    picture("atoll bench scan", &charts)
}

/// A curve for everyone, of the cases of one kind of work, over one of their settings.
fn curves(report: &ScanReport, work: &str, over: &str, value: fn(f64) -> f64) -> Vec<Curve> {
    let several = report.relations.len() > 1;
    let mut curves = Vec::new();
    for case in report.cases.iter().filter(|case| case.throughput.settings["work"] == work) {
        let settings = &case.throughput.settings;
        let Some(at) = settings[over].as_f64() else { continue };
        for subject in &case.throughput.subjects {
            let Some(spread) = subject.spread else { continue };
            Curve::add(&mut curves, name(case, &subject.name, several), (at, value(spread.median)));
        }
    }
    curves
}

fn name(case: &ScanCase, subject: &str, several: bool) -> String {
    let settings = &case.throughput.settings;
    match several {
        true => format!("{subject}, {} rows, {} threads", settings["rows"], settings["threads"]),
        false => subject.to_owned(),
    }
}
