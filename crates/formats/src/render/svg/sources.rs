//! The small print: the source of each group of facts, what is hidden or limited, and the legend.

use std::collections::BTreeMap;

use super::super::blocks::hidden;
use super::super::facts::{Credit, PathFigures};
use atoll_svg::canvas::{CanvasSize, Panel, Type};
use atoll_svg::palette;
use atoll_topology::{Machine, Source};

const SMALL: Type = Type::plain(10.0, palette::FAINT);
const LINE: f64 = 15.0;
const LEGEND: &str = "Boxes: packages (grey) hold nodes (blue; green without cpus), nodes hold domains (yellow: the cores that share a last-level cache); white boxes are cores, divided into cpus.";
const LEGEND_GROUPS: &str =
    "Boxes: nodes alike are drawn together (blue; green without cpus); white boxes are nodes.";

/// The small print, wrapped to the width.
pub(super) fn sources(
    machine: &Machine,
    links: &Credit,
    facts: &[PathFigures],
    width: f64,
) -> Panel {
    let groups = [
        ("structure", machine.source),
        ("memory", machine.memory_source),
        ("caches", machine.caches_source),
        ("distances", machine.distances_source),
        ("links", machine.links_source),
    ];
    let named = groups.iter().filter(|(what, _)| *what != "links" || !machine.links.is_empty());
    let mut by_source: BTreeMap<Source, Vec<&str>> = BTreeMap::new();
    named.for_each(|(what, source)| by_source.entry(*source).or_default().push(what));
    let said =
        |(source, what): (&Source, &Vec<&str>)| format!("{} {}", what.join(", "), source.name());
    let mut parts: Vec<String> = by_source.iter().map(said).collect();
    let credits = facts.iter().map(|f| (f.matrix.quantity.name().replace('_', " "), &f.credit));
    let links = (!links.sources().is_empty()).then(|| ("figures of links".to_owned(), links));
    parts.extend(credits.chain(links).map(|(what, credit)| credited(&what, credit)));
    let drawn_alone = machine.nodes.len() <= super::super::blocks::NODES_DRAWN_MAX;
    let mut lines = wrapped(if drawn_alone { LEGEND } else { LEGEND_GROUPS }, width);
    lines.extend(wrapped(&format!("Sources: {}.", parts.join("; ")), width));
    lines.extend(wrapped(&hidden(machine), width));
    lines.extend(wrapped(&limits(machine), width));
    let mut panel = Panel::new(CanvasSize { w: width, h: lines.len() as f64 * LINE });
    for (line, i) in lines.iter().zip(1u32..) {
        panel.text((0.0, f64::from(i) * LINE - 4.0), width, SMALL, line);
    }
    panel
}

fn credited(what: &str, credit: &Credit) -> String {
    match credit.origins().as_str() {
        "" => format!("{what} {}", credit.sources()),
        origins => format!("{what} {} ({origins})", credit.sources()),
    }
}

fn limits(machine: &Machine) -> String {
    let limits = &machine.limits;
    let memory = limits.memory.iter().map(|limit| format!("memory at most {}", limit.bytes));
    let time = limits.cpu_time.iter().map(|limit| format!("time of {:.2} cpus", limit.cpus));
    let granted: Vec<String> = memory.chain(time).collect();
    if granted.is_empty() {
        return String::new();
    }
    format!("granted by control groups: {}", granted.join(", "))
}

/// The text in lines that fit the width.
fn wrapped(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if SMALL.width(line) + SMALL.width(word) + 7.0 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
