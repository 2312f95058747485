//! Pictures as the report has them: paired bars of load times, writes and reads by readers, cpu time.

use atoll_svg::canvas::{Area, CanvasSize, Panel, Type};
use atoll_svg::chart::{Axis, AxisScale, SMALL, to_the_left};
use atoll_svg::palette;
use atoll_tools::bench::{ChartAxis, Curve, CurveChart, stacked};

use super::case::{KvAnswer, KvWork};
use super::engine::EngineName;
use super::published;
use super::report::KvReport;

const MARGIN: f64 = 26.0;
const AREA: Area = Area { x: 70.0, y: 60.0, w: 860.0, h: 300.0 };
const LINE: f64 = 16.0;
/// Share of a group's width that its bars fill.
const FILLED: f64 = 0.8;
const READS: &str = "reads/s";
const WRITES: &str = "writes/s";
const HEADING: Type = Type::plain(17.0, palette::INK).bold();

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

/// Bars in groups.
struct BarChart {
    title: String,
    unit: &'static str,
    /// The bars of each group.
    bars: Vec<Bar>,
    /// Name and values of each group; None leaves a gap.
    groups: Vec<(String, Vec<Option<f64>>)>,
}

/// What a bar stands for, and how it looks.
struct Bar {
    name: String,
    colour: &'static str,
    is_hollow: bool,
}

impl Bar {
    fn new(name: String, at: usize, is_hollow: bool) -> Self {
        let (colour, _) = palette::STROKES[at % palette::STROKES.len()];
        Self { name, colour, is_hollow }
    }

    fn draw(&self, panel: &mut Panel, area: Area) {
        let fill = if self.is_hollow { palette::UNKNOWN } else { self.colour };
        panel.rect(area, fill, Some(self.colour), 0.0);
    }
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

impl BarChart {
    fn panel(&self) -> Panel {
        let key = AREA.y + AREA.h + 40.0;
        let size = CanvasSize {
            w: AREA.x + AREA.w + MARGIN,
            h: key + self.bars.len() as f64 * LINE + MARGIN,
        };
        let mut panel = Panel::new(size);
        panel.text((MARGIN, 30.0), size.w - 2.0 * MARGIN, HEADING, &self.title);
        panel.text((AREA.x, AREA.y - 8.0), AREA.w, SMALL, self.unit);
        let values = self.groups.iter().flat_map(|(_, values)| values.iter().flatten().copied());
        let scale = Axis { scale: AxisScale::over(0.0, values), figure };
        for mark in scale.scale.marks() {
            let at = AREA.y + AREA.h * (1.0 - scale.scale.share(mark));
            panel.line((AREA.x, at), (AREA.x + AREA.w, at), palette::UNKNOWN, (1.0, ""));
            to_the_left(&mut panel, (AREA.x - 6.0, at + 3.6), &(scale.figure)(mark));
        }
        let width = AREA.w / self.groups.len().max(1) as f64;
        for (at, (name, values)) in self.groups.iter().enumerate() {
            let left = AREA.x + width * at as f64;
            let middle = (left + width / 2.0, AREA.y + AREA.h + 16.0);
            panel.text(middle, width, SMALL.centred(), name);
            let each = width * FILLED / values.len().max(1) as f64;
            for (place, (bar, value)) in self.bars.iter().zip(values).enumerate() {
                let Some(value) = value else { continue };
                let h = AREA.h * scale.scale.share(*value);
                let x = left + width * (1.0 - FILLED) / 2.0 + each * place as f64;
                bar.draw(&mut panel, Area { x, y: AREA.y + AREA.h - h, w: each, h });
            }
        }
        for (at, bar) in self.bars.iter().enumerate() {
            let y = key + at as f64 * LINE;
            bar.draw(&mut panel, Area { x: AREA.x, y: y - 9.0, w: 10.0, h: 10.0 });
            panel.text((AREA.x + 18.0, y), AREA.w, SMALL, &bar.name);
        }
        panel
    }
}

/// A figure without the digits that rounding left.
fn figure(value: f64) -> String {
    format!("{}", (value * 1e9).round() / 1e9)
}
