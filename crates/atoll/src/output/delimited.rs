//! `tabs` and `list`: values separated by a text, as in sqlite3. Nothing is quoted; in `tabs`, a line break or
//! separator inside a value becomes a space.

use std::io::{self, Write};

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::Schema;

use super::column::{columns, plain};
use super::{DrawLayout, ResultWriter};

pub(super) struct Delimited {
    pub(super) delimiter: &'static str,
    pub(super) layout: DrawLayout,
}

impl Delimited {
    fn line<'a>(
        &self,
        values: impl Iterator<Item = &'a str>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut line = String::new();
        let delimiter = self.layout.separator_or(self.delimiter);
        for (at, value) in values.enumerate() {
            if at > 0 {
                line.push_str(delimiter);
            }
            match delimiter {
                "\t" => line.push_str(&value.replace(['\t', '\n', '\r'], " ")),
                _ => line.push_str(value),
            }
        }
        writeln!(out, "{line}")
    }
}

impl ResultWriter for Delimited {
    fn start(&mut self, schema: &Schema, out: &mut dyn Write) -> io::Result<()> {
        if self.layout.headless {
            return Ok(());
        }
        self.line(schema.fields().iter().map(|field| field.name().as_str()), out)
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        let arrays = plain(batch)?;
        let columns = columns(&arrays, self.layout.style)?;
        for row in 0..batch.num_rows() {
            let values: Vec<_> = columns.iter().map(|column| column.text(row)).collect();
            let null = self.layout.null_or("");
            self.line(values.iter().map(|value| value.as_deref().unwrap_or(null)), out)?;
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{awkward, texts, written, written_in};
    use super::super::{DrawLayout, Mode};

    #[test]
    fn tabs_or_bars_separate_values() {
        let text = written(Mode::Tabs, &awkward());
        assert!(text.starts_with("n\ttext\tx\tprice\n1\ta,\"b\" c\t1.5\t12.30\n\tz"), "{text}");
        let layout =
            DrawLayout { headless: true, null: Some("-".to_owned()), ..DrawLayout::default() };
        let (text, _) = written_in(Mode::List, layout, &awkward());
        assert!(text.ends_with("\n-7|-|-|99999999999999999999.99\n"), "{text}");
        assert_eq!(written(Mode::List, &texts(&["a"])), "text\na\n");
    }
}
