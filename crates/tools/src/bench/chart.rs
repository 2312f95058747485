//! Curves in frames, drawn one below the other.

use atoll_svg::canvas::{Area, CanvasSize, Panel, Type};
use atoll_svg::chart::{Axis, AxisScale, Chart, SMALL};
use atoll_svg::palette;

const MARGIN: f64 = 26.0;
const AREA: Area = Area { x: 70.0, y: 60.0, w: 620.0, h: 380.0 };
/// Width of the list of curves next to the frame.
const KEY: f64 = 240.0;
const LINE: f64 = 16.0;
const HEADING: Type = Type::plain(17.0, palette::INK).bold();

/// Curves in a frame.
#[derive(Clone, Debug)]
pub struct CurveChart {
    /// Stands above it.
    pub title: String,
    /// Name of the points' first values.
    pub across: ChartAxis,
    /// Name of the points' second values.
    pub up: ChartAxis,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// An axis.
#[derive(Clone, Copy, Debug)]
pub struct ChartAxis {
    /// Its quantity, with the unit.
    pub label: &'static str,
    /// Whether equal ratios are equally far apart; else it begins at zero.
    pub logarithmic: bool,
}

impl ChartAxis {
    fn over(self, values: impl Iterator<Item = f64>) -> Axis {
        let scale = match self.logarithmic {
            true => AxisScale::of_ratios(values),
            false => AxisScale::over(0.0, values),
        };
        Axis { scale, figure }
    }
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
    stacked(title, &charts.iter().map(CurveChart::panel).collect::<Vec<_>>())
}

/// Panels, one below the other, as a file.
pub fn stacked(title: &str, panels: &[Panel]) -> String {
    let widest = panels.iter().map(|panel| panel.size.w).fold(0.0, f64::max);
    let height = panels.iter().map(|panel| panel.size.h).sum();
    let mut all = Panel::new(CanvasSize { w: widest, h: height });
    let mut y = 0.0;
    for panel in panels {
        all.put(0.0, y, panel);
        y += panel.size.h;
    }
    all.into_file(title)
}

impl CurveChart {
    /// The frame with its curves.
    pub fn panel(&self) -> Panel {
        let Self { title, across, up, curves } = self;
        let key = AREA.y + curves.len() as f64 * LINE;
        let h = (AREA.y + AREA.h).max(key) + 50.0;
        let mut panel = Panel::new(CanvasSize { w: AREA.x + AREA.w + KEY + 2.0 * MARGIN, h });
        panel.text((MARGIN, 30.0), panel.size.w - 2.0 * MARGIN, HEADING, title);
        let values =
            |of: fn(&(f64, f64)) -> f64| curves.iter().flat_map(|curve| &curve.points).map(of);
        let (x, y) = (across.over(values(|point| point.0)), up.over(values(|point| point.1)));
        let frame = Chart { area: AREA, x, y };
        frame.frame(&mut panel, across.label);
        panel.text((AREA.x, AREA.y - 8.0), AREA.w, SMALL, up.label);
        for (at, curve) in curves.iter().enumerate() {
            draw(&mut panel, curve, at, &frame);
        }
        panel
    }
}

/// A figure without the digits that rounding left.
fn figure(value: f64) -> String {
    format!("{}", (value * 1e9).round() / 1e9)
}

fn draw(panel: &mut Panel, curve: &Curve, at: usize, chart: &Chart) {
    let (colour, dashes) = palette::STROKES[at % palette::STROKES.len()];
    let points = curve.points.iter();
    let places: Vec<(f64, f64)> = points.filter_map(|point| chart.place(*point)).collect();
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
