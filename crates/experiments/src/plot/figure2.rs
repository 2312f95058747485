//! Figure 2: hit rates of the last-level caches over time, and by the number of migrations next to the
//! time they cost.

use atoll_svg::canvas::{Area, CanvasSize, Panel};
use atoll_svg::chart::{Axis, AxisScale, Chart, SMALL};
use atoll_svg::palette;

use super::chart::{TITLE, dots, figure, key, percent, rings};
use super::{GAP, WIDTH, small_print};
use crate::reproduce::PublishedComparison;

const TOP: f64 = 24.0;
const PLOT: f64 = 150.0;
const BOTTOM: f64 = 56.0;
/// Room for the marks.
const LEFT: f64 = 46.0;
/// Room after the last mark, half of which stands beyond the frame.
const RIGHT: f64 = 14.0;
/// Width of each part of figure 2b.
const NARROW: f64 = 290.0;

/// Figure 2a, and the two parts of figure 2b next to it; empty without curves.
pub(super) fn figure2(comparison: &PublishedComparison) -> Vec<Panel> {
    if comparison.figures.by_migrations.is_empty() {
        return Vec::new();
    }
    let wide = WIDTH - 2.0 * (NARROW + GAP);
    let mut panel = Panel::new(CanvasSize { w: WIDTH, h: TOP + PLOT + BOTTOM });
    panel.put(0.0, 0.0, &over_time(comparison, wide));
    panel.put(wide + GAP, 0.0, &hit_rates(comparison));
    panel.put(wide + NARROW + 2.0 * GAP, 0.0, &times(comparison));
    std::iter::once(panel).chain(length(comparison)).collect()
}

/// A part with its title, and the frame's place in it.
fn part(title: &str, width: f64) -> (Panel, Area) {
    let mut panel = Panel::new(CanvasSize { w: width, h: TOP + PLOT + BOTTOM });
    panel.text((0.0, 12.0), width, TITLE, title);
    (panel, Area { x: LEFT, y: TOP, w: width - LEFT - RIGHT, h: PLOT })
}

fn over_time(comparison: &PublishedComparison, width: f64) -> Panel {
    let (mut panel, area) = part("Figure 2a: hit rate over the run", width);
    let curves = &comparison.figures.over_time;
    let ends = curves.iter().filter_map(|curve| curve.points.last());
    let end = ends.map(|point| point.accesses as f64 / 1e6).fold(0.0, f64::max);
    let x = Axis { scale: AxisScale::between(0.0, end), figure };
    let chart = Chart { area, x, y: Axis { scale: AxisScale::SHARE, figure: percent } };
    chart.frame(&mut panel, "million accesses counted");
    let mut left = 0.0;
    for (curve, look) in curves.iter().zip(palette::STROKES) {
        let points = curve.points.iter().map(|it| (it.accesses as f64 / 1e6, it.hit_rate));
        chart.curve(&mut panel, points, look);
        let y = TOP + PLOT + 47.0;
        panel.line((left, y - 3.6), (left + 22.0, y - 3.6), look.0, (1.8, look.1));
        let name = format!("{} migrations", curve.migrations);
        panel.text((left + 28.0, y), 100.0, SMALL, &name);
        left += 130.0;
    }
    panel
}

/// The axis of both parts of figure 2b.
fn migrations(comparison: &PublishedComparison) -> Axis {
    let counts = comparison.figures.by_migrations.iter().map(|it| f64::from(it.migrations));
    Axis { scale: AxisScale::over(0.0, counts), figure }
}

fn hit_rates(comparison: &PublishedComparison) -> Panel {
    let (mut panel, area) = part("Figure 2b: hit rate", NARROW);
    let y = Axis { scale: AxisScale::SHARE, figure: percent };
    let chart = Chart { area, x: migrations(comparison), y };
    chart.frame(&mut panel, "migrations of each thread");
    let all = &comparison.figures.by_migrations;
    let points = || all.iter().map(|it| (f64::from(it.migrations), it.hit_rate));
    chart.curve(&mut panel, points(), (palette::CELL_EDGE, ""));
    dots(&chart, &mut panel, points().filter_map(|(x, y)| Some((x, y?))));
    let published = |name: &str| {
        let rate = comparison.rates.iter().find(|rate| rate.name == name)?;
        Some(rate.published / 100.0)
    };
    let ends = [("hit rate without migrations", 0.0), ("hit rate with 200 migrations", 200.0)];
    let ends: Vec<(f64, f64)> =
        ends.iter().filter_map(|(name, count)| Some((*count, published(name)?))).collect();
    rings(&chart, &mut panel, ends.iter().copied());
    let shares: Vec<String> = ends.iter().map(|(_, share)| percent(*share)).collect();
    let text = format!("published: {}", shares.join(" → "));
    key(&mut panel, (0.0, TOP + PLOT + 47.0), &text);
    panel
}

fn times(comparison: &PublishedComparison) -> Panel {
    let (mut panel, area) = part("Figure 2b: relative time", NARROW);
    let points = || {
        let all = comparison.figures.by_migrations.iter();
        all.map(|it| (f64::from(it.migrations), it.time_relative))
    };
    let published = published_time(comparison);
    let times = points().chain(published).map(|(_, time)| time);
    let y = Axis { scale: AxisScale::over(0.0, times), figure };
    let chart = Chart { area, x: migrations(comparison), y };
    chart.frame(&mut panel, "migrations of each thread");
    chart.curve(&mut panel, points().map(|(x, y)| (x, Some(y))), (palette::CELL_EDGE, ""));
    dots(&chart, &mut panel, points());
    rings(&chart, &mut panel, published.into_iter());
    key(&mut panel, (0.0, TOP + PLOT + 47.0), "published in table 1");
    panel
}

/// The one relative time that the paper gives as a figure: that of table 1.
fn published_time(comparison: &PublishedComparison) -> Option<(f64, f64)> {
    let row = comparison.rows.iter().find(|row| row.experiment == 3 && row.name == "read 16MB")?;
    let count = row.settings[1].strip_suffix(" migrations")?.parse::<u32>().ok()?;
    Some((f64::from(count), row.ratio_published))
}

/// The variable on which the hit rates of figure 2b depend.
fn length(comparison: &PublishedComparison) -> Option<Panel> {
    let reload = comparison.figures.reload.as_ref()?;
    let text = format!(
        "The hit rate with migrations depends on the length of the run, which is a choice: here a \
         thread \
         makes {:.0} accesses for each line of its array, in the paper {:.0}; in a run as long as that \
         {} migrations would leave {:.1} % of the accesses hits.",
        reload.accesses_per_line,
        reload.accesses_per_line_published,
        reload.migrations,
        reload.hit_rate_at_length_published * 100.0,
    );
    Some(small_print(&[text]))
}
