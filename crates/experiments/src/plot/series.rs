//! Arms over the length of a run.

use atoll_svg::canvas::{Area, CanvasSize, Panel};
use atoll_svg::chart::{Axis, AxisScale, Chart, SMALL, known};
use atoll_svg::palette;

use super::chart::{figure, percent};
use crate::{ArmOutcome, Slice};

/// Height of a series with its marks.
pub(super) const SERIES_H: f64 = 128.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 36.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 16.0;
/// Times beyond so many medians are cut: one slice during which the machine did something else would
/// flatten all others.
const MEDIANS_MAX: f64 = 3.0;

type Look = (&'static str, &'static str);

/// What is drawn of each slice.
pub(super) struct SlicePlot {
    title: String,
    value: fn(&Slice) -> Option<f64>,
    y: Axis,
}

/// How the arms' strokes look; None for arms without a series, and for those beyond the looks that can
/// be distinguished.
pub(super) fn looks(arms: &[&ArmOutcome]) -> Vec<Option<Look>> {
    let mut left = palette::STROKES.into_iter();
    arms.iter().map(|arm| if arm.series.is_empty() { None } else { left.next() }).collect()
}

/// Times; None if there are none.
pub(super) fn times(arms: &[&ArmOutcome]) -> Option<SlicePlot> {
    let value = |slice: &Slice| known(slice.ns);
    let mut all: Vec<f64> = slices(arms).filter_map(value).collect();
    all.sort_by(f64::total_cmp);
    let (median, most) = (*all.get(all.len() / 2)?, *all.last()?);
    let end = most.min(MEDIANS_MAX * median);
    let scale = AxisScale::over(0.0, std::iter::once(end));
    let title = match scale.is_exceeded_by(most) {
        false => "over the run".to_owned(),
        true => format!("peaks cut, up to {}", figure(most)),
    };
    Some(SlicePlot { title, value, y: Axis { scale, figure } })
}

/// Hit rates; None if there are none.
pub(super) fn rates(arms: &[&ArmOutcome]) -> Option<SlicePlot> {
    let value = |slice: &Slice| slice.hit_rate.and_then(known);
    slices(arms).find_map(value)?;
    let title = "hit rate over the run".to_owned();
    Some(SlicePlot { title, value, y: Axis { scale: AxisScale::SHARE, figure: percent } })
}

/// The slices of the arms that have a look.
fn slices<'a>(arms: &[&'a ArmOutcome]) -> impl Iterator<Item = &'a Slice> {
    let drawn = arms.iter().zip(looks(arms)).filter(|(_, look)| look.is_some());
    drawn.flat_map(|(arm, _)| &arm.series).collect::<Vec<_>>().into_iter()
}

impl SlicePlot {
    pub(super) fn panel(&self, arms: &[&ArmOutcome], width: f64) -> Panel {
        let mut panel = Panel::new(CanvasSize { w: width, h: SERIES_H });
        let (w, h) = (width - LEFT - RIGHT, SERIES_H - TOP - BOTTOM);
        let area = Area { x: LEFT, y: TOP, w, h };
        let x = Axis { scale: AxisScale::SHARE, figure: percent };
        let chart = Chart { area, x, y: self.y };
        chart.frame(&mut panel, "of the accesses");
        panel.text((LEFT, TOP - 4.0), w, SMALL, &self.title);
        for (arm, look) in arms.iter().zip(looks(arms)) {
            if let Some(look) = look {
                let all = arm.series.len() as f64;
                let middle = |at: u32| (f64::from(at) + 0.5) / all;
                let points = (0..).zip(&arm.series);
                chart.curve(
                    &mut panel,
                    points.map(|(at, it)| (middle(at), (self.value)(it))),
                    look,
                );
            }
        }
        panel
    }
}
