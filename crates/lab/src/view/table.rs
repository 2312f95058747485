//! Columns of text.

/// Columns of a terminal that a table fits.
pub(super) const COLUMNS_MAX: usize = 100;
const INDENT: &str = "  ";
const GAP: usize = 2;

/// Rows under heads; the first column is aligned left, all others right.
pub(super) struct TextTable {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// An empty table.
    pub(super) fn new<H: Into<String>>(heads: impl IntoIterator<Item = H>) -> Self {
        Self { heads: heads.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row with a cell for each head.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whether it has no row.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table; one that is too wide as several, each with the first column.
    pub(super) fn text(&self) -> String {
        let widths: Vec<usize> = (0..self.heads.len()).map(|column| self.width(column)).collect();
        let Some(first) = widths.first() else { return String::new() };
        let room = COLUMNS_MAX.saturating_sub(INDENT.len() + first);
        let mut text = String::new();
        let mut from = 1;
        while from < widths.len() {
            let mut to = from;
            let mut used = 0;
            while to < widths.len() && (to == from || used + GAP + widths[to] <= room) {
                used += GAP + widths[to];
                to += 1;
            }
            self.columns(&mut text, &widths, from..to);
            from = to;
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells
            .chain(&self.heads[column..=column])
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    }

    fn columns(&self, text: &mut String, widths: &[usize], columns: std::ops::Range<usize>) {
        for row in std::iter::once(&self.heads).chain(&self.rows) {
            let mut line = format!("{INDENT}{:<width$}", row[0], width = widths[0]);
            for column in columns.clone() {
                let width = widths[column] + GAP;
                line.push_str(&format!("{:>width$}", row[column]));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
}
