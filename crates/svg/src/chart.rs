//! Scales, frames and curves. Values that are not numbers, or out of range, are left out.

use crate::canvas::{Area, Panel, Type};
use crate::palette;

/// Text at a scale.
pub const SMALL: Type = Type::plain(10.5, palette::FAINT);
/// Surface of a frame.
const SURFACE: &str = "#f8f9fb";
/// Approximate number of marks of a scale.
const MARKS: f64 = 4.0;
/// Larger values are not drawn, and smaller differences are ignored.
const VALUE_MAX: f64 = 1e15;
const SPAN_MIN: f64 = 1e-6;

/// A value that can be drawn.
pub fn known(value: f64) -> Option<f64> {
    (value.abs() <= VALUE_MAX).then_some(value)
}

/// A scale between two figures with round marks.
#[derive(Clone, Copy, Debug)]
pub struct AxisScale {
    least: f64,
    most: f64,
    /// The increment between two marks, or the factor on a logarithmic scale.
    step: f64,
    is_logarithmic: bool,
}

impl AxisScale {
    /// Shares, from 0 to 1.
    pub const SHARE: Self = Self::linear(0.0, 1.0, 0.25);

    const fn linear(least: f64, most: f64, step: f64) -> Self {
        Self { least, most, step, is_logarithmic: false }
    }

    /// Between the powers of ten that hold all values above zero; equal ratios are equally far apart.
    pub fn of_ratios(values: impl Iterator<Item = f64>) -> Self {
        let values = values.filter_map(known).filter(|value| *value > 0.0);
        let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
            let (least, most) = ends.unwrap_or((value, value));
            Some((least.min(value), most.max(value)))
        });
        let (least, most) = ends.unwrap_or((1.0, 10.0));
        let first = least.log10().floor();
        let last = most.log10().ceil().max(first + 1.0);
        let (least, most) = (10_f64.powf(first), 10_f64.powf(last));
        Self { least, most, step: 10.0, is_logarithmic: true }
    }

    /// From a figure to the first round one that no value exceeds.
    pub fn over(least: f64, values: impl Iterator<Item = f64>) -> Self {
        let most = values.filter_map(known).fold(least, f64::max);
        let span = if most - least < SPAN_MIN { 1.0 } else { most - least };
        let step = round_up(span / MARKS);
        Self::linear(least, least + (span / step).ceil() * step, step)
    }

    /// From one figure to another that need not be round.
    pub fn between(least: f64, most: f64) -> Self {
        let span = (most - least).max(SPAN_MIN);
        Self::linear(least, least + span, round_up(span / MARKS))
    }

    /// Where on the scale the value lies, from 0 to 1; at an end where it is beyond.
    pub fn share(self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true => (value / self.least).log10() / (self.most / self.least).log10(),
            false => (value - self.least) / (self.most - self.least),
        };
        share.clamp(0.0, 1.0)
    }

    /// Whether the value can be drawn.
    fn shows(self, value: f64) -> bool {
        known(value).is_some() && (!self.is_logarithmic || value > 0.0)
    }

    /// Whether the value lies above the scale.
    pub fn is_exceeded_by(self, value: f64) -> bool {
        value > self.most
    }

    /// The figures to be written at the scale.
    pub fn marks(self) -> impl Iterator<Item = f64> {
        let steps = match self.is_logarithmic {
            true => (self.most / self.least).log10() / self.step.log10(),
            false => (self.most - self.least) / self.step,
        };
        (0..=(steps + 1e-6).floor() as i32).map(move |mark| match self.is_logarithmic {
            true => self.least * self.step.powi(mark),
            false => self.least + f64::from(mark) * self.step,
        })
    }
}

/// The first of 1, 2 and 5 times a power of ten that is not less.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= value).unwrap_or(10.0 * power)
}

/// An axis: its scale, and the text of a mark.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Its scale.
    pub scale: AxisScale,
    /// The text of a mark.
    pub figure: fn(f64) -> String,
}

/// A frame with two axes.
#[derive(Clone, Copy, Debug)]
pub struct Chart {
    /// Where it lies on its panel.
    pub area: Area,
    /// The axis across.
    pub x: Axis,
    /// The axis up.
    pub y: Axis,
}

impl Chart {
    /// The frame with its marks; `below` stands beneath the lower edge.
    pub fn frame(&self, panel: &mut Panel, below: &str) {
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

    /// The position of a pair of values. Returns None if one cannot be drawn.
    pub fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        if !self.x.scale.shows(x) || !self.y.scale.shows(y) {
            return None;
        }
        let (across, up) = (self.x.scale.share(x), self.y.scale.share(y));
        let Area { x, y, w, h } = self.area;
        Some((x + w * across, y + h * (1.0 - up)))
    }

    /// A stroke with a gap wherever there is no value; a value alone is a dot.
    pub fn curve(
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
}

/// A text that ends at a point.
pub fn to_the_left(panel: &mut Panel, (x, y): (f64, f64), text: &str) {
    let width = SMALL.width(text);
    panel.text((x - width, y), width, SMALL, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_figures_and_hold_every_value() {
        let plain = AxisScale::over(0.0, [3.0, 41.0, f64::NAN].into_iter());
        assert_eq!((plain.most, plain.share(30.0)), (60.0, 0.5));
        assert_eq!(plain.marks().collect::<Vec<_>>(), [0.0, 20.0, 40.0, 60.0]);
        let ratios = AxisScale::of_ratios([0.0, 2.0, 800.0].into_iter());
        assert_eq!(ratios.marks().collect::<Vec<_>>(), [1.0, 10.0, 100.0, 1000.0]);
        assert!((ratios.share(10.0) - 1.0 / 3.0).abs() < 1e-9 && !ratios.shows(0.0));
        assert_eq!(AxisScale::of_ratios([].into_iter()).marks().count(), 2);
    }
}
