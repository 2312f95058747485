//! The machine as a picture for slides and documents: nested boxes, next to them the links and heat maps of
//! distances, latency and bandwidth.
//!
//! | File | Draws |
//! |---|---|
//! | `boxes` | packages ⊃ nodes ⊃ domains ⊃ cores ⊃ cpus |
//! | `ring` | links between nodes |
//! | `sources` | the sources of the facts |

mod boxes;
mod ring;
mod sources;

use super::blocks::{blocks, summary};
use super::facts::{self, PathFigures, figure};
use atoll_svg::canvas::{CanvasSize, Panel, Type};
use atoll_svg::heat::{Heat, heat as heat_map};
use atoll_svg::palette::{self, Ramp};
use atoll_topology::{Knowledge, Machine};

const MARGIN: f64 = 26.0;
const HEADER: f64 = 58.0;
const GAP: f64 = 34.0;
/// Minimum width: the title has to fit.
const WIDTH_MIN: f64 = 520.0;
/// Target aspect ratio (width / height): that of a slide.
const ASPECT: f64 = 1.7;
/// Candidate heights for the columns of panels.
const COLUMN_HEIGHTS: std::ops::Range<u32> = 5..40;
const COLUMN_STEP: f64 = 60.0;
const TITLE: Type = Type::plain(21.0, palette::INK).bold();
const TITLE_SIZE_MIN: f64 = 12.0;
const SUBTITLE: Type = Type::plain(12.5, palette::FAINT);

/// The machine and its facts as an SVG picture: valid XML without scripts, references or embedded fonts, on white.
/// It stays legible and below 1 MB for any machine: more than 256 cpus lose their numbers, and more than 32 nodes
/// are drawn as groups.
pub fn svg(knowledge: &Knowledge) -> String {
    let machine = &knowledge.machine;
    let (figures, credit) = facts::links(knowledge);
    let facts = facts::matrices(knowledge);
    let boxes = boxes::boxes(&blocks(machine));
    let subtitle = subtitle(machine);
    let links_from = machine.links_source.name();
    let mut side: Vec<Panel> = ring::ring(knowledge, &figures, links_from).into_iter().collect();
    side.extend(heats(machine, &facts));
    let side = beside_of(boxes.size, &side);
    let beside = if side.size.w > 0.0 { GAP + side.size.w } else { 0.0 };
    let inner = (boxes.size.w + beside).max(WIDTH_MIN).max(SUBTITLE.width(&subtitle));
    let small = sources::sources(machine, &credit, &facts, inner);
    let body = boxes.size.h.max(side.size.h);
    let w = inner + 2.0 * MARGIN;
    let h = HEADER + body + 24.0 + small.size.h + 2.0 * MARGIN;
    let mut picture = Panel::new(CanvasSize { w, h });
    picture.text((MARGIN, MARGIN + 16.0), inner, title(&machine.name, inner), &machine.name);
    picture.text((MARGIN, MARGIN + 37.0), inner, SUBTITLE, &subtitle);
    let top = MARGIN + HEADER;
    picture.put(MARGIN, top, &boxes);
    picture.put(MARGIN + boxes.size.w + GAP, top, &side);
    picture.put(MARGIN, top + body + 24.0, &small);
    picture.into_file(&machine.name)
}

/// The model if all packages have the same, and the counts.
fn subtitle(machine: &Machine) -> String {
    let mut models: Vec<&str> =
        machine.packages.iter().filter_map(|package| package.model.as_deref()).collect();
    models.dedup();
    match models[..] {
        [model] => format!("{model}; {}", summary(machine)),
        _ => summary(machine),
    }
}

/// Heat maps of the distances, if there is more than one node, and of the facts.
fn heats(machine: &Machine, facts: &[PathFigures]) -> Vec<Panel> {
    let heads: Vec<u32> = machine.nodes.iter().map(|node| node.id.0).collect();
    let distances: Vec<Vec<Option<f64>>> = machine
        .distances
        .iter()
        .map(|row| row.iter().map(|&distance| Some(f64::from(distance))).collect())
        .collect();
    let rating = Heat {
        title: "Distances".to_owned(),
        credit: format!("{}, from row to column", machine.distances_source.name()),
        heads: &heads,
        cells: &distances,
        ramp: palette::NEUTRAL,
        range: None,
        figure: |value| format!("{value:.0}"),
    };
    let several = heads.len() > 1;
    let rating = several.then(|| heat_map(&rating));
    let facts = facts.iter().map(|figures| heat_map(&of_fact(figures, &heads)));
    rating.into_iter().chain(facts).collect()
}

fn of_fact<'a>(figures: &'a PathFigures, heads: &'a [u32]) -> Heat<'a> {
    let quantity = figures.matrix.quantity;
    let ramp: Ramp = if quantity.unit() == "ns" { palette::WARM } else { palette::COOL };
    Heat {
        title: facts::title(quantity),
        credit: format!("{}, from row to column", figures.credit.sources()),
        heads,
        cells: &figures.matrix.rows,
        ramp,
        range: None,
        figure,
    }
}

/// The title, in smaller type if it would not fit.
fn title(name: &str, width: f64) -> Type {
    let size = (TITLE.size * width / TITLE.width(name)).clamp(TITLE_SIZE_MIN, TITLE.size);
    Type { size: size.floor(), ..TITLE }
}

/// Panels in columns such that, next to the boxes, they come closest to the aspect ratio.
fn beside_of(boxes: CanvasSize, panels: &[Panel]) -> Panel {
    let cost = |side: &Panel| {
        let w = boxes.w + GAP + side.size.w;
        (w / (boxes.h.max(side.size.h) + HEADER + 2.0 * MARGIN) / ASPECT).ln().abs()
    };
    COLUMN_HEIGHTS
        .map(|step| in_columns(panels, f64::from(step) * COLUMN_STEP))
        .min_by(|a, b| cost(a).total_cmp(&cost(b)))
        .unwrap_or_default()
}

/// Panels one below the other, in as many columns as the height requires.
fn in_columns(panels: &[Panel], height: f64) -> Panel {
    let (mut x, mut y, mut column) = (0.0, 0.0, 0.0f64);
    let mut places = Vec::new();
    let mut size = CanvasSize::default();
    for panel in panels {
        if y > 0.0 && y + panel.size.h > height {
            (x, y, column) = (x + column + GAP, 0.0, 0.0);
        }
        places.push((x, y));
        column = column.max(panel.size.w);
        size = CanvasSize { w: size.w.max(x + column), h: size.h.max(y + panel.size.h) };
        y += panel.size.h + 14.0;
    }
    let mut all = Panel::new(size);
    for (panel, (x, y)) in panels.iter().zip(places) {
        all.put(x, y, panel);
    }
    all
}
