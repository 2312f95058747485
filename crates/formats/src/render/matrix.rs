//! A matrix of numbers with row and column headings.

use std::fmt::Write;

/// Width of a terminal.
const COLUMNS_MAX: usize = 80;
/// Width of the column of row headings.
const HEAD: usize = 6;

/// A table of whole numbers.
pub(super) fn matrix(corner: &str, heads: &[u32], rows: &[Vec<u32>]) -> String {
    let texts = |row: &Vec<u32>| row.iter().map(u32::to_string).collect();
    matrix_of(corner, heads, &rows.iter().map(texts).collect::<Vec<Vec<String>>>())
}

/// A table of `rows`; `heads` are both its row and its column headings.
pub(super) fn matrix_of(corner: &str, heads: &[u32], rows: &[Vec<String>]) -> String {
    let rows: Vec<(String, Vec<String>)> =
        heads.iter().zip(rows).map(|(head, row)| (head.to_string(), row.clone())).collect();
    table(corner, heads, &rows)
}

/// A table of rows with their headings. A table wider than the terminal is split into several, one below the other.
pub(super) fn table(corner: &str, heads: &[u32], rows: &[(String, Vec<String>)]) -> String {
    let heads: Vec<String> = heads.iter().map(u32::to_string).collect();
    let texts = rows.iter().flat_map(|(_, row)| row).chain(&heads);
    let width = (texts.map(String::len).max().unwrap_or(1) + 2).max(5);
    let columns_each = ((COLUMNS_MAX - HEAD) / width).max(1);
    let mut text = String::new();
    for first in (0..heads.len()).step_by(columns_each) {
        let columns = first..heads.len().min(first + columns_each);
        line(&mut text, corner, &heads[columns.clone()], width);
        for (head, row) in rows {
            line(&mut text, head, &row[columns.clone()], width);
        }
    }
    text
}

fn line(text: &mut String, head: &str, numbers: &[String], width: usize) {
    let _ = write!(text, "{head:>HEAD$}");
    for number in numbers {
        let _ = write!(text, "{number:>width$}");
    }
    text.push('\n');
}
