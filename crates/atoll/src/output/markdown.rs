//! `markdown`: a pipe table, numbers right-aligned.

use std::io::{self, Write};

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::Schema;

use super::column::{columns, plain};
use super::{DrawLayout, ResultWriter};

pub(super) struct Markdown {
    pub(super) layout: DrawLayout,
}

impl ResultWriter for Markdown {
    fn start(&mut self, schema: &Schema, out: &mut dyn Write) -> io::Result<()> {
        let fields = schema.fields();
        let names: Vec<String> = fields.iter().map(|field| escaped(field.name())).collect();
        let rule = fields.iter().map(|field| match field.data_type().is_numeric() {
            true => "---:",
            false => "---",
        });
        writeln!(out, "| {} |", names.join(" | "))?;
        writeln!(out, "| {} |", rule.collect::<Vec<_>>().join(" | "))
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        let arrays = plain(batch)?;
        let columns = columns(&arrays, self.layout.style)?;
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.text(row));
            let null = self.layout.null_or("NULL");
            let values = values.map(|value| value.map_or_else(|| null.to_owned(), |v| escaped(&v)));
            writeln!(out, "| {} |", values.collect::<Vec<_>>().join(" | "))?;
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// Puts a cell on one line and escapes its pipes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "<br>").replace('\n', "<br>")
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::super::testing::{awkward, texts, written};

    #[test]
    fn markdown_aligns_numbers_and_keeps_a_row_on_one_line() {
        let text = written(Mode::Markdown, &awkward());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "| n | text | x | price |");
        assert_eq!(lines[1], "| ---: | --- | ---: | ---: |");
        assert_eq!(lines[2], "| 1 | a,\"b\"<br>c | 1.5 | 12.30 |");
        assert_eq!(lines[5], "| -7 | NULL | NULL | 99999999999999999999.99 |");
        assert_eq!(lines.len(), 6);
    }

    #[test]
    fn markdown_escapes_pipes_and_backslashes() {
        let text = written(Mode::Markdown, &texts(&["a|b", r"c\|d"]));
        assert!(text.ends_with("| a\\|b |\n| c\\\\\\|d |\n"), "{text}");
    }
}
