//! `line`: one value a line, a blank line between rows, as in sqlite3.

use std::io::{self, Write};

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::Schema;
use unicode_width::UnicodeWidthStr;

use super::column::{columns, plain};
use super::{DrawLayout, ResultWriter};

/// Minimum width to which names are right-aligned; longer names widen it.
const NAME_WIDTH_MIN: usize = 5;

pub(super) struct Line {
    layout: DrawLayout,
    /// Column names, padded.
    names: Vec<String>,
    rows: usize,
}

impl Line {
    pub(super) fn new(layout: DrawLayout) -> Self {
        Self { layout, names: Vec::new(), rows: 0 }
    }
}

impl ResultWriter for Line {
    fn start(&mut self, schema: &Schema, _out: &mut dyn Write) -> io::Result<()> {
        let names = schema.fields().iter().map(|field| field.name());
        let width = names.clone().map(|name| name.width()).max().unwrap_or(0).max(NAME_WIDTH_MIN);
        self.names = names.map(|name| " ".repeat(width - name.width()) + name).collect();
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        let arrays = plain(batch)?;
        let columns = columns(&arrays, self.layout.style)?;
        let null = self.layout.null_or("NULL");
        for row in 0..batch.num_rows() {
            if self.rows > 0 {
                writeln!(out)?;
            }
            self.rows += 1;
            for (name, column) in self.names.iter().zip(&columns) {
                let value = column.text(row);
                writeln!(out, "{name} = {}", value.as_deref().unwrap_or(null))?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::super::testing::{awkward, empty, written};

    #[test]
    fn line_writes_a_value_a_line_and_a_blank_line_between_rows() {
        let text = written(Mode::Line, &awkward());
        assert!(text.starts_with(
            "    n = 1\n text = a,\"b\"\nc\n    x = 1.5\nprice = 12.30\n\n    n = NULL\n"
        ));
        assert_eq!(text.matches("\n\n").count(), 3);
    }

    #[test]
    fn line_without_rows_is_empty() {
        assert_eq!(written(Mode::Line, &empty()), "");
    }
}
