//! The grid that `box` and `table` share: numbers right-aligned, values cut to the terminal, long results shown by
//! their first and last rows.

use std::collections::VecDeque;
use std::io::{self, Write};

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::Schema;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::column::{OutputColumn, columns, plain};
use super::{DrawLayout, ResultWriter};

/// Minimum width of a cut column; beyond that, whole columns are left out.
const WIDTH_MIN: usize = 8;

/// The characters a grid is drawn with.
pub(super) struct GridLines {
    pub(super) top: Rule,
    pub(super) middle: Rule,
    pub(super) bottom: Rule,
    pub(super) bar: &'static str,
    /// Marks rows that were left out.
    pub(super) more: &'static str,
    /// Ends a value that was cut.
    pub(super) cut: char,
}

/// A horizontal line.
pub(super) struct Rule {
    pub(super) left: &'static str,
    pub(super) line: &'static str,
    pub(super) cross: &'static str,
    pub(super) right: &'static str,
}

/// A value as lines of text; None for NULL.
type GridCell = Option<Vec<String>>;

/// Collects the rows to show, and draws them at the end.
pub(super) struct Grid {
    lines: &'static GridLines,
    layout: DrawLayout,
    heads: Vec<GridCell>,
    is_number: Vec<bool>,
    is_plan: bool,
    first: Vec<Vec<GridCell>>,
    /// The latest rows, once `first` is full.
    last: VecDeque<Vec<GridCell>>,
    rows: usize,
}

impl Grid {
    pub(super) fn new(lines: &'static GridLines, layout: DrawLayout) -> Self {
        Self {
            lines,
            layout,
            heads: Vec::new(),
            is_number: Vec::new(),
            is_plan: false,
            first: Vec::new(),
            last: VecDeque::new(),
            rows: 0,
        }
    }

    /// Rows shown at the start and at the end.
    fn room(&self) -> (usize, usize) {
        match self.layout.rows_max {
            Some(max) if !self.is_plan => (max.div_ceil(2), max / 2),
            _ => (usize::MAX, 0),
        }
    }

    fn left_out(&self) -> usize {
        self.rows - self.first.len() - self.last.len()
    }

    fn shown(&self) -> impl Iterator<Item = &Vec<GridCell>> {
        self.first.iter().chain(&self.last)
    }
}

impl ResultWriter for Grid {
    fn start(&mut self, schema: &Schema, _out: &mut dyn Write) -> io::Result<()> {
        let fields = schema.fields();
        self.heads = fields.iter().map(|field| Some(cell_lines(field.name()))).collect();
        self.is_number = fields.iter().map(|field| field.data_type().is_numeric()).collect();
        self.is_plan = fields.iter().map(|field| field.name()).eq(["plan_type", "plan"]);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, _out: &mut dyn Write) -> io::Result<()> {
        let arrays = plain(batch)?;
        let columns = columns(&arrays, self.layout.style)?;
        let (first, last) = self.room();
        let head = batch.num_rows().min(first - self.first.len());
        self.first.extend((0..head).map(|row| cells(&columns, row)));
        let tail = batch.num_rows().saturating_sub(last).max(head);
        for row in tail..batch.num_rows() {
            if self.last.len() == last {
                self.last.pop_front();
            }
            self.last.push_back(cells(&columns, row));
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<Vec<String>> {
        if self.is_plan {
            return self.write_plan(out);
        }
        let wanted = self.widths_wanted();
        let mut set = wanted.clone();
        for (width, of_column) in set.iter_mut().zip(&self.layout.widths) {
            if *of_column > 0 {
                *width = *of_column;
            }
        }
        let widths = fitting(&set, self.layout.width);
        Drawing { grid: self, widths: &widths }.draw(out)?;
        Ok(self.notes(&wanted, &widths))
    }
}

impl Grid {
    /// A plan has lines of its own, so it is printed without a grid.
    fn write_plan(&self, out: &mut dyn Write) -> io::Result<Vec<String>> {
        for row in self.shown() {
            for cell in row {
                let lines = cell.iter().flatten();
                let lines: Vec<&str> = lines.map(String::as_str).collect();
                writeln!(out, "{}", lines.join("\n").trim_end())?;
            }
        }
        Ok(Vec::new())
    }

    /// Full width of every column.
    fn widths_wanted(&self) -> Vec<usize> {
        let null = self.layout.null_or("NULL").width();
        let heads =
            self.heads.iter().map(|head| if self.layout.headless { 0 } else { width(head, null) });
        let mut widths: Vec<usize> = heads.collect();
        for row in self.shown() {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(width(cell, null));
            }
        }
        widths
    }

    fn notes(&self, wanted: &[usize], widths: &[usize]) -> Vec<String> {
        let mut notes = Vec::new();
        if self.left_out() > 0 {
            let shown = self.rows - self.left_out();
            notes.push(format!("{shown} shown; .maxrows 0 shows all"));
        }
        if widths.len() < wanted.len() {
            let (shown, all) = (widths.len(), wanted.len());
            notes.push(format!("{shown} of {all} columns shown; .mode line shows all"));
        }
        if widths.iter().zip(wanted).any(|(width, wanted)| width < wanted) {
            let cut = self.lines.cut;
            notes.push(format!("values cut at {cut}; .mode line shows them whole"));
        }
        notes
    }
}

fn cells(columns: &[OutputColumn<'_>], row: usize) -> Vec<GridCell> {
    columns.iter().map(|column| column.text(row).map(|text| cell_lines(&text))).collect()
}

/// The lines of a text, without terminal control characters.
fn cell_lines(text: &str) -> Vec<String> {
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    lines.map(printable).collect()
}

fn printable(line: &str) -> String {
    let mut printable = String::with_capacity(line.len());
    for letter in line.chars() {
        match letter {
            '\t' => printable.push_str("   "),
            letter if letter.is_control() => {
                printable.push_str(&format!("\\x{:02x}", u32::from(letter)));
            }
            letter => printable.push(letter),
        }
    }
    printable
}

/// Width of a cell, which may be NULL.
fn width(cell: &GridCell, null: usize) -> usize {
    match cell {
        Some(lines) => lines.iter().map(|line| line.width()).max().unwrap_or(0),
        None => null,
    }
}

/// Fits the widths into a terminal: the widest columns shrink first; if all columns at their minimum do not fit, the
/// last ones are dropped.
fn fitting(wanted: &[usize], terminal: Option<usize>) -> Vec<usize> {
    let Some(terminal) = terminal else { return wanted.to_vec() };
    // A bar and two spaces for each column, and a last bar.
    let room = |columns: usize| terminal.saturating_sub(3 * columns + 1);
    let capped = |columns: usize, cap: usize| -> usize {
        wanted[..columns].iter().map(|width| (*width).min(cap)).sum()
    };
    let fits = |columns: &usize| capped(*columns, WIDTH_MIN) <= room(*columns);
    let columns = (1..=wanted.len()).rev().find(fits).unwrap_or(wanted.len().min(1));
    let widest = wanted[..columns].iter().copied().max().unwrap_or(0);
    let cap =
        (WIDTH_MIN..=widest.min(terminal)).rev().find(|cap| capped(columns, *cap) <= room(columns));
    wanted[..columns].iter().map(|width| (*width).min(cap.unwrap_or(WIDTH_MIN))).collect()
}

/// A grid with the widths of the drawn columns.
struct Drawing<'a> {
    grid: &'a Grid,
    widths: &'a [usize],
}

impl Drawing<'_> {
    fn draw(&self, out: &mut dyn Write) -> io::Result<()> {
        let lines = self.grid.lines;
        self.rule(&lines.top, out)?;
        if !self.grid.layout.headless {
            self.row(&self.grid.heads, out)?;
            self.rule(&lines.middle, out)?;
        }
        for row in &self.grid.first {
            self.row(row, out)?;
        }
        if self.grid.left_out() > 0 {
            let more = Some(vec![lines.more.to_owned()]);
            self.row(&vec![more; self.widths.len()], out)?;
        }
        for row in &self.grid.last {
            self.row(row, out)?;
        }
        self.rule(&lines.bottom, out)
    }

    fn rule(&self, rule: &Rule, out: &mut dyn Write) -> io::Result<()> {
        let parts: Vec<String> = self.widths.iter().map(|width| rule.line.repeat(*width)).collect();
        writeln!(out, "{}{}{}", rule.left, parts.join(rule.cross), rule.right)
    }

    fn row(&self, row: &[GridCell], out: &mut dyn Write) -> io::Result<()> {
        let shown = &row[..self.widths.len()];
        let height = shown.iter().flatten().map(Vec::len).max().unwrap_or(1).max(1);
        let bar = self.grid.lines.bar;
        for line in 0..height {
            let cells = shown.iter().enumerate().map(|(i, cell)| self.cell(i, cell, line));
            let cells: Vec<String> = cells.collect();
            writeln!(out, "{bar} {} {bar}", cells.join(&format!(" {bar} ")))?;
        }
        Ok(())
    }

    /// One line of a cell, padded to the width of its column.
    fn cell(&self, column: usize, cell: &GridCell, line: usize) -> String {
        let text = match cell {
            Some(lines) => lines.get(line).map_or("", String::as_str),
            None if line == 0 => self.grid.layout.null_or("NULL"),
            None => "",
        };
        let text = cut(text, self.widths[column], self.grid.lines.cut);
        let padding = " ".repeat(self.widths[column].saturating_sub(text.width()));
        let text = match cell {
            None if self.grid.layout.color && !text.is_empty() => format!("\x1b[2m{text}\x1b[0m"),
            _ => text,
        };
        if self.grid.is_number[column] { padding + &text } else { text + &padding }
    }
}

/// The text, cut with a mark if it does not fit.
fn cut(text: &str, width: usize, mark: char) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = mark.width().unwrap_or(1);
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(letter);
    }
    kept.push(mark);
    kept
}
