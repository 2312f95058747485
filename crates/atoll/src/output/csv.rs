//! `csv`: comma-separated values as in RFC 4180, with a header. Lines end in LF rather than CRLF, as in psql and
//! DuckDB, so that line-oriented tools can read them.

use std::io::{self, Write};

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::Schema;

use super::column::{columns, plain};
use super::{DrawLayout, ResultWriter};

pub(super) struct Csv {
    pub(super) layout: DrawLayout,
}

impl ResultWriter for Csv {
    fn start(&mut self, schema: &Schema, out: &mut dyn Write) -> io::Result<()> {
        if self.layout.headless {
            return Ok(());
        }
        let mut line = String::new();
        for (i, field) in schema.fields().iter().enumerate() {
            self.separate(i, &mut line);
            self.push_field(field.name(), &mut line);
        }
        writeln!(out, "{line}")
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        let arrays = plain(batch)?;
        let columns = columns(&arrays, self.layout.style)?;
        let (mut line, mut value) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            for (i, column) in columns.iter().enumerate() {
                self.separate(i, &mut line);
                if column.is_null(row) {
                    line.push_str(self.layout.null_or(""));
                } else {
                    value.clear();
                    column.push(row, &mut value);
                    self.push_field(&value, &mut line);
                }
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

impl Csv {
    fn separator(&self) -> &str {
        self.layout.separator_or(",")
    }

    fn separate(&self, column: usize, line: &mut String) {
        if column > 0 {
            line.push_str(self.separator());
        }
    }

    /// Quotes values that need it, and the empty text, which would read as NULL.
    fn push_field(&self, value: &str, line: &mut String) {
        let is_plain = !value.contains(['"', '\n', '\r']) && !value.contains(self.separator());
        if !value.is_empty() && is_plain {
            return line.push_str(value);
        }
        line.push('"');
        line.push_str(&value.replace('"', "\"\""));
        line.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{awkward, empty, texts, written, written_in};
    use super::super::{DrawLayout, Mode};

    #[test]
    fn csv_quotes_special_values_and_distinguishes_null_from_empty() {
        assert_eq!(
            written(Mode::Csv, &awkward()),
            "n,text,x,price\n\
             1,\"a,\"\"b\"\"\nc\",1.5,12.30\n\
             ,zürich 東京,NaN,-0.05\n\
             9007199254740993,\"\",inf,\n\
             -7,,,99999999999999999999.99\n"
        );
    }

    #[test]
    fn csv_without_rows_is_its_header() {
        assert_eq!(written(Mode::Csv, &empty()), "n,text,x,price\n");
    }

    #[test]
    fn another_separator_separates_values_and_is_quoted_within() {
        let layout = DrawLayout { separator: Some("; ".to_owned()), ..DrawLayout::default() };
        let (text, _) = written_in(Mode::Csv, layout, &texts(&["a; b", "c,d"]));
        assert_eq!(text, "text\n\"a; b\"\nc,d\n");
    }
}
