//! How the counts came about, over counted accesses: the emulator has no clock worth reading.

use atoll_simulation::RunSlice;
use atoll_svg::canvas::{Area, CanvasSize, Panel, Type};
use atoll_svg::palette;

use super::super::counts::{share, sum};
use super::super::words::{count, digits, percent};
use crate::record::RunRecord;

const TITLE: Type = Type::plain(13.0, palette::INK).bold();
const SMALL: Type = Type::plain(10.0, palette::FAINT);
/// Room next to the plot for the scale, and for the names of the strokes.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 120.0;
const PLOT: f64 = 92.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 30.0;
/// Strokes shown separately; the rest are summed.
const STROKES_MAX: usize = 4;
/// Width below which a region has no number.
const NUMBER_MIN: f64 = 12.0;

/// A stroke: a name and a value for each slice; without a value if there is nothing to divide.
type Stroke = (String, Vec<Option<f64>>);

/// The plots, one below the other; empty without a series.
pub(super) fn series(record: &RunRecord, width: f64) -> Panel {
    let slices = &record.report.series.slices;
    if slices.is_empty() {
        return Panel::default();
    }
    let bytes = |title| Plot { title, most: None, figure: digits, slices, width };
    let rate = |rate| percent(Some(rate));
    let title = "Hit rate of the last-level caches";
    let hit_rate = Plot { title, most: Some(1.0), figure: rate, slices, width };
    let plots = [
        Some(hit_rate.panel(&hit_rates(record))),
        Some(bytes("Memory controllers, bytes per access").panel(&controllers(record))),
        links(record).map(|links| bytes("Links, bytes per access").panel(&links)),
    ];
    let plots: Vec<Panel> = plots.into_iter().flatten().collect();
    let h = plots.iter().map(|plot| plot.size.h).sum();
    let mut all = Panel::new(CanvasSize { w: width, h });
    let mut y = 0.0;
    for plot in &plots {
        all.put(0.0, y, plot);
        y += plot.size.h;
    }
    all
}

fn hit_rates(record: &RunRecord) -> Vec<Stroke> {
    let slices = &record.report.series.slices;
    let nodes = record.report.setup.nodes.iter().enumerate();
    let lookups =
        |slice: &RunSlice, at: usize| slice.llc_hits[at].saturating_add(slice.llc_misses[at]);
    let mut busy: Vec<(u64, Stroke)> = nodes
        .map(|(at, node)| {
            let all = slices.iter().map(|slice| lookups(slice, at)).fold(0, u64::saturating_add);
            let rate = |slice: &RunSlice| share(slice.llc_hits[at], lookups(slice, at));
            (all, (format!("node {}", node.id), slices.iter().map(rate).collect()))
        })
        .filter(|(all, _)| *all > 0)
        .collect();
    if busy.len() <= STROKES_MAX + 1 {
        return busy.into_iter().map(|(_, stroke)| stroke).collect();
    }
    busy.sort_by_key(|(all, _)| std::cmp::Reverse(*all));
    let rate = |slice: &RunSlice| {
        let (hits, misses) = (sum(&slice.llc_hits), sum(&slice.llc_misses));
        share(hits, hits.saturating_add(misses))
    };
    vec![("all nodes".to_owned(), slices.iter().map(rate).collect())]
}

fn controllers(record: &RunRecord) -> Vec<Stroke> {
    let names = record.report.setup.nodes.iter().map(|node| format!("node {}", node.id));
    strokes(record, names.collect(), |slice| &slice.controllers)
}

/// None if no links are known.
fn links(record: &RunRecord) -> Option<Vec<Stroke>> {
    let ends = record.estimate.links.iter().step_by(2);
    let names: Vec<String> = ends.map(|link| format!("{} and {}", link.from, link.to)).collect();
    (!names.is_empty()).then(|| strokes(record, names, |slice| &slice.links))
}

/// The busiest as strokes of their own, the others summed.
fn strokes(
    record: &RunRecord,
    names: Vec<String>,
    of: impl Fn(&RunSlice) -> &Vec<u64>,
) -> Vec<Stroke> {
    let slices = &record.report.series.slices;
    let all = |at: usize| slices.iter().map(|it| of(it)[at]).fold(0, u64::saturating_add);
    let mut order: Vec<usize> = (0..names.len()).filter(|at| all(*at) > 0).collect();
    order.sort_by_key(|at| std::cmp::Reverse(all(*at)));
    let own = if order.len() <= STROKES_MAX + 1 { order.len() } else { STROKES_MAX };
    let (own, others) = order.split_at(own);
    let per_access = |members: &[usize]| -> Vec<Option<f64>> {
        let bytes = |slice: &RunSlice| sum(members.iter().map(|at| &of(slice)[*at]));
        slices.iter().map(|slice| share(bytes(slice), slice.accesses)).collect()
    };
    let mut own: Vec<usize> = own.to_vec();
    own.sort_unstable();
    let mut strokes: Vec<Stroke> =
        own.iter().map(|at| (names[*at].clone(), per_access(&[*at]))).collect();
    if !others.is_empty() {
        strokes.push((format!("{} others", others.len()), per_access(others)));
    }
    strokes
}

/// A plot over the slices.
struct Plot<'a> {
    title: &'static str,
    /// Upper end of the scale; None for the largest value.
    most: Option<f64>,
    figure: fn(f64) -> String,
    slices: &'a [RunSlice],
    width: f64,
}

impl Plot<'_> {
    fn panel(&self, strokes: &[Stroke]) -> Panel {
        let mut panel = Panel::new(CanvasSize { w: self.width, h: TOP + PLOT + BOTTOM });
        let area = Area { x: LEFT, y: TOP, w: self.width - LEFT - RIGHT, h: PLOT };
        let ends = ends(self.slices);
        let all = ends.last().copied().unwrap_or(0.0).max(1.0);
        let x = |accesses: f64| area.x + area.w * accesses / all;
        panel.rect(area, "#f8f9fb", Some(palette::UNKNOWN), 0.0);
        regions(&mut panel, self.slices, &ends, &x);
        let values = strokes.iter().flat_map(|(_, values)| values).flatten().copied();
        let most = self.most.unwrap_or_else(|| values.fold(0.0, f64::max));
        self.scales(&mut panel, area, most, all);
        let scale = if most > 0.0 { most } else { 1.0 };
        let before = |at: usize| at.checked_sub(1).map_or(0.0, |at| ends[at]);
        let place = |(at, value): (usize, f64)| {
            let middle = (before(at) + ends[at]) / 2.0;
            (x(middle), area.y + area.h * (1.0 - value / scale))
        };
        for ((name, values), i) in strokes.iter().zip(0u32..) {
            let look = palette::STROKES[i as usize % palette::STROKES.len()];
            stroke(&mut panel, values, look, place);
            let y = area.y + 8.0 + f64::from(i) * 16.0;
            let left = area.x + area.w + 10.0;
            panel.line((left, y - 3.0), (left + 22.0, y - 3.0), look.0, (1.8, look.1));
            panel.text((left + 28.0, y), RIGHT - 38.0, SMALL, name);
        }
        panel
    }

    /// Title and both scales.
    fn scales(&self, panel: &mut Panel, area: Area, most: f64, accesses: f64) {
        panel.text((0.0, 12.0), self.width, TITLE, self.title);
        for (value, y) in [(most, area.y + 8.0), (0.0, area.y + area.h)] {
            panel.text((0.0, y), LEFT - 4.0, SMALL, &(self.figure)(value));
        }
        let y = area.y + area.h + 14.0;
        panel.text((LEFT, y), area.w, SMALL, "0");
        let end = format!("{} accesses", count(accesses as u64));
        panel.text((area.x + area.w - SMALL.width(&end), y), area.w, SMALL, &end);
    }
}

/// A stroke with a gap wherever there is no value; a value alone is a dot.
fn stroke(
    panel: &mut Panel,
    values: &[Option<f64>],
    (colour, dashes): (&str, &str),
    place: impl Fn((usize, f64)) -> (f64, f64),
) {
    let known: Vec<Option<(usize, f64)>> =
        values.iter().enumerate().map(|(at, value)| Some((at, (*value)?))).collect();
    for run in known.split(Option::is_none).filter(|run| !run.is_empty()) {
        let points: Vec<(f64, f64)> = run.iter().flatten().copied().map(&place).collect();
        match points[..] {
            [point] => panel.circle(point, 1.2, colour, colour),
            _ => panel.polyline(points, colour, (1.6, dashes)),
        }
    }
}

/// Counted accesses at the end of each slice.
fn ends(slices: &[RunSlice]) -> Vec<f64> {
    let mut end = 0.0;
    let add = |slice: &RunSlice| {
        end += slice.accesses as f64;
        end
    };
    slices.iter().map(add).collect()
}

/// A line where the open region changes, with its number if there is room.
fn regions(panel: &mut Panel, slices: &[RunSlice], ends: &[f64], x: &impl Fn(f64) -> f64) {
    let mut from = 0usize;
    for group in slices.chunk_by(|a, b| a.region == b.region) {
        let start = from.checked_sub(1).map_or(0.0, |last| ends[last]);
        from += group.len();
        let (left, right) = (x(start), x(ends[from - 1]));
        if start > 0.0 {
            panel.line((left, TOP), (left, TOP + PLOT), palette::UNKNOWN, (1.0, ""));
        }
        if let Some(number) = group[0].region.filter(|_| right - left > NUMBER_MIN) {
            let how = Type::plain(8.0, palette::FAINT).centred();
            let place = ((left + right) / 2.0, TOP - 3.0);
            let name = format!("region {number}");
            let short = number.to_string();
            let name = if how.width(&name) < right - left { name } else { short };
            panel.text(place, right - left, how, &name);
        }
    }
}
