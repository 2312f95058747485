//! A matrix over nodes as a heat map, with figures in the cells if they are legible. If only the diagonal is known,
//! the nodes' own figures, it is one row.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::canvas::{Area, CanvasSize, Panel, Type};
use crate::palette::{self, Ramp};

const TITLE: Type = Type::plain(13.0, palette::INK).bold();
const SMALL: Type = Type::plain(10.0, palette::FAINT);
/// Room above the cells: title, credit, column heads.
const TOP: f64 = 58.0;
const LEGEND: f64 = 34.0;
const LEGEND_STEPS: u32 = 24;
/// Shades of cells without figures.
const SHADES: u32 = 12;
/// Above this number of nodes, cells have no figures.
const FIGURES_MAX: usize = 32;
/// Above that number, only every n-th node is named.
const NAMED_STEP: usize = 8;
/// Above this number of nodes, the values are counted instead.
const CELLS_MAX: usize = 96;
const COUNTED_MAX: usize = 8;

/// The content of a heat map.
pub struct Heat<'a> {
    /// Its title.
    pub title: String,
    /// Its source.
    pub credit: String,
    /// The nodes.
    pub heads: &'a [u32],
    /// A row for each node; None for unknown values.
    pub cells: &'a [Vec<Option<f64>>],
    /// Its colours.
    pub ramp: Ramp,
    /// The values of the lightest and the darkest colour; None for the minimum and maximum.
    pub range: Option<(f64, f64)>,
    /// Text of a figure.
    pub figure: fn(f64) -> String,
}

/// Size of a cell and of the type in it, by the number of nodes.
fn cell(nodes: usize) -> (CanvasSize, f64) {
    match nodes {
        0..=4 => (CanvasSize { w: 58.0, h: 38.0 }, 13.0),
        5..=8 => (CanvasSize { w: 42.0, h: 30.0 }, 11.5),
        9..=16 => (CanvasSize { w: 31.0, h: 22.0 }, 9.5),
        17..=FIGURES_MAX => (CanvasSize { w: 23.0, h: 17.0 }, 7.5),
        _ => (CanvasSize { w: 6.0, h: 6.0 }, 0.0),
    }
}

/// A row of the map.
struct HeatRow<'a> {
    head: String,
    cells: Cow<'a, [Option<f64>]>,
}

/// The heat map, or a summary of the values if it would be too small to read.
pub fn heat(heat: &Heat<'_>) -> Panel {
    if heat.heads.len() > CELLS_MAX {
        return counted(heat);
    }
    let nodes = heat.heads.len();
    let (cell, size) = cell(nodes);
    let rows = rows(heat);
    let side = head_width(&rows);
    let w = (side + nodes as f64 * cell.w).max(TITLE.width(&heat.title)).max(190.0);
    let bottom = TOP + rows.len() as f64 * cell.h;
    let mut panel = Panel::new(CanvasSize { w, h: bottom + LEGEND });
    head(&mut panel, heat, w);
    let origin = (side, TOP);
    heads(&mut panel, heat.heads, &rows, origin, cell, size);
    match nodes <= FIGURES_MAX {
        true => figures(&mut panel, heat, &rows, origin, cell, size),
        false => shades(&mut panel, heat, &rows, origin, cell),
    }
    legend(&mut panel, heat, (side, bottom + 10.0));
    panel
}

/// A row for each node, or a single row if only the nodes' own figures are known.
fn rows<'a>(heat: &Heat<'a>) -> Vec<HeatRow<'a>> {
    let is_known = |(i, row): (usize, &Vec<Option<f64>>)| {
        row.iter().enumerate().any(|(j, value)| i != j && value.is_some())
    };
    if heat.cells.len() > 1 && !heat.cells.iter().enumerate().any(is_known) {
        let own = heat.cells.iter().enumerate().map(|(i, row)| row.get(i).copied().flatten());
        return vec![HeatRow { head: "own".to_owned(), cells: own.collect() }];
    }
    let row = |(row, head): (&'a Vec<Option<f64>>, &u32)| HeatRow {
        head: head.to_string(),
        cells: Cow::Borrowed(&row[..]),
    };
    heat.cells.iter().zip(heat.heads).map(row).collect()
}

fn head(panel: &mut Panel, heat: &Heat<'_>, width: f64) {
    panel.text((0.0, 14.0), width, TITLE, &heat.title);
    panel.text((0.0, 29.0), width, SMALL, &heat.credit);
}

fn head_width(rows: &[HeatRow<'_>]) -> f64 {
    let widest = rows.iter().map(|row| SMALL.width(&row.head)).fold(0.0, f64::max);
    (widest + 8.0).max(SMALL.width("node") + 6.0)
}

/// Names of the columns and rows; with many nodes only every eighth, in the room of eight.
fn heads(
    panel: &mut Panel,
    heads: &[u32],
    rows: &[HeatRow<'_>],
    (x, y): (f64, f64),
    cell: CanvasSize,
    size: f64,
) {
    let how = Type::plain(size.clamp(7.5, 10.0), palette::FAINT).centred();
    let step = if heads.len() <= FIGURES_MAX { 1 } else { NAMED_STEP };
    let width = cell.w * step as f64;
    let middle = |index: usize, each: f64| (index as f64 + 0.5) * each;
    panel.text((0.0, y - 6.0), x, SMALL, "node");
    for (i, head) in heads.iter().enumerate().step_by(step) {
        panel.text((x + middle(i, cell.w), y - 6.0), width, how, &head.to_string());
    }
    for (i, row) in rows.iter().enumerate().step_by(step) {
        let y = y + middle(i, cell.h) + how.size * 0.36;
        panel.text((x / 2.0 - 2.0, y), x, how, &row.head);
    }
}

/// The values of the lightest and the darkest colour.
fn range(heat: &Heat<'_>) -> (f64, f64) {
    let values = || heat.cells.iter().flatten().copied().flatten();
    let (least, most) = (f64::INFINITY, f64::NEG_INFINITY);
    heat.range.unwrap_or_else(|| (values().fold(least, f64::min), values().fold(most, f64::max)))
}

fn share(value: f64, (least, most): (f64, f64)) -> f64 {
    if most > least { (value - least) / (most - least) } else { 0.0 }
}

/// Every cell with its position.
fn placed<'a>(
    rows: &'a [HeatRow<'_>],
    (x, y): (f64, f64),
    cell: CanvasSize,
) -> impl Iterator<Item = (Area, Option<f64>)> + 'a {
    rows.iter().zip(0u32..).flat_map(move |(row, i)| {
        row.cells.iter().zip(0u32..).map(move |(value, j)| {
            let (x, y) = (x + f64::from(j) * cell.w, y + f64::from(i) * cell.h);
            (Area { x, y, w: cell.w, h: cell.h }, *value)
        })
    })
}

fn figures(
    panel: &mut Panel,
    heat: &Heat<'_>,
    rows: &[HeatRow<'_>],
    origin: (f64, f64),
    cell: CanvasSize,
    size: f64,
) {
    let range = range(heat);
    for (area, value) in placed(rows, origin, cell) {
        let inner = Area { w: area.w - 1.5, h: area.h - 1.5, ..area };
        let Some(value) = value else {
            panel.rect(inner, palette::UNKNOWN, None, 2.0);
            continue;
        };
        let share = share(value, range);
        panel.rect(inner, &heat.ramp.at(share), None, 2.0);
        let how = Type::plain(size, Ramp::ink(share)).centred();
        let point = (inner.x + inner.w / 2.0, inner.y + inner.h / 2.0 + size * 0.36);
        panel.text(point, area.w * 1.2, how, &(heat.figure)(value));
    }
}

/// Cells as one shape for each shade; neighbours of one shade in a row melt into one.
fn shades(
    panel: &mut Panel,
    heat: &Heat<'_>,
    rows: &[HeatRow<'_>],
    origin: (f64, f64),
    cell: CanvasSize,
) {
    let range = range(heat);
    let mut shapes: BTreeMap<u32, Vec<Area>> = BTreeMap::new();
    let known = placed(rows, origin, cell).filter_map(|(area, value)| Some((area, value?)));
    for (area, value) in known {
        let shade = (share(value, range) * f64::from(SHADES)).round() as u32;
        let areas = shapes.entry(shade).or_default();
        match areas.last_mut() {
            Some(last) if last.y == area.y && last.x + last.w == area.x => last.w += area.w,
            _ => areas.push(area),
        }
    }
    for (shade, areas) in shapes {
        panel.rects(areas, &heat.ramp.at(f64::from(shade) / f64::from(SHADES)), None);
    }
}

fn legend(panel: &mut Panel, heat: &Heat<'_>, (x, y): (f64, f64)) {
    let range = range(heat);
    let (least, most) = ((heat.figure)(range.0), (heat.figure)(range.1));
    let mut x = x;
    if least != most {
        panel.text((x, y + 9.0), 80.0, SMALL, &least);
        x += SMALL.width(&least) + 5.0;
        for step in 0..LEGEND_STEPS {
            let share = f64::from(step) / f64::from(LEGEND_STEPS - 1);
            panel.rect(Area { x, y, w: 3.2, h: 10.0 }, &heat.ramp.at(share), None, 0.0);
            x += 3.0;
        }
        x += 6.0;
    }
    panel.text((x, y + 9.0), 80.0, SMALL, &most);
}

/// The frequency of each value in a matrix that is too large to draw.
fn counted(heat: &Heat<'_>) -> Panel {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in heat.cells.iter().flatten().copied().flatten() {
        *counts.entry((heat.figure)(value)).or_default() += 1;
    }
    let mut lines: Vec<(String, usize)> = counts.into_iter().collect();
    lines.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let (shown, rest) = lines.split_at(lines.len().min(COUNTED_MAX));
    let h = 44.0 + 16.0 * (shown.len() + usize::from(!rest.is_empty())) as f64;
    let mut panel = Panel::new(CanvasSize { w: TITLE.width(&heat.title).max(190.0), h });
    let w = panel.size.w;
    head(&mut panel, heat, w);
    let mut texts: Vec<String> =
        shown.iter().map(|(value, count)| format!("{value} for {count} pairs")).collect();
    if !rest.is_empty() {
        texts.push(format!("{} values more", rest.len()));
    }
    for (text, i) in texts.iter().zip(0u32..) {
        panel.text((0.0, 52.0 + 16.0 * f64::from(i)), w, SMALL, text);
    }
    panel
}
