//! Links as wide as the bytes that crossed them, the two directions side by side, on its left-hand
//! side seen in the way it goes; nodes as dark as the bytes of their memory controllers.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::TAU;

use atoll_model::LinkTime;
use atoll_svg::canvas::{CanvasSize, Panel, Type};
use atoll_svg::palette;
use atoll_svg::ring::places;
use atoll_topology::Bytes;

use super::super::counts::{controller_bytes, link_bytes};
use super::Scale;
use crate::record::RunRecord;

const TITLE: Type = Type::plain(13.0, palette::INK).bold();
const SMALL: Type = Type::plain(10.0, palette::FAINT);
const TOP: f64 = 57.0;
const LINE: f64 = 15.0;
/// With more nodes than this only the busiest links are listed.
const NODES_MAX: usize = 24;
/// Busiest directions that are listed.
const LISTED_MAX: usize = 6;
/// Radius of a node.
const NODE: f64 = 18.0;
/// Narrowest panel: its title has to fit.
const WIDTH_MIN: f64 = 290.0;
/// Least radius of the ring, and its length for each node.
const RING_MIN: f64 = 100.0;
const RING_NODE: f64 = 90.0;
/// Widths of the least and the most busy direction that something crossed.
const WIDTHS: (f64, f64) = (0.8, 12.0);
/// Width of a direction that nothing crossed.
const IDLE: f64 = 0.6;

/// The links, and the busiest directions in words; None if no links are known.
pub(super) fn links(record: &RunRecord, scale: &Scale) -> Option<Panel> {
    let ring = ring(record, scale, 0.0)?;
    let busiest = busiest(&directions(record));
    let CanvasSize { w, h } = ring.size;
    let mut panel = Panel::new(CanvasSize { w, h: h + (busiest.len() as f64 + 1.0) * LINE });
    panel.put(0.0, 0.0, &ring);
    for (text, i) in busiest.iter().zip(1u32..) {
        panel.text((0.0, h + f64::from(i) * LINE), w, SMALL, text);
    }
    Some(panel)
}

/// The links on a scale that other pictures may share, in the middle of a panel of this width or more;
/// None if no links are known. With many nodes only its title is drawn.
pub(super) fn ring(record: &RunRecord, scale: &Scale, width: f64) -> Option<Panel> {
    let directions = directions(record);
    if directions.is_empty() {
        return None;
    }
    let nodes: BTreeSet<u32> = directions.iter().map(|(link, _)| link.from.0).collect();
    let radius = match nodes.len() {
        count @ ..=NODES_MAX => (count as f64 * RING_NODE / TAU).max(RING_MIN),
        _ => 0.0,
    };
    let side = if radius > 0.0 { 2.0 * (radius + NODE) + 12.0 } else { 0.0 };
    let w = side.max(WIDTH_MIN).max(width);
    let mut panel = Panel::new(CanvasSize { w, h: TOP + side });
    panel.text((0.0, 14.0), w, TITLE, "Links and memory controllers");
    panel.text((0.0, 29.0), w, SMALL, "stroke: bytes; blue to the larger node, red back");
    panel.text((0.0, 44.0), w, SMALL, "shade of a node: bytes from and to its memory");
    if radius > 0.0 {
        let pairs = directions.iter().map(|(link, _)| (link.from.0, link.to.0));
        let places = places(&nodes, pairs, (w / 2.0, TOP + side / 2.0), radius);
        chords(&mut panel, &directions, &places, scale);
        islands(&mut panel, record, &places, scale);
    }
    Some(panel)
}

/// Each direction of each link, and the bytes that crossed it.
fn directions(record: &RunRecord) -> Vec<(&LinkTime, u64)> {
    record.estimate.links.iter().zip(link_bytes(&record.report.total)).collect()
}

/// The nodes; `places` has those that have links.
fn islands(
    panel: &mut Panel,
    record: &RunRecord,
    places: &BTreeMap<u32, (f64, f64)>,
    scale: &Scale,
) {
    let bytes = controller_bytes(&record.report.total);
    for (node, bytes) in record.report.setup.nodes.iter().zip(bytes) {
        let Some(&(x, y)) = places.get(&node.id.0) else { continue };
        let share = bytes as f64 / scale.controller_bytes.max(1) as f64;
        panel.circle((x, y), NODE, &palette::WARM.at(share), "#8a3a00");
        let how = Type::plain(13.0, palette::Ramp::ink(share)).bold().centred();
        panel.text((x, y + 4.6), 2.0 * NODE, how, &node.id.to_string());
    }
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

fn chords(
    panel: &mut Panel,
    directions: &[(&LinkTime, u64)],
    places: &BTreeMap<u32, (f64, f64)>,
    scale: &Scale,
) {
    let most = scale.link_bytes.max(1) as f64;
    for (link, bytes) in directions {
        let (Some(from), Some(to)) = (places.get(&link.from.0), places.get(&link.to.0)) else {
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
