//! The machine as boxes in plain text.
//!
//! A block is as wide as its content; blocks side by side wrap into the next row when the line is full. A core is a
//! pair of brackets around its cpus.

use super::blocks::{DiagramBox, blocks, summary};
use atoll_topology::Knowledge;

/// Maximum width of a picture, in columns.
const COLUMNS_MAX: usize = 100;
/// Width of a frame: `│ ` and ` │`.
const FRAME: usize = 4;
/// Above this number of cpus a domain shows the number of its cores in words.
const CPUS_LISTED_MAX: usize = 128;
/// Blocks whose widths differ by at most this much are aligned in columns.
const WIDTHS_ALIKE: usize = 6;
/// Maximum number of rows of similar blocks.
const ROWS_MAX: usize = 40;

/// Lines of equal width.
struct TextLines {
    width: usize,
    lines: Vec<String>,
}

/// The machine as `atoll topo --of ascii` prints it, at most 100 columns wide unless names are longer: packages ⊃
/// nodes ⊃ domains as boxes, `[0 1]` a core with its cpus. Many cores are counted, and many nodes are grouped by
/// shape.
pub fn ascii(knowledge: &Knowledge) -> String {
    let machine = &knowledge.machine;
    let blocks = blocks(machine);
    let listed = machine.cpus.len() <= CPUS_LISTED_MAX;
    let boxes: Vec<TextLines> =
        blocks.iter().map(|block| framed(block, COLUMNS_MAX, listed)).collect();
    let picture = in_rows(boxes, COLUMNS_MAX);
    let mut text = format!("{}\n{}\n", plain(&machine.name), summary(machine));
    for line in &picture.lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn framed(block: &DiagramBox, columns: usize, listed: bool) -> TextLines {
    let inner = columns.saturating_sub(FRAME);
    let mut texts = vec![plain(&block.title)];
    texts.push(plain(&block.detail));
    texts.extend(block.memory.as_ref().map(|(text, _)| text.clone()));
    texts.extend(block.cache.clone());
    let (title, texts) = texts.split_first().expect("a block has a title");
    let mut lines: Vec<String> = texts.iter().flat_map(|text| wrapped(text, inner)).collect();
    let below = block.below.iter().map(|block| framed(block, inner, listed)).collect();
    lines.extend(in_rows(below, inner).lines);
    if listed {
        lines.extend(cells(&block.cells, inner));
    }
    let width = lines.iter().map(|line| columns_of(line)).fold(columns_of(title) + 2, usize::max);
    frame(title, &lines, width)
}

fn frame(title: &str, content: &[String], width: usize) -> TextLines {
    let mut lines = vec![format!("┌ {title} {}┐", "─".repeat(width - columns_of(title)))];
    lines.extend(content.iter().map(|line| format!("│ {} │", padded(line, width))));
    lines.push(format!("└{}┘", "─".repeat(width + 2)));
    TextLines { width: width + FRAME, lines }
}

/// `[0 1] [2 3]`, in as many lines as it takes.
fn cells(cells: &[Vec<u32>], columns: usize) -> Vec<String> {
    let last = cells.iter().flatten().max().map_or(1, |max| max.to_string().len());
    let text = |cell: &Vec<u32>| {
        let numbers: Vec<String> = cell.iter().map(|number| format!("{number:>last$}")).collect();
        format!("[{}]", numbers.join(" "))
    };
    let texts: Vec<String> = cells.iter().map(text).collect();
    let each = texts.iter().map(|text| columns_of(text) + 1).max().unwrap_or(1);
    let fitting = (columns / each).max(1);
    // Eight per line are easier to read than one long line.
    let in_line = if texts.len() > fitting.min(8) { fitting.min(8) } else { fitting };
    texts.chunks(in_line).map(|chunk| chunk.join(" ")).collect()
}

/// Blocks side by side, in rows: blocks of similar width in columns, others as they fit.
fn in_rows(blocks: Vec<TextLines>, columns: usize) -> TextLines {
    let widest = blocks.iter().map(|block| block.width).max().unwrap_or(0);
    let narrowest = blocks.iter().map(|block| block.width).min().unwrap_or(0);
    let alike = widest - narrowest <= WIDTHS_ALIKE;
    let rows = if alike { balanced(&blocks, columns, widest) } else { fitting(&blocks, columns) };
    let each = if alike { widest } else { 0 };
    let shown = rows.iter().take(ROWS_MAX);
    let mut lines: Vec<String> = shown.flat_map(|row| side_by_side(row, each)).collect();
    let left: usize = rows.iter().skip(ROWS_MAX).map(|row| row.len()).sum();
    if left > 0 {
        lines.push(format!("and {left} more"));
    }
    let width = lines.iter().map(|line| columns_of(line)).max().unwrap_or(0);
    TextLines { width, lines }
}

/// Rows with the number of blocks per row that fills the last row best.
fn balanced(blocks: &[TextLines], columns: usize, widest: usize) -> Vec<&[TextLines]> {
    let in_row = ((columns + 1) / (widest + 1)).max(1);
    let rows = blocks.len().div_ceil(in_row).max(1);
    blocks.chunks(blocks.len().div_ceil(rows).max(1)).collect()
}

/// Rows filled greedily.
fn fitting(blocks: &[TextLines], columns: usize) -> Vec<&[TextLines]> {
    let mut rows = Vec::new();
    let (mut first, mut width) = (0, 0);
    for (index, block) in blocks.iter().enumerate() {
        if index > first && width + block.width > columns {
            rows.push(&blocks[first..index]);
            (first, width) = (index, 0);
        }
        width += block.width + 1;
    }
    rows.push(&blocks[first..]);
    rows
}

fn side_by_side(row: &[TextLines], each: usize) -> Vec<String> {
    let height = row.iter().map(|block| block.lines.len()).max().unwrap_or(0);
    let line = |i: usize| {
        let parts = row.iter().map(|block| {
            let text = block.lines.get(i).map_or("", String::as_str);
            padded(text, each.max(block.width))
        });
        parts.collect::<Vec<_>>().join(" ")
    };
    (0..height).map(line).collect()
}

/// The text wrapped between words to this many columns.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if columns_of(line) + 1 + columns_of(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(columns_of(text))))
}

fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// Removes control characters: names come from untrusted files and must not move the cursor.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
