//! `json`: one array of objects, an object a line.

use std::io::{self, Write};

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::Schema;

use super::ResultWriter;
use super::json_value::Objects;

#[derive(Default)]
pub(super) struct Json {
    objects: Objects,
    started: bool,
}

impl ResultWriter for Json {
    fn start(&mut self, schema: &Schema, out: &mut dyn Write) -> io::Result<()> {
        self.objects = Objects::new(schema);
        out.write_all(b"[")
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        let started = &mut self.started;
        let before = || if std::mem::replace(started, true) { ",\n" } else { "" };
        self.objects.write(batch, before, "", out)
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<Vec<String>> {
        out.write_all(b"]\n")?;
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::super::testing::{awkward, empty, written};

    #[test]
    fn json_is_one_array_over_all_batches() {
        let text = written(Mode::Json, &awkward());
        let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(rows.as_array().unwrap().len(), 4);
        assert_eq!(rows[2]["n"], 9_007_199_254_740_993_u64);
        assert_eq!(rows[0]["text"], "a,\"b\"\nc");
        assert!(text.contains("\"price\":99999999999999999999.99}"));
        assert_eq!(text.lines().count(), 4);
    }

    #[test]
    fn json_without_rows_is_an_empty_array() {
        assert_eq!(written(Mode::Json, &empty()), "[]\n");
    }
}
