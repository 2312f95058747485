//! The interconnect: nodes as islands on a ring, links as chords.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::TAU;

use super::super::facts::{LinkFigures, figure};
use atoll_svg::canvas::{CanvasSize, Panel, Type};
use atoll_svg::palette;
use atoll_svg::ring::places;
use atoll_topology::{Knowledge, Link, LinkId, NodeId};

const TITLE: Type = Type::plain(13.0, palette::INK).bold();
const SMALL: Type = Type::plain(10.0, palette::FAINT);
const TOP: f64 = 42.0;
/// Above this number of nodes only the legend is drawn.
const NODES_MAX: usize = 24;
/// Radius of an island.
const ISLAND: f64 = 15.0;
/// Distance between parallel links, and the maximum number drawn.
const PARALLEL: f64 = 5.0;
const PARALLEL_MAX: usize = 4;
/// Maximum number of legend lines.
const CLASSES_MAX: usize = 8;

/// Links of the same kind and figures, which are drawn alike.
type LinkClass = (String, String);

/// The picture of the links. Returns None if no links are known.
pub(super) fn ring(
    knowledge: &Knowledge,
    figures: &BTreeMap<LinkId, LinkFigures>,
    credit: &str,
) -> Option<Panel> {
    let links = &knowledge.machine.links;
    if links.is_empty() {
        return None;
    }
    let classes = classes(links, figures);
    let nodes: BTreeSet<u32> = links.iter().flat_map(|link| [link.a.0, link.b.0]).collect();
    let radius = if nodes.len() > NODES_MAX { 0.0 } else { radius(nodes.len()) };
    let side = if radius > 0.0 { 2.0 * (radius + ISLAND) + 4.0 } else { 0.0 };
    let legend = classes.len().min(CLASSES_MAX + 1) as f64 * 17.0 + 8.0;
    let mut panel = Panel::new(CanvasSize { w: side.max(230.0), h: TOP + side + legend });
    let width = panel.size.w;
    panel.text((0.0, 14.0), width, TITLE, "Links");
    panel.text((0.0, 29.0), width, SMALL, credit);
    if radius > 0.0 {
        let pairs = links.iter().map(|link| (link.a.0, link.b.0));
        let places = places(&nodes, pairs, (side / 2.0, TOP + side / 2.0), radius);
        chords(&mut panel, links, &places, |link| look(&classes, &class(link, figures)));
        islands(&mut panel, &places);
    }
    draw_legend(&mut panel, &classes, TOP + side + 14.0);
    Some(panel)
}

fn radius(nodes: usize) -> f64 {
    (nodes as f64 * 44.0 / TAU).max(68.0)
}

fn class(link: &Link, figures: &BTreeMap<LinkId, LinkFigures>) -> LinkClass {
    let figures = figures.get(&link.id).copied().unwrap_or_default();
    (link.kind.clone(), figures.text())
}

/// The classes and the number of links of each, fastest first.
fn classes(links: &[Link], figures: &BTreeMap<LinkId, LinkFigures>) -> Vec<(LinkClass, usize)> {
    let mut counts: BTreeMap<LinkClass, (usize, f64)> = BTreeMap::new();
    for link in links {
        let bandwidth = figures.get(&link.id).and_then(|figures| figures.bandwidth);
        let entry = counts.entry(class(link, figures)).or_default();
        *entry = (entry.0 + 1, bandwidth.unwrap_or(0.0));
    }
    let mut classes: Vec<_> = counts.into_iter().collect();
    classes.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    classes.into_iter().map(|(class, (count, _))| (class, count)).collect()
}

fn look(classes: &[(LinkClass, usize)], class: &LinkClass) -> (&'static str, &'static str) {
    let index = classes.iter().position(|(other, _)| other == class).unwrap_or(0);
    palette::STROKES[index.min(palette::STROKES.len() - 1)]
}

fn chords(
    panel: &mut Panel,
    links: &[Link],
    places: &BTreeMap<u32, (f64, f64)>,
    look: impl Fn(&Link) -> (&'static str, &'static str),
) {
    let mut parallel: BTreeMap<(NodeId, NodeId), Vec<&Link>> = BTreeMap::new();
    for link in links {
        parallel.entry((link.a, link.b)).or_default().push(link);
    }
    for ((a, b), links) in parallel {
        let links = &links[..links.len().min(PARALLEL_MAX)];
        let (from, to) = (places[&a.0], places[&b.0]);
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy).max(1.0);
        for (link, i) in links.iter().zip(0u32..) {
            let aside = (f64::from(i) - (links.len() as f64 - 1.0) / 2.0) * PARALLEL;
            let shift = |(x, y): (f64, f64)| (x - dy / length * aside, y + dx / length * aside);
            let (colour, dashes) = look(link);
            panel.line(shift(from), shift(to), colour, (2.4, dashes));
        }
    }
}

fn islands(panel: &mut Panel, places: &BTreeMap<u32, (f64, f64)>) {
    let how = Type::plain(12.0, palette::INK).bold().centred();
    for (id, (x, y)) in places {
        panel.circle((*x, *y), ISLAND, "#e9f3fa", "#0072b2");
        panel.text((*x, y + 4.3), 2.0 * ISLAND, how, &id.to_string());
    }
}

fn draw_legend(panel: &mut Panel, classes: &[(LinkClass, usize)], top: f64) {
    for ((class, count), i) in classes.iter().take(CLASSES_MAX).zip(0u32..) {
        let y = top + 17.0 * f64::from(i);
        let (colour, dashes) = look(classes, class);
        panel.line((0.0, y - 4.0), (30.0, y - 4.0), colour, (2.4, dashes));
        let (kind, figures) = class;
        let text = match figures.as_str() {
            "" => format!("{} × {kind}", figure(*count as f64)),
            _ => format!("{} × {kind}, {figures}", figure(*count as f64)),
        };
        panel.text((38.0, y), panel.size.w - 38.0, SMALL, &text);
    }
    if classes.len() > CLASSES_MAX {
        let text = format!("{} kinds more", classes.len() - CLASSES_MAX);
        panel.text((38.0, top + 17.0 * CLASSES_MAX as f64), panel.size.w, SMALL, &text);
    }
}
