//! Scales, frames, curves and dots. Values that are not numbers, or beyond all measure, are left out.

use atoll_svg::canvas::{Area, Panel, Type};
use atoll_svg::palette;

pub(super) const TITLE: Type = Type::plain(13.0, palette::INK).bold();
pub(super) const SMALL: Type = Type::plain(10.5, palette::FAINT);
pub(super) const OURS: (&str, &str) = palette::STROKES[0];
pub(super) const PUBLISHED: (&str, &str) = palette::STROKES[1];
/// Radius of a dot.
pub(super) const DOT: f64 = 3.6;
/// Surface of a frame.
const SURFACE: &str = "#f8f9fb";
/// Marks that a scale has, about.
const MARKS: f64 = 4.0;
/// Values beyond are not measurements, and less apart they are the same.
const VALUE_MAX: f64 = 1e15;
const SPAN_MIN: f64 = 1e-6;

/// A value that can be drawn.
pub(super) fn known(value: f64) -> Option<f64> {
    (value.abs() <= VALUE_MAX).then_some(value)
}

/// A scale between two figures with round marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisScale {
    least: f64,
    most: f64,
    step: f64,
}

impl AxisScale {
    /// Shares, from 0 to 1.
    pub(super) const SHARE: Self = Self { least: 0.0, most: 1.0, step: 0.25 };

    /// From a figure to the first round one that no value exceeds.
    pub(super) fn over(least: f64, values: impl Iterator<Item = f64>) -> Self {
        let most = values.filter_map(known).fold(least, f64::max);
        let span = if most - least < SPAN_MIN { 1.0 } else { most - least };
        let step = round_up(span / MARKS);
        Self { least, most: least + (span / step).ceil() * step, step }
    }

    /// From one figure to another that need not be round.
    pub(super) fn between(least: f64, most: f64) -> Self {
        let span = (most - least).max(SPAN_MIN);
        Self { least, most: least + span, step: round_up(span / MARKS) }
    }

    /// Where on the scale the value lies, from 0 to 1; at an end where it is beyond.
    pub(super) fn share(self, value: f64) -> f64 {
        ((value - self.least) / (self.most - self.least)).clamp(0.0, 1.0)
    }

    /// Whether the value lies above the scale.
    pub(super) fn is_exceeded_by(self, value: f64) -> bool {
        value > self.most
    }

    /// The figures to be written at the scale.
    pub(super) fn marks(self) -> impl Iterator<Item = f64> {
        let count = ((self.most - self.least) / self.step + 1e-6).floor() as u32;
        (0..=count).map(move |i| self.least + f64::from(i) * self.step)
    }
}

/// The first of 1, 2 and 5 times a power of ten that is not less.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= value).unwrap_or(10.0 * power)
}

/// How an axis is written: its scale, and the text of a mark.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) scale: AxisScale,
    pub(super) figure: fn(f64) -> String,
}

/// A frame with two axes.
pub(super) struct Chart {
    pub(super) area: Area,
    pub(super) x: Axis,
    pub(super) y: Axis,
}

impl Chart {
    /// The frame with its marks; `below` stands beneath the lower edge.
    pub(super) fn frame(&self, panel: &mut Panel, below: &str) {
        let Area { x, y, w, h } = self.area;
        panel.rect(self.area, SURFACE, None, 0.0);
        for mark in self.y.scale.marks() {
            let at = y + h * (1.0 - self.y.scale.share(mark));
            panel.line((x, at), (x + w, at), palette::UNKNOWN, (1.0, ""));
            to_the_left(panel, (x - 6.0, at + 3.6), &(self.y.figure)(mark));
        }
        for mark in self.x.scale.marks() {
            let at = x + w * self.x.scale.share(mark);
            panel.line((at, y + h), (at, y + h + 4.0), palette::CELL_EDGE, (1.0, ""));
            panel.text((at, y + h + 16.0), w, SMALL.centred(), &(self.x.figure)(mark));
        }
        panel.line((x, y + h), (x + w, y + h), palette::CELL_EDGE, (1.0, ""));
        panel.text((x + w / 2.0, y + h + 31.0), w, SMALL.centred(), below);
    }

    /// Where a pair of values lies; none where one is not a number.
    pub(super) fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        let (across, up) = (self.x.scale.share(known(x)?), self.y.scale.share(known(y)?));
        let Area { x, y, w, h } = self.area;
        Some((x + w * across, y + h * (1.0 - up)))
    }

    /// A stroke with a gap wherever there is no value; a value alone is a dot.
    pub(super) fn curve(
        &self,
        panel: &mut Panel,
        points: impl Iterator<Item = (f64, Option<f64>)>,
        (colour, dashes): (&str, &str),
    ) {
        let places: Vec<Option<(f64, f64)>> = points.map(|(x, y)| self.place((x, y?))).collect();
        for run in places.split(Option::is_none).filter(|run| !run.is_empty()) {
            match *run {
                [Some(place)] => panel.circle(place, 1.2, colour, colour),
                _ => panel.polyline(run.iter().flatten().copied(), colour, (1.6, dashes)),
            }
        }
    }

    /// A filled dot for each of ours.
    pub(super) fn dots(&self, panel: &mut Panel, points: impl Iterator<Item = (f64, f64)>) {
        for place in points.filter_map(|point| self.place(point)) {
            panel.circle(place, DOT, OURS.0, OURS.0);
        }
    }

    /// A ring for each that was published.
    pub(super) fn rings(&self, panel: &mut Panel, points: impl Iterator<Item = (f64, f64)>) {
        for place in points.filter_map(|point| self.place(point)) {
            panel.circle(place, DOT + 1.4, "none", PUBLISHED.0);
        }
    }
}

/// What dots and rings are, in a line.
pub(super) fn key(panel: &mut Panel, (x, y): (f64, f64), published: &str) {
    panel.circle((x + DOT, y - 3.6), DOT, OURS.0, OURS.0);
    panel.text((x + 13.0, y), 60.0, SMALL, "ours");
    panel.circle((x + 62.0, y - 3.6), DOT + 1.4, "none", PUBLISHED.0);
    panel.text((x + 73.0, y), panel.size.w - x - 73.0, SMALL, published);
}

/// A text that ends at a point.
pub(super) fn to_the_left(panel: &mut Panel, (x, y): (f64, f64), text: &str) {
    let width = SMALL.width(text);
    panel.text((x - width, y), width, SMALL, text);
}

/// A share as a mark.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A figure with the digits it needs, at most two after the point, and none from a hundred on.
pub(super) fn figure(value: f64) -> String {
    if value >= 100.0 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
