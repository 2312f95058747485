//! The machine as nested boxes. A layout is measured from the inside out and drawn from the outside in: siblings get
//! the size of the largest, so that equal parts look equal.

use super::super::blocks::{BoxKind, DiagramBox};
use atoll_svg::canvas::{Area, CanvasSize, Panel, Type};
use atoll_svg::palette;

const PAD: f64 = 9.0;
const GAP: f64 = 9.0;
const BAR: f64 = 19.0;
/// Target aspect ratio (width / height) of a group of boxes.
const ASPECT: f64 = 1.5;
/// The same for the cores of a domain.
const CELLS_ASPECT: f64 = 2.2;
/// The same for the nodes without cpus, which are below the others.
const MEMORY_ASPECT: f64 = 6.0;
/// Distance between outermost blocks.
const GROUP_GAP: f64 = 14.0;
/// Maximum width of a text that may widen a box.
const TEXT_MAX: f64 = 330.0;
/// Above this number of cpus, cells have no numbers.
const NUMBERED_MAX: usize = 256;
/// Above this number of cpus there are no cells: they would be a grey surface.
const CELLS_MAX: usize = 8192;

const TITLE: Type = Type::plain(13.0, palette::INK).bold();
const DETAIL: Type = Type::plain(10.5, palette::FAINT);
const IN_BAR: Type = Type::plain(10.5, palette::INK).centred();
const NUMBER: Type = Type::plain(9.5, palette::INK).centred();

/// The style of cells on this machine.
#[derive(Clone, Copy)]
struct Cells {
    /// Width of one number.
    number: f64,
    height: f64,
    gap: f64,
    numbered: bool,
}

/// Equal items in columns.
#[derive(Clone, Copy, Default)]
struct BoxGrid {
    columns: usize,
    rows: usize,
    item: CanvasSize,
    gap: f64,
}

/// A block with its dimensions.
struct Laid<'a> {
    block: &'a DiagramBox,
    below: Vec<Laid<'a>>,
    grid: BoxGrid,
    cells: BoxGrid,
    size: CanvasSize,
}

/// The picture of the blocks; those without cpus are below the others.
pub(super) fn boxes(blocks: &[DiagramBox]) -> Panel {
    let looks = Cells::for_cpus(blocks.iter().map(cpus).sum(), blocks);
    let (memory, others): (Vec<&DiagramBox>, Vec<&DiagramBox>) =
        blocks.iter().partition(|block| block.kind == BoxKind::MemoryNode);
    let (upper, lower) = (group(&others, ASPECT, looks), group(&memory, MEMORY_ASPECT, looks));
    let gap = if upper.size.h > 0.0 && lower.size.h > 0.0 { GROUP_GAP } else { 0.0 };
    let w = upper.size.w.max(lower.size.w);
    let mut panel = Panel::new(CanvasSize { w, h: upper.size.h + gap + lower.size.h });
    panel.put(0.0, 0.0, &upper);
    panel.put(0.0, upper.size.h + gap, &lower);
    panel
}

/// Outermost blocks in a grid of about that aspect.
fn group(blocks: &[&DiagramBox], aspect: f64, looks: Option<Cells>) -> Panel {
    let laid: Vec<Laid<'_>> = blocks.iter().map(|block| lay(block, looks)).collect();
    let sizes: Vec<CanvasSize> = laid.iter().map(|laid| laid.size).collect();
    let grid = BoxGrid::near(sizes.len(), largest(&sizes), GROUP_GAP, aspect);
    let mut panel = Panel::new(grid.size());
    for (laid, (x, y)) in laid.iter().zip(grid.places()) {
        let CanvasSize { w, h } = grid.item;
        draw(&mut panel, laid, looks, Area { x, y, w, h });
    }
    panel
}

fn largest(sizes: &[CanvasSize]) -> CanvasSize {
    let largest =
        |most: CanvasSize, s: &CanvasSize| CanvasSize { w: most.w.max(s.w), h: most.h.max(s.h) };
    sizes.iter().fold(CanvasSize::default(), largest)
}

fn cpus(block: &DiagramBox) -> usize {
    let here: usize = block.cells.iter().map(Vec::len).sum();
    here + block.below.iter().map(cpus).sum::<usize>()
}

fn largest_number(block: &DiagramBox) -> u32 {
    let here = block.cells.iter().flatten().copied().max().unwrap_or(0);
    block.below.iter().map(largest_number).fold(here, u32::max)
}

impl Cells {
    fn for_cpus(cpus: usize, blocks: &[DiagramBox]) -> Option<Self> {
        if cpus > CELLS_MAX {
            return None;
        }
        if cpus > NUMBERED_MAX {
            return Some(Self { number: 8.0, height: 12.0, gap: 3.0, numbered: false });
        }
        let largest = blocks.iter().map(largest_number).max().unwrap_or(0);
        let number = NUMBER.width(&largest.to_string()) + 9.0;
        Some(Self { number, height: 21.0, gap: 4.0, numbered: true })
    }
}

impl BoxGrid {
    /// The number of columns that comes closest to the aspect ratio with the fewest empty places.
    fn for_sizes(sizes: &[CanvasSize], gap: f64) -> Self {
        Self::near(sizes.len(), largest(sizes), gap, ASPECT)
    }

    fn near(count: usize, item: CanvasSize, gap: f64, aspect: f64) -> Self {
        let with = |columns: usize| Self { columns, rows: count.div_ceil(columns), item, gap };
        let cost = |grid: &Self| {
            let CanvasSize { w, h } = grid.size();
            let empty = (grid.columns * grid.rows - count) as f64 / count as f64;
            (w / h / aspect).ln().abs() + 4.0 * empty
        };
        (1..=count.min(256))
            .map(with)
            .min_by(|a, b| cost(a).total_cmp(&cost(b)))
            .unwrap_or_default()
    }

    fn size(&self) -> CanvasSize {
        let span = |count: usize, each: f64| match count {
            0 => 0.0,
            _ => count as f64 * (each + self.gap) - self.gap,
        };
        CanvasSize { w: span(self.columns, self.item.w), h: span(self.rows, self.item.h) }
    }

    fn places(self) -> impl Iterator<Item = (f64, f64)> {
        let Self { columns, item, gap, .. } = self;
        (0..).map(move |index: usize| {
            let (row, column) = (index / columns.max(1), index % columns.max(1));
            (column as f64 * (item.w + gap), row as f64 * (item.h + gap))
        })
    }
}

fn lay(block: &DiagramBox, looks: Option<Cells>) -> Laid<'_> {
    let below: Vec<Laid<'_>> = block.below.iter().map(|block| lay(block, looks)).collect();
    let grid = BoxGrid::for_sizes(&below.iter().map(|laid| laid.size).collect::<Vec<_>>(), GAP);
    let cells = looks.map_or_else(BoxGrid::default, |looks| {
        let numbers = block.cells.iter().map(Vec::len).max().unwrap_or(0);
        let item = CanvasSize { w: numbers as f64 * looks.number, h: looks.height };
        BoxGrid::near(block.cells.len(), item, looks.gap, CELLS_ASPECT)
    });
    let texts = [
        TITLE.width(&block.title),
        DETAIL.width(&block.detail),
        block.memory.as_ref().map_or(0.0, |(text, _)| IN_BAR.width(text) + 12.0),
        block.cache.as_ref().map_or(0.0, |text| IN_BAR.width(text) + 12.0),
    ];
    let text = texts.into_iter().fold(0.0, f64::max).min(TEXT_MAX);
    let w = text.max(grid.size().w).max(cells.size().w) + 2.0 * PAD;
    let parts = [grid.size().h, cells.size().h, bar(block.cache.is_some())];
    let h = head(block) + parts.iter().filter(|h| **h > 0.0).map(|h| h + GAP).sum::<f64>() + PAD;
    Laid { block, below, grid, cells, size: CanvasSize { w, h: h - GAP.min(h) + GAP } }
}

fn bar(is_there: bool) -> f64 {
    if is_there { BAR } else { 0.0 }
}

/// Height of title, detail and memory.
fn head(block: &DiagramBox) -> f64 {
    let detail = if block.detail.is_empty() { 0.0 } else { 15.0 };
    let memory = if block.memory.is_some() { BAR + 7.0 } else { 0.0 };
    24.0 + detail + memory
}

fn draw(panel: &mut Panel, laid: &Laid<'_>, looks: Option<Cells>, area: Area) {
    let block = laid.block;
    let (surface, edge) = colours(block.kind);
    let radius = if block.kind == BoxKind::Package { 9.0 } else { 6.0 };
    panel.rect(area, surface, Some(edge), radius);
    draw_head(panel, block, area);
    let mut y = area.y + head(block) + GAP;
    draw_below(panel, laid, looks, Area { y, ..area });
    y += if laid.below.is_empty() { 0.0 } else { laid.grid.size().h + GAP };
    if let Some(looks) = looks.filter(|_| !block.cells.is_empty()) {
        let x = area.x + (area.w - laid.cells.size().w) / 2.0;
        draw_cells(panel, block, laid.cells, looks, (x, y));
    }
    if let Some(cache) = &block.cache {
        let y = area.y + area.h - PAD - BAR;
        let bar = Area { x: area.x + PAD, y, w: area.w - 2.0 * PAD, h: BAR };
        panel.rect(bar, palette::CACHE, None, 3.0);
        text_in(panel, bar, cache);
    }
}

fn draw_head(panel: &mut Panel, block: &DiagramBox, area: Area) {
    let (x, width) = (area.x + PAD, area.w - 2.0 * PAD);
    panel.text((x, area.y + 18.0), width, TITLE, &block.title);
    let mut y = area.y + 24.0;
    if !block.detail.is_empty() {
        panel.text((x, y + 9.0), width, DETAIL, &block.detail);
        y += 15.0;
    }
    if let Some((text, used)) = &block.memory {
        let bar = Area { x, y: y + 3.0, w: width, h: BAR };
        panel.rect(bar, palette::MEMORY, None, 3.0);
        if *used > 0.0 {
            panel.rect(Area { w: bar.w * used, ..bar }, palette::MEMORY_USED, None, 3.0);
        }
        text_in(panel, bar, text);
    }
}

fn text_in(panel: &mut Panel, bar: Area, text: &str) {
    panel.text((bar.x + bar.w / 2.0, bar.y + 13.5), bar.w - 6.0, IN_BAR, text);
}

/// The content shares the room of a stretched block.
fn draw_below(panel: &mut Panel, laid: &Laid<'_>, looks: Option<Cells>, area: Area) {
    let columns = laid.grid.columns.max(1) as f64;
    let w = (area.w - 2.0 * PAD - (columns - 1.0) * GAP) / columns;
    let grid = BoxGrid { item: CanvasSize { w, ..laid.grid.item }, ..laid.grid };
    for (below, (x, y)) in laid.below.iter().zip(grid.places()) {
        let CanvasSize { w, h } = grid.item;
        draw(panel, below, looks, Area { x: area.x + PAD + x, y: area.y + y, w, h });
    }
}

fn draw_cells(
    panel: &mut Panel,
    block: &DiagramBox,
    grid: BoxGrid,
    looks: Cells,
    (x, y): (f64, f64),
) {
    let place = |(dx, dy): (f64, f64)| (x + dx, y + dy);
    let cells = || block.cells.iter().zip(grid.places().map(place));
    let area = |(cell, (x, y)): (&Vec<u32>, (f64, f64))| {
        let w = cell.len() as f64 * looks.number;
        Area { x, y, w, h: looks.height }
    };
    panel.rects(cells().map(area), palette::CELL, Some(palette::CELL_EDGE));
    let threads = cells().flat_map(|(cell, (x, y))| {
        (1..cell.len()).map(move |i| {
            let x = x + i as f64 * looks.number;
            Area { x, y, w: 0.0, h: looks.height }
        })
    });
    if block.cells.iter().any(|cell| cell.len() > 1) {
        panel.rects(threads, "none", Some(palette::CELL_EDGE));
    }
    for (cell, (x, y)) in cells().filter(|_| looks.numbered) {
        for (number, i) in cell.iter().zip(0u32..) {
            let x = x + (f64::from(i) + 0.5) * looks.number;
            panel.text((x, y + 14.5), looks.number, NUMBER, &number.to_string());
        }
    }
}

/// Surface and edge of a block.
fn colours(kind: BoxKind) -> (&'static str, &'static str) {
    match kind {
        BoxKind::Package => ("#f4f6f8", "#8a96a3"),
        BoxKind::Node => ("#e9f3fa", "#0072b2"),
        BoxKind::MemoryNode => ("#e6f5ef", "#009e73"),
        BoxKind::Domain => ("#fffaee", "#e69f00"),
    }
}
