//! Curves in frames, drawn one below the other.

use atoll_svg::canvas::{Area, CanvasSize, Panel, Type};
use atoll_svg::palette;

const MARGIN: f64 = 26.0;
const AREA: Area = Area { x: 70.0, y: 60.0, w: 620.0, h: 380.0 };
/// Width of the list of curves beside the frame.
const KEY: f64 = 240.0;
const LINE: f64 = 16.0;
const HEADING: Type = Type::plain(17.0, palette::INK).bold();
const SMALL: Type = Type::plain(10.5, palette::FAINT);
const SURFACE: &str = "#f8f9fb";
/// Marks that a scale has, about.
const MARKS: f64 = 5.0;

/// Curves in a frame.
#[derive(Clone, Debug)]
pub struct CurveChart {
    /// Stands above it.
    pub title: String,
    /// What the points' first values are.
    pub across: ChartAxis,
    /// What the points' second values are.
    pub up: ChartAxis,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// An axis.
#[derive(Clone, Copy, Debug)]
pub struct ChartAxis {
    /// What it measures, with the unit.
    pub label: &'static str,
    /// Whether equal ratios are equally far apart; else it begins at zero.
    pub logarithmic: bool,
}

/// The points of a subject or a variant.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// Adds a point to the curve of that name.
    pub fn add(curves: &mut Vec<Self>, name: String, point: (f64, f64)) {
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Self { name, points: vec![point] }),
        }
    }
}

/// The charts, one below the other, as a file.
pub fn picture(title: &str, charts: &[CurveChart]) -> String {
    let panels: Vec<Panel> = charts.iter().map(chart).collect();
    let widest = panels.iter().map(|panel| panel.size.w).fold(0.0, f64::max);
    let height = panels.iter().map(|panel| panel.size.h).sum();
    let mut all = Panel::new(CanvasSize { w: widest, h: height });
    let mut y = 0.0;
    for panel in &panels {
        all.put(0.0, y, panel);
        y += panel.size.h;
    }
    all.into_file(title)
}

/// A frame with its curves.
fn chart(chart: &CurveChart) -> Panel {
    let CurveChart { title, across, up, curves } = chart;
    let key = AREA.y + curves.len() as f64 * LINE;
    let h = (AREA.y + AREA.h).max(key) + 50.0;
    let mut panel = Panel::new(CanvasSize { w: AREA.x + AREA.w + KEY + 2.0 * MARGIN, h });
    panel.text((MARGIN, 30.0), panel.size.w - 2.0 * MARGIN, HEADING, title);
    let values = |of: fn(&(f64, f64)) -> f64| curves.iter().flat_map(|curve| &curve.points).map(of);
    let scales =
        (Scale::over(*across, values(|point| point.0)), Scale::over(*up, values(|point| point.1)));
    frame(&mut panel, (across.label, up.label), scales);
    for (at, curve) in curves.iter().enumerate() {
        draw(&mut panel, curve, at, scales);
    }
    panel
}

/// A scale between round figures.
#[derive(Clone, Copy)]
struct Scale {
    least: f64,
    most: f64,
    /// Between two marks: what is added, or, of a logarithmic one, what is multiplied by.
    step: f64,
    logarithmic: bool,
}

impl Scale {
    fn over(axis: ChartAxis, values: impl Iterator<Item = f64>) -> Self {
        let values = values.filter(|value| value.is_finite());
        match axis.logarithmic {
            true => Self::of_ratios(values.filter(|value| *value > 0.0)),
            false => Self::from_zero(values.fold(1.0, f64::max)),
        }
    }

    fn from_zero(most: f64) -> Self {
        let rough = most / MARKS;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        Self { least: 0.0, most: (most / step).ceil() * step, step, logarithmic: false }
    }

    fn of_ratios(values: impl Iterator<Item = f64>) -> Self {
        let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
            let (least, most) = ends.unwrap_or((value, value));
            Some((least.min(value), most.max(value)))
        });
        let (least, most) = ends.unwrap_or((1.0, 10.0));
        let first = least.log10().floor();
        let last = most.log10().ceil().max(first + 1.0);
        let (least, most) = (10_f64.powf(first), 10_f64.powf(last));
        Self { least, most, step: 10.0, logarithmic: true }
    }

    fn marks(self) -> impl Iterator<Item = f64> {
        let Self { least, most, step, logarithmic } = self;
        let count = match logarithmic {
            true => (most / least).log10() / step.log10(),
            false => most / step,
        };
        (0..=count.round() as i32).map(move |mark| match logarithmic {
            true => least * step.powi(mark),
            false => f64::from(mark) * step,
        })
    }

    /// Where a value lies, from 0 to 1.
    fn share(self, value: f64) -> f64 {
        let Self { least, most, logarithmic, .. } = self;
        match logarithmic {
            true => (value / least).log10() / (most / least).log10(),
            false => value / most,
        }
    }

    fn shows(self, value: f64) -> bool {
        value.is_finite() && (!self.logarithmic || value > 0.0)
    }
}

fn place((x, y): (f64, f64), (across, up): (Scale, Scale)) -> (f64, f64) {
    (AREA.x + AREA.w * across.share(x), AREA.y + AREA.h * (1.0 - up.share(y)))
}

/// A figure without the digits that rounding left.
fn figure(value: f64) -> String {
    format!("{}", (value * 1e9).round() / 1e9)
}

fn frame(panel: &mut Panel, (below, above): (&str, &str), (across, up): (Scale, Scale)) {
    panel.rect(AREA, SURFACE, None, 0.0);
    let right = AREA.x + AREA.w;
    for mark in up.marks() {
        let (x, y) = place((across.least, mark), (across, up));
        panel.line((x, y), (right, y), palette::UNKNOWN, (1.0, ""));
        let text = figure(mark);
        let width = SMALL.width(&text);
        panel.text((x - 6.0 - width, y + 3.6), width, SMALL, &text);
    }
    for mark in across.marks() {
        let (x, y) = place((mark, up.least), (across, up));
        panel.line((x, y), (x, y + 4.0), palette::CELL_EDGE, (1.0, ""));
        panel.text((x, y + 16.0), 60.0, SMALL.centred(), &figure(mark));
    }
    let middle = AREA.x + AREA.w / 2.0;
    panel.text((middle, AREA.y + AREA.h + 34.0), AREA.w, SMALL.centred(), below);
    panel.text((AREA.x, AREA.y - 8.0), AREA.w, SMALL, above);
}

fn draw(panel: &mut Panel, curve: &Curve, at: usize, scales: (Scale, Scale)) {
    let (colour, dashes) = palette::STROKES[at % palette::STROKES.len()];
    let points = curve.points.iter().filter(|(x, y)| scales.0.shows(*x) && scales.1.shows(*y));
    let places: Vec<(f64, f64)> = points.map(|point| place(*point, scales)).collect();
    panel.polyline(places.iter().copied(), colour, (1.6, dashes));
    places.iter().for_each(|place| panel.circle(*place, 2.4, colour, colour));
    let (x, y) = (AREA.x + AREA.w + 20.0, AREA.y + at as f64 * LINE + 10.0);
    panel.line((x, y - 3.6), (x + 22.0, y - 3.6), colour, (1.6, dashes));
    panel.text((x + 30.0, y), KEY - 30.0, SMALL, &curve.name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_figures_and_hold_every_value() {
        let axis = |logarithmic| ChartAxis { label: "", logarithmic };
        let plain = Scale::over(axis(false), [3.0, 41.0, f64::NAN].into_iter());
        assert_eq!((plain.most, plain.share(25.0)), (50.0, 0.5));
        assert_eq!(plain.marks().count(), 6);
        let ratios = Scale::over(axis(true), [0.0, 2.0, 800.0].into_iter());
        assert_eq!(ratios.marks().map(figure).collect::<Vec<_>>(), ["1", "10", "100", "1000"]);
        assert!((ratios.share(10.0) - 1.0 / 3.0).abs() < 1e-9 && !ratios.shows(0.0));
        assert_eq!(Scale::over(axis(true), [].into_iter()).marks().count(), 2);
    }

    #[test]
    fn charts_stand_one_below_the_other() {
        let curves =
            vec![Curve { name: "atoll".to_owned(), points: vec![(1.0, 2.0), (10.0, 3.0)] }];
        let chart = |title: &str| CurveChart {
            title: title.to_owned(),
            across: ChartAxis { label: "clients", logarithmic: true },
            up: ChartAxis { label: "ms", logarithmic: false },
            curves: curves.clone(),
        };
        let file = picture("both", &[chart("first"), chart("second")]);
        assert_eq!(file.matches("<polyline").count(), 2);
        assert!(file.contains(">first<") && file.contains(">second<"), "{file}");
    }
}
