//! Pictures as the report has them: paired bars of load times, writes and reads by readers, cpu time.

use atoll_tools::bench::{ChartAxis, Curve, CurveChart, stacked};

use super::case::{KvAnswer, KvWork};
use super::engine::EngineName;
use super::published;
use super::report::KvReport;
use crate::bars::{Bar, BarChart};

const READS: &str = "reads/s";
const WRITES: &str = "writes/s";

/// The pictures, one below the other.
pub(super) fn plot(report: &KvReport) -> String {
    let mut panels = Vec::new();
    for random in [false, true] {
        panels.extend(loads(report, random).map(|it| it.panel()));
    }
    for engine in report.engines() {
        let rates = [curves(report, engine, READS), curves(report, engine, WRITES)];
        let has_any = rates.iter().any(Option::is_some);
        let published = published_curves(report, engine).filter(|_| has_any);
        panels.extend(rates.into_iter().chain([published]).flatten().map(|it| it.panel()));
        panels.extend(cpu(report, engine).map(|it| it.panel()));
    }
    stacked("atoll bench kv", &panels)
}

/// Times of a load: for each engine a bar for each arm.
fn loads(report: &KvReport, random: bool) -> Option<BarChart> {
    let work = KvWork::Load { random };
    let group = |engine: EngineName| {
        let time = |arm: &String| report.median(engine, arm, work, |it| it.usage.wall_s);
        (engine.name().to_owned(), report.plan.arms.iter().map(time).collect::<Vec<_>>())
    };
    let groups: Vec<_> = report.engines().into_iter().map(group).collect();
    let has_any = groups.iter().any(|(_, values)| values.iter().any(Option::is_some));
    let order = if random { "in random order" } else { "by rising key" };
    has_any.then(|| BarChart {
        title: format!("Load of {} records {order}", report.plan.records.count),
        unit: "wall s",
        bars: arms(report).map(|(at, arm)| Bar::new(arm.clone(), at, false)).collect(),
        groups,
    })
}

fn arms(report: &KvReport) -> impl Iterator<Item = (usize, &String)> {
    report.plan.arms.iter().enumerate()
}

/// A figure of a case.
type Figure = fn(&KvAnswer) -> f64;

/// User and system time of an engine: two bars for each arm and number of readers.
fn cpu(report: &KvReport, engine: EngineName) -> Option<BarChart> {
    let times: [(&str, Figure); 2] =
        [("user", |it| it.usage.user_s), ("system", |it| it.usage.system_s)];
    let mut bars = Vec::new();
    for (at, arm) in arms(report) {
        bars.extend(
            times.map(|(name, _)| Bar::new(format!("{arm}, {name}"), at, name == "system")),
        );
    }
    let group = |readers: &u32| {
        let work = KvWork::ReadWhileWriting { readers: *readers };
        let of_arm = |arm: &String| {
            let median = |of: Figure| report.median(engine, arm, work, of);
            times.map(|(_, of)| median(of))
        };
        (readers.to_string(), report.plan.arms.iter().flat_map(of_arm).collect::<Vec<_>>())
    };
    let groups: Vec<_> = report.plan.readers.iter().map(group).collect();
    let has_any = groups.iter().any(|(_, values)| values.iter().any(Option::is_some));
    let title = format!("Cpu time of {} by readers", engine.name());
    has_any.then_some(BarChart { title, unit: "s", bars, groups })
}

/// Rates of an engine over the numbers of readers: a curve for each arm.
fn curves(report: &KvReport, engine: EngineName, unit: &'static str) -> Option<CurveChart> {
    let mut curves = Vec::new();
    for arm in &report.plan.arms {
        for readers in &report.plan.readers {
            let rate = match unit {
                READS => report.reads(engine, arm, *readers),
                _ => report.writes(engine, arm, *readers),
            };
            let Some(rate) = rate else { continue };
            Curve::add(&mut curves, arm.clone(), (f64::from(*readers), rate));
        }
    }
    chart(format!("{unit} of {}", engine.name()), unit, curves)
}

/// Rates of an engine in the report.
fn published_curves(report: &KvReport, engine: EngineName) -> Option<CurveChart> {
    let (_, name) = published::names(engine)?;
    let mut curves = Vec::new();
    for row in report.published.mixed.iter().filter(|row| row.engine == name) {
        for (unit, rate) in [(READS, row.reads_per_s), (WRITES, row.writes_per_s)] {
            Curve::add(&mut curves, unit.to_owned(), (f64::from(row.readers), rate as f64));
        }
    }
    let machine = &report.published.machine;
    chart(format!("{name}, published: {machine}, memory interleaved"), "1/s", curves)
}

fn chart(title: String, unit: &'static str, curves: Vec<Curve>) -> Option<CurveChart> {
    let across = ChartAxis { label: "readers beside one writer", logarithmic: true };
    let up = ChartAxis { label: unit, logarithmic: true };
    (!curves.is_empty()).then_some(CurveChart { title, across, up, curves })
}
