//! Bandwidth by threads, drawn.

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

/// GB/s by threads of a variant.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

impl Curve {
    /// Adds a point to the curve of that name.
    pub(super) fn add(curves: &mut Vec<Self>, name: String, point: (f64, f64)) {
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Self { name, points: vec![point] }),
        }
    }
}

/// A frame with a curve for each variant.
pub(super) fn by_threads(title: &str, curves: &[Curve]) -> String {
    let key = AREA.y + curves.len() as f64 * LINE;
    let h = (AREA.y + AREA.h).max(key) + 50.0;
    let mut panel = Panel::new(CanvasSize { w: AREA.x + AREA.w + KEY + 2.0 * MARGIN, h });
    panel.text((MARGIN, 30.0), panel.size.w - 2.0 * MARGIN, HEADING, title);
    let most = |of: fn(&(f64, f64)) -> f64| {
        let values = curves.iter().flat_map(|curve| &curve.points).map(of);
        values.filter(|value| value.is_finite()).fold(1.0, f64::max)
    };
    let (across, up) = (Scale::to(most(|point| point.0)), Scale::to(most(|point| point.1)));
    frame(&mut panel, across, up);
    for (at, curve) in curves.iter().enumerate() {
        draw(&mut panel, curve, at, (across, up));
    }
    panel.into_file(title)
}

/// From zero to a round figure.
#[derive(Clone, Copy)]
struct Scale {
    step: f64,
    most: f64,
}

impl Scale {
    fn to(most: f64) -> Self {
        let rough = most / MARKS;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        Self { step, most: (most / step).ceil() * step }
    }

    fn marks(self) -> impl Iterator<Item = f64> {
        (0..=(self.most / self.step).round() as u32).map(move |mark| f64::from(mark) * self.step)
    }
}

fn place((x, y): (f64, f64), (across, up): (Scale, Scale)) -> (f64, f64) {
    (AREA.x + AREA.w * x / across.most, AREA.y + AREA.h * (1.0 - y / up.most))
}

fn frame(panel: &mut Panel, across: Scale, up: Scale) {
    panel.rect(AREA, SURFACE, None, 0.0);
    let right = AREA.x + AREA.w;
    for mark in up.marks() {
        let (x, y) = place((0.0, mark), (across, up));
        panel.line((x, y), (right, y), palette::UNKNOWN, (1.0, ""));
        let text = format!("{mark}");
        let width = SMALL.width(&text);
        panel.text((x - 6.0 - width, y + 3.6), width, SMALL, &text);
    }
    for mark in across.marks() {
        let (x, y) = place((mark, 0.0), (across, up));
        panel.line((x, y), (x, y + 4.0), palette::CELL_EDGE, (1.0, ""));
        panel.text((x, y + 16.0), 60.0, SMALL.centred(), &format!("{mark}"));
    }
    let middle = AREA.x + AREA.w / 2.0;
    panel.text((middle, AREA.y + AREA.h + 34.0), AREA.w, SMALL.centred(), "threads");
    panel.text((AREA.x, AREA.y - 8.0), 80.0, SMALL, "GB/s");
}

fn draw(panel: &mut Panel, curve: &Curve, at: usize, scales: (Scale, Scale)) {
    let (colour, dashes) = palette::STROKES[at % palette::STROKES.len()];
    let points = curve.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
    let places: Vec<(f64, f64)> = points.map(|point| place(*point, scales)).collect();
    panel.polyline(places.iter().copied(), colour, (1.6, dashes));
    places.iter().for_each(|place| panel.circle(*place, 2.4, colour, colour));
    let (x, y) = (AREA.x + AREA.w + 20.0, AREA.y + at as f64 * LINE + 10.0);
    panel.line((x, y - 3.6), (x + 22.0, y - 3.6), colour, (1.6, dashes));
    panel.text((x + 30.0, y), KEY - 30.0, SMALL, &curve.name);
}
