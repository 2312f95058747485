//! The interconnect: nodes as islands on a ring, links as chords. On a ring no chord passes through a
//! node that it does not link, whatever the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::TAU;

use super::super::facts::{LinkFigures, figure};
use atoll_svg::canvas::{CanvasSize, Panel, Type};
use atoll_svg::palette;
use atoll_topology::{Knowledge, Link, LinkId, NodeId, NodeSet};

const TITLE: Type = Type::plain(13.0, palette::INK).bold();
const SMALL: Type = Type::plain(10.0, palette::FAINT);
const TOP: f64 = 42.0;
/// With more nodes than this only the legend is drawn.
const NODES_MAX: usize = 24;
/// Radius of an island.
const ISLAND: f64 = 15.0;
/// Distance between parallel links, and how many of them are drawn.
const PARALLEL: f64 = 5.0;
const PARALLEL_MAX: usize = 4;
/// Most lines of the legend.
const CLASSES_MAX: usize = 8;

/// Links of one kind and one figure look the same.
type LinkClass = (String, String);

/// The picture of the links; none where none are known.
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
    let nodes: NodeSet = links.iter().flat_map(|link| [link.a, link.b]).collect();
    let order = order(nodes.iter().collect(), links);
    let radius = if order.len() > NODES_MAX { 0.0 } else { radius(order.len()) };
    let side = if radius > 0.0 { 2.0 * (radius + ISLAND) + 4.0 } else { 0.0 };
    let legend = classes.len().min(CLASSES_MAX + 1) as f64 * 17.0 + 8.0;
    let mut panel = Panel::new(CanvasSize { w: side.max(230.0), h: TOP + side + legend });
    let width = panel.size.w;
    panel.text((0.0, 14.0), width, TITLE, "Links");
    panel.text((0.0, 29.0), width, SMALL, credit);
    if radius > 0.0 {
        let places = places(&order, (side / 2.0, TOP + side / 2.0), radius);
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

/// The classes and how many links each has, the fastest first.
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

/// An order around the ring with short chords: the best of walks along the links from every node,
/// each improved by turning stretches of it around as long as that shortens all chords together.
fn order(nodes: Vec<NodeId>, links: &[Link]) -> Vec<NodeId> {
    if nodes.len() > NODES_MAX {
        return nodes;
    }
    let place = |id: NodeId| nodes.binary_search(&id).unwrap_or(0);
    let pairs: BTreeSet<(usize, usize)> = links.iter().map(|l| (place(l.a), place(l.b))).collect();
    let walks = (0..nodes.len()).map(|start| improved(walk(start, nodes.len(), &pairs), &pairs));
    let best = walks.min_by_key(|order| length(order, &pairs)).unwrap_or_default();
    best.into_iter().map(|place| nodes[place]).collect()
}

/// All places, from one to a linked one as long as there is one not yet visited.
fn walk(start: usize, count: usize, pairs: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let mut order = vec![start];
    while order.len() < count {
        let last = order[order.len() - 1];
        let linked = |next: &usize| pairs.contains(&(last.min(*next), last.max(*next)));
        let mut left = (0..count).filter(|next| !order.contains(next));
        let next = left.clone().find(linked).or_else(|| left.next());
        order.extend(next);
    }
    order
}

fn improved(mut order: Vec<usize>, pairs: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let mut best = length(&order, pairs);
    loop {
        let before = best;
        for i in 0..order.len() {
            for j in i + 1..order.len() {
                order[i..=j].reverse();
                match length(&order, pairs) {
                    shorter if shorter < best => best = shorter,
                    _ => order[i..=j].reverse(),
                }
            }
        }
        if best == before {
            return order;
        }
    }
}

/// Steps around the ring that all links bridge together.
fn length(order: &[usize], pairs: &BTreeSet<(usize, usize)>) -> usize {
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, node)| place[*node] = at);
    let steps = |(a, b): &(usize, usize)| {
        let apart = place[*a].abs_diff(place[*b]);
        apart.min(order.len() - apart)
    };
    pairs.iter().map(steps).sum()
}

/// Where each node lies; four nodes make a square, two lie side by side.
fn places(order: &[NodeId], centre: (f64, f64), radius: f64) -> BTreeMap<NodeId, (f64, f64)> {
    let count = order.len() as f64;
    let start = if order.len() == 2 { -TAU / 2.0 } else { -TAU / 4.0 - TAU / 2.0 / count };
    let place = |index: u32| {
        let angle = start + TAU * f64::from(index) / count;
        (centre.0 + radius * angle.cos(), centre.1 + radius * angle.sin())
    };
    order.iter().zip(0..).map(|(id, index)| (*id, place(index))).collect()
}

fn chords(
    panel: &mut Panel,
    links: &[Link],
    places: &BTreeMap<NodeId, (f64, f64)>,
    look: impl Fn(&Link) -> (&'static str, &'static str),
) {
    let mut parallel: BTreeMap<(NodeId, NodeId), Vec<&Link>> = BTreeMap::new();
    for link in links {
        parallel.entry((link.a, link.b)).or_default().push(link);
    }
    for ((a, b), links) in parallel {
        let links = &links[..links.len().min(PARALLEL_MAX)];
        let (from, to) = (places[&a], places[&b]);
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

fn islands(panel: &mut Panel, places: &BTreeMap<NodeId, (f64, f64)>) {
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
