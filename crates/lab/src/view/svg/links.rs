//! Links as wide as the bytes that crossed them, each direction beside the other, on its left-hand
//! side seen in the way it goes.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::TAU;

use atoll_model::LinkTime;
use atoll_topology::render::svg::canvas::{Panel, Size, Type};
use atoll_topology::render::svg::palette;
use atoll_topology::{Bytes, NodeId};

use super::super::counts::link_bytes;
use crate::record::Record;

const TITLE: Type = Type::plain(13.0, palette::INK).bold();
const SMALL: Type = Type::plain(10.0, palette::FAINT);
const TOP: f64 = 42.0;
const LINE: f64 = 15.0;
/// With more nodes than this only the busiest links are listed.
const NODES_MAX: usize = 24;
/// Busiest directions that are listed.
const LISTED_MAX: usize = 6;
/// Radius of a node.
const NODE: f64 = 15.0;
/// Widths of the least and the most busy direction that something crossed.
const WIDTHS: (f64, f64) = (1.2, 9.0);
/// Width of a direction that nothing crossed.
const IDLE: f64 = 0.6;

/// The picture; none where no links are known.
pub(super) fn links(record: &Record) -> Option<Panel> {
    let bytes = link_bytes(&record.report.total);
    let directions: Vec<(&LinkTime, u64)> = record.estimate.links.iter().zip(bytes).collect();
    if directions.is_empty() {
        return None;
    }
    let nodes: BTreeSet<NodeId> = directions.iter().map(|(link, _)| link.from).collect();
    let radius = match nodes.len() {
        count @ ..=NODES_MAX => (count as f64 * 44.0 / TAU).max(68.0),
        _ => 0.0,
    };
    let side = if radius > 0.0 { 2.0 * (radius + NODE) + 12.0 } else { 0.0 };
    let busiest = busiest(&directions);
    let h = TOP + side + (busiest.len() as f64 + 1.0) * LINE;
    let mut panel = Panel::new(Size { w: side.max(210.0), h });
    let width = panel.size.w;
    panel.text((0.0, 14.0), width, TITLE, "Links");
    panel.text((0.0, 29.0), width, SMALL, "blue: to the larger node; red: back");
    if radius > 0.0 {
        let places = places(&nodes, (side / 2.0, TOP + side / 2.0), radius);
        chords(&mut panel, &directions, &places);
        let how = Type::plain(12.0, palette::INK).bold().centred();
        for (id, (x, y)) in &places {
            panel.circle((*x, *y), NODE, "#e9f3fa", "#0072b2");
            panel.text((*x, y + 4.3), 2.0 * NODE, how, &id.to_string());
        }
    }
    for (text, i) in busiest.iter().zip(1u32..) {
        panel.text((0.0, TOP + side + f64::from(i) * LINE), width, SMALL, text);
    }
    Some(panel)
}

/// The busiest directions with their bytes.
fn busiest(directions: &[(&LinkTime, u64)]) -> Vec<String> {
    let mut crossed: Vec<_> = directions.iter().filter(|(_, bytes)| *bytes > 0).collect();
    crossed.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    if crossed.is_empty() {
        return vec!["nothing crossed a link".to_owned()];
    }
    let listed = crossed.iter().take(LISTED_MAX);
    let mut lines: Vec<String> = listed
        .map(|(link, bytes)| format!("{} → {}: {}", link.from, link.to, Bytes(*bytes)))
        .collect();
    if crossed.len() > LISTED_MAX {
        lines.push(format!("{} directions more", crossed.len() - LISTED_MAX));
    }
    lines
}

/// Where each node lies; four nodes make a square, two lie side by side.
fn places(
    nodes: &BTreeSet<NodeId>,
    centre: (f64, f64),
    radius: f64,
) -> BTreeMap<NodeId, (f64, f64)> {
    let count = nodes.len() as f64;
    let start = if nodes.len() == 2 { -TAU / 2.0 } else { -TAU / 4.0 - TAU / 2.0 / count };
    let place = |index: u32| {
        let angle = start + TAU * f64::from(index) / count;
        (centre.0 + radius * angle.cos(), centre.1 + radius * angle.sin())
    };
    nodes.iter().zip(0..).map(|(id, index)| (*id, place(index))).collect()
}

fn chords(
    panel: &mut Panel,
    directions: &[(&LinkTime, u64)],
    places: &BTreeMap<NodeId, (f64, f64)>,
) {
    let most = directions.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0).max(1) as f64;
    for (link, bytes) in directions {
        let (Some(from), Some(to)) = (places.get(&link.from), places.get(&link.to)) else {
            continue;
        };
        let (width, colour) = match *bytes as f64 / most {
            0.0 => (IDLE, palette::CELL_EDGE),
            share => (WIDTHS.0 + (WIDTHS.1 - WIDTHS.0) * share, colour(link.from < link.to)),
        };
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy).max(1.0);
        let aside = width / 2.0 + 0.8;
        let shift = |(x, y): (f64, f64)| (x + dy / length * aside, y - dx / length * aside);
        panel.line(shift(*from), shift(*to), colour, (width, ""));
    }
}

/// Colour of a direction: up or down the node numbers.
fn colour(up: bool) -> &'static str {
    palette::STROKES[usize::from(!up)].0
}
