//! The arms of each row: the median as a bar, from the least to the most as a stroke, the figures in
//! words, next to the series.

use atoll_svg::canvas::{Area, CanvasSize, Panel};
use atoll_svg::chart::{AxisScale, SMALL, known, to_the_left};
use atoll_svg::palette;

use super::WIDTH;
use super::chart::{TITLE, figure};
use super::series::{SERIES_H, SlicePlot, looks, rates, times};
use crate::plan::size_text;
use crate::{ArmOutcome, ExperimentResults, PlanRow, RepeatedFigure};

const TOP: f64 = 22.0;
const LINE: f64 = 24.0;
const BAR: f64 = 13.0;
/// Baseline of a line's text.
const BASE: f64 = 13.5;
/// Room for the stroke of an arm, its setting, its bar and its figures.
const LOOK: f64 = 28.0;
const NAME: f64 = 226.0;
const BARS: f64 = 130.0;
const FIGURES: f64 = 142.0;
/// Distance to the series.
const SERIES_GAP: f64 = 14.0;

/// A strip for each row that has arms.
pub(super) fn arms(results: &ExperimentResults) -> Vec<Panel> {
    let most = results.arms.iter().filter_map(|arm| arm.ns).map(|ns| ns.max);
    let scale = AxisScale::over(0.0, most);
    results.rows.iter().filter_map(|row| strip(results, row, scale)).collect()
}

fn strip(results: &ExperimentResults, row: &PlanRow, scale: AxisScale) -> Option<Panel> {
    let indexes = std::iter::once(&row.baseline).chain(&row.contrasts);
    let arms: Vec<&ArmOutcome> = indexes.filter_map(|index| results.arms.get(*index)).collect();
    let first = arms.first()?;
    let (lines, series) = (lines(&arms, scale), series(&arms));
    let h = series.first().map_or(0.0, |_| SERIES_H).max(lines.size.h);
    let mut panel = Panel::new(CanvasSize { w: WIDTH, h: TOP + h });
    panel.text((0.0, 12.0), WIDTH, TITLE, &title(row, first));
    panel.put(0.0, TOP, &lines);
    let left = lines.size.w + SERIES_GAP;
    let w = (WIDTH - left) / (series.len() as f64).max(1.0);
    for (series, i) in series.iter().zip(0u32..) {
        panel.put(left + f64::from(i) * w, TOP, &series.panel(&arms, w));
    }
    Some(panel)
}

/// A line for each arm, and one with the number of arms in the series, if not all.
fn lines(arms: &[&ArmOutcome], scale: AxisScale) -> Panel {
    let looks = looks(arms);
    let drawn = looks.iter().flatten().count();
    let is_cut = drawn > 0 && drawn < arms.len();
    let h = (arms.len() + usize::from(is_cut)) as f64 * LINE;
    let mut panel = Panel::new(CanvasSize { w: LOOK + NAME + BARS + FIGURES, h });
    for ((arm, look), i) in arms.iter().zip(looks).zip(0u32..) {
        let y = f64::from(i) * LINE;
        if let Some((colour, dashes)) = look {
            panel.line((0.0, y + 10.0), (20.0, y + 10.0), colour, (1.8, dashes));
        }
        draw(&mut panel, arm, scale, y);
    }
    if is_cut {
        let text = format!("over the run {drawn} of {} are shown", arms.len());
        panel.text((LOOK, h - LINE + BASE), panel.size.w - LOOK, SMALL, &text);
    }
    panel
}

/// The series of times and, where there are counters, of hit rates.
fn series(arms: &[&ArmOutcome]) -> Vec<SlicePlot> {
    [times(arms), rates(arms)].into_iter().flatten().collect()
}

fn title(row: &PlanRow, first: &ArmOutcome) -> String {
    let name = match row.experiment {
        0 => row.name.clone(),
        number => format!("Experiment {number}: {}", row.name),
    };
    match first.arm.size == first.arm.size_run {
        true => format!("{name}, ns per access"),
        false => format!("{name} (run with {}), ns per access", size_text(first.arm.size_run)),
    }
}

fn draw(panel: &mut Panel, arm: &ArmOutcome, scale: AxisScale, y: f64) {
    let base = y + BASE;
    panel.text((LOOK, base), NAME - 8.0, SMALL, &arm.arm.setting);
    let x = LOOK + NAME;
    if let Some(failure) = &arm.failure {
        panel.text((x, base), BARS + FIGURES, SMALL, &format!("failed: {failure}"));
        return;
    }
    let Some(ns) = arm.ns else { return };
    let at = |value| known(value).map(|value| BARS * scale.share(value));
    let (Some(median), Some(min), Some(max)) = (at(ns.median), at(ns.min), at(ns.max)) else {
        return;
    };
    let bar = Area { x, y: y + (LINE - BAR) / 2.0 - 2.0, w: median, h: BAR };
    panel.rect(bar, palette::MEMORY_USED, None, 0.0);
    if ns.min < ns.max {
        spread(panel, (x + min, x + max), bar.y + BAR / 2.0);
    }
    to_the_left(panel, (x + BARS + FIGURES, base), &words(ns));
}

/// From the least to the most.
fn spread(panel: &mut Panel, (least, most): (f64, f64), y: f64) {
    panel.line((least, y), (most, y), palette::INK, (1.2, ""));
    for end in [least, most] {
        panel.line((end, y - 3.0), (end, y + 3.0), palette::INK, (1.2, ""));
    }
}

fn words(ns: RepeatedFigure) -> String {
    match ns.min < ns.max {
        true => format!("{} ({} – {})", figure(ns.median), figure(ns.min), figure(ns.max)),
        false => figure(ns.median),
    }
}
