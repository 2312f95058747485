//! `ndjson`: one JSON object a line.

use std::io::{self, Write};

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::Schema;

use super::ResultWriter;
use super::json_value::Objects;

#[derive(Default)]
pub(super) struct Ndjson {
    objects: Objects,
}

impl ResultWriter for Ndjson {
    fn start(&mut self, schema: &Schema, _out: &mut dyn Write) -> io::Result<()> {
        self.objects = Objects::new(schema);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        self.objects.write(batch, || "", "\n", out)
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::super::testing::{awkward, empty, nested, twice, written};

    #[test]
    fn ndjson_writes_all_digits_nulls_and_special_floats() {
        assert_eq!(
            written(Mode::Ndjson, &awkward()),
            "{\"n\":1,\"text\":\"a,\\\"b\\\"\\nc\",\"x\":1.5,\"price\":12.30}\n\
             {\"n\":null,\"text\":\"zürich 東京\",\"x\":\"NaN\",\"price\":-0.05}\n\
             {\"n\":9007199254740993,\"text\":\"\",\"x\":\"Infinity\",\"price\":null}\n\
             {\"n\":-7,\"text\":null,\"x\":null,\"price\":99999999999999999999.99}\n"
        );
        assert_eq!(written(Mode::Ndjson, &empty()), "");
    }

    #[test]
    fn nested_values_become_arrays_and_objects() {
        assert_eq!(
            written(Mode::Ndjson, &nested()),
            "{\"list\":[1,null],\"point\":{\"x\":1,\"y\":\"a\"},\"word\":\"red\"}\n\
             {\"list\":null,\"point\":{\"x\":2,\"y\":null},\"word\":null}\n\
             {\"list\":[],\"point\":null,\"word\":\"red\"}\n"
        );
    }

    #[test]
    fn columns_of_the_same_name_keep_their_values() {
        assert_eq!(written(Mode::Ndjson, &twice()), "{\"a\":1,\"a_1\":2,\"a_2\":3}\n");
    }
}
