//! Parts common to the pictures: texts, dots for our figures and rings for published ones.

use atoll_svg::canvas::{Panel, Type};
use atoll_svg::chart::{Chart, SMALL};
use atoll_svg::palette;

pub(super) const TITLE: Type = Type::plain(13.0, palette::INK).bold();
pub(super) const OURS: (&str, &str) = palette::STROKES[0];
pub(super) const PUBLISHED: (&str, &str) = palette::STROKES[1];
/// Radius of a dot.
pub(super) const DOT: f64 = 3.6;

/// A filled dot for each of ours.
pub(super) fn dots(chart: &Chart, panel: &mut Panel, points: impl Iterator<Item = (f64, f64)>) {
    for place in points.filter_map(|point| chart.place(point)) {
        panel.circle(place, DOT, OURS.0, OURS.0);
    }
}

/// A ring for each that was published.
pub(super) fn rings(chart: &Chart, panel: &mut Panel, points: impl Iterator<Item = (f64, f64)>) {
    for place in points.filter_map(|point| chart.place(point)) {
        panel.circle(place, DOT + 1.4, "none", PUBLISHED.0);
    }
}

/// What dots and rings are, in a line.
pub(super) fn key(panel: &mut Panel, (x, y): (f64, f64), published: &str) {
    panel.circle((x + DOT, y - 3.6), DOT, OURS.0, OURS.0);
    panel.text((x + 13.0, y), 60.0, SMALL, "ours");
    panel.circle((x + 62.0, y - 3.6), DOT + 1.4, "none", PUBLISHED.0);
    panel.text((x + 73.0, y), panel.size.w - x - 73.0, SMALL, published);
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
