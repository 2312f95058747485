//! Values as JSON.

use std::collections::HashSet;
use std::io::{self, Write};

use atoll_sql::arrow::array::types::{Float16Type, Float32Type, Float64Type};
use atoll_sql::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use atoll_sql::arrow::datatypes::{DataType, Schema};

use super::column::{OutputColumn, Times, items_of, plain};

/// Objects keyed by column names, in column order.
#[derive(Default)]
pub(super) struct Objects {
    /// Keys as JSON, each with its colon.
    keys: Vec<String>,
}

impl Objects {
    pub(super) fn new(schema: &Schema) -> Self {
        let mut taken = HashSet::with_capacity(schema.fields().len());
        let keys = schema.fields().iter().map(|field| {
            let name = unused(field.name(), &taken);
            let key = quoted(&name) + ":";
            taken.insert(name);
            key
        });
        Self { keys: keys.collect() }
    }

    /// Writes the rows, with `before` and `after` around each.
    pub(super) fn write(
        &self,
        batch: &RecordBatch,
        mut before: impl FnMut() -> &'static str,
        after: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let arrays = plain(batch)?;
        let values: Vec<JsonColumn<'_>> =
            arrays.iter().map(JsonColumn::new).collect::<io::Result<Vec<_>>>()?;
        let mut line = String::new();
        for row in 0..batch.num_rows() {
            line.clear();
            line.push_str(before());
            push_object(&self.keys, &values, row, &mut line);
            line.push_str(after);
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}

/// The name, with a number appended if another column has it.
fn unused(name: &str, taken: &HashSet<String>) -> String {
    let numbered = (1..).map(|n| format!("{name}_{n}"));
    let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
    candidates.find(|candidate| !taken.contains(candidate)).unwrap_or_default()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn push_object(keys: &[String], values: &[JsonColumn<'_>], row: usize, line: &mut String) {
    line.push('{');
    for (i, (key, value)) in keys.iter().zip(values).enumerate() {
        if i > 0 {
            line.push(',');
        }
        line.push_str(key);
        value.push(row, line);
    }
    line.push('}');
}

/// A column, and how to write its values.
struct JsonColumn<'a> {
    array: &'a dyn Array,
    column: OutputColumn<'a>,
    kind: JsonKind<'a>,
}

enum JsonKind<'a> {
    /// Digits, `true` and `false`: written unchanged.
    Bare,
    /// Numbers that JSON may not be able to represent.
    Float,
    Text,
    List(Box<JsonColumn<'a>>),
    /// Keys, as JSON texts, and values.
    Map(Box<OutputColumn<'a>>, Box<JsonColumn<'a>>),
    Struct {
        keys: Vec<String>,
        values: Vec<JsonColumn<'a>>,
    },
}

impl<'a> JsonColumn<'a> {
    fn new(array: &'a ArrayRef) -> io::Result<Self> {
        let kind = match array.data_type() {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => JsonKind::Float,
            DataType::Boolean => JsonKind::Bare,
            kind if kind.is_numeric() => JsonKind::Bare,
            DataType::List(_) => JsonKind::list(array.as_list::<i32>().values())?,
            DataType::LargeList(_) => JsonKind::list(array.as_list::<i64>().values())?,
            DataType::FixedSizeList(_, _) => JsonKind::list(array.as_fixed_size_list().values())?,
            DataType::Struct(_) => JsonKind::fields(array)?,
            DataType::Map(..) => JsonKind::Map(
                Box::new(OutputColumn::new(array.as_map().keys().as_ref(), Times::Iso)?),
                Box::new(JsonColumn::new(array.as_map().values())?),
            ),
            _ => JsonKind::Text,
        };
        Ok(Self {
            array: array.as_ref(),
            column: OutputColumn::new(array.as_ref(), Times::Iso)?,
            kind,
        })
    }

    fn push(&self, row: usize, line: &mut String) {
        if self.column.is_null(row) {
            return line.push_str("null");
        }
        match &self.kind {
            JsonKind::Bare => self.column.push(row, line),
            JsonKind::Float => self.push_float(row, line),
            JsonKind::Text => {
                line.push_str(&quoted(&self.column.text(row).unwrap_or_default()));
            }
            JsonKind::List(items) => self.push_list(items, row, line),
            JsonKind::Map(keys, values) => self.push_map(keys, values, row, line),
            JsonKind::Struct { keys, values } => push_object(keys, values, row, line),
        }
    }

    fn push_float(&self, row: usize, line: &mut String) {
        let value = match self.array.data_type() {
            DataType::Float16 => self.array.as_primitive::<Float16Type>().value(row).to_f64(),
            DataType::Float32 => f64::from(self.array.as_primitive::<Float32Type>().value(row)),
            _ => self.array.as_primitive::<Float64Type>().value(row),
        };
        match value {
            value if value.is_nan() => line.push_str("\"NaN\""),
            f64::INFINITY => line.push_str("\"Infinity\""),
            f64::NEG_INFINITY => line.push_str("\"-Infinity\""),
            _ => self.column.push(row, line),
        }
    }

    fn push_map(
        &self,
        keys: &OutputColumn<'_>,
        values: &JsonColumn<'_>,
        row: usize,
        line: &mut String,
    ) {
        line.push('{');
        for (at, entry) in items_of(self.array, row).enumerate() {
            line.push_str(if at > 0 { "," } else { "" });
            line.push_str(&quoted(&keys.text(entry).unwrap_or_default()));
            line.push(':');
            values.push(entry, line);
        }
        line.push('}');
    }

    fn push_list(&self, items: &JsonColumn<'_>, row: usize, line: &mut String) {
        line.push('[');
        let range = items_of(self.array, row);
        let first = range.start;
        for item in range {
            if item > first {
                line.push(',');
            }
            items.push(item, line);
        }
        line.push(']');
    }
}

impl<'a> JsonKind<'a> {
    fn list(items: &'a ArrayRef) -> io::Result<Self> {
        Ok(Self::List(Box::new(JsonColumn::new(items)?)))
    }

    fn fields(array: &'a ArrayRef) -> io::Result<Self> {
        let fields = array.as_struct();
        let names = fields.column_names();
        Ok(Self::Struct {
            keys: names.iter().map(|name| quoted(name) + ":").collect(),
            values: fields.columns().iter().map(JsonColumn::new).collect::<io::Result<_>>()?,
        })
    }
}
