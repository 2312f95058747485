//! Rows of a table, given by the names of its columns.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray, new_null_array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};

/// A value of a row.
#[derive(Clone, Debug)]
pub(super) enum Datum {
    Null,
    Bool(bool),
    /// A number, or microseconds since 1970.
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Datum>),
}

/// The rows of a table.
pub(super) struct Rows {
    schema: SchemaRef,
    rows: Vec<Vec<Option<Datum>>>,
}

impl Rows {
    pub(super) fn new(schema: &SchemaRef) -> Self {
        Self { schema: Arc::clone(schema), rows: Vec::new() }
    }

    /// Adds a row of these values; other columns are NULL, or 0, false and empty if they are not nullable.
    pub(super) fn add<const N: usize>(&mut self, values: [(&str, Datum); N]) {
        let fields = self.schema.fields();
        let mut row = vec![None; fields.len()];
        // Values mostly come in the order of the columns.
        let mut next = 0;
        for (name, value) in values {
            let order = (next..fields.len()).chain(0..next);
            let found = { order }.find(|at| fields[*at].name() == name);
            debug_assert!(found.is_some(), "column {name} is not declared");
            if let Some(at) = found {
                row[at] = Some(value);
                next = at + 1;
            }
        }
        self.rows.push(row);
    }

    /// Sets a column of all rows, if it exists.
    pub(super) fn fill(&mut self, name: &str, value: &Datum) {
        if let Ok(at) = self.schema.index_of(name) {
            self.rows.iter_mut().for_each(|row| row[at] = Some(value.clone()));
        }
    }

    /// Sets a column of the last row, if it exists.
    pub(super) fn set(&mut self, name: &str, value: Datum) {
        if let (Ok(at), Some(row)) = (self.schema.index_of(name), self.rows.last_mut()) {
            row[at] = Some(value);
        }
    }

    /// The columns with these numbers; all if there are none.
    pub(super) fn batch(&self, projection: Option<&Vec<usize>>) -> Result<RecordBatch> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let wanted = projection.unwrap_or(&all);
        let fields: Vec<_> =
            wanted.iter().map(|at| Arc::clone(&self.schema.fields()[*at])).collect();
        let columns = { wanted.iter().zip(&fields) }
            .map(|(at, field)| self.column(*at, field))
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        let schema = Arc::new(Schema::new(fields));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    fn column(&self, at: usize, field: &Field) -> Result<ArrayRef> {
        let values = || self.rows.iter().map(move |row| row[at].as_ref());
        let or_none = !field.is_nullable();
        let ints = || values().map(move |value| int(value).or(or_none.then_some(0)));
        let floats = || values().map(move |value| float(value).or(or_none.then_some(0.0)));
        Ok(match field.data_type() {
            DataType::Boolean => {
                let flags = values().map(|value| match value {
                    Some(Datum::Bool(value)) => Some(*value),
                    _ => or_none.then_some(false),
                });
                Arc::new(flags.collect::<BooleanArray>())
            }
            DataType::Int16 => {
                Arc::new(ints().map(|it| it.map(|it| it as i16)).collect::<Int16Array>())
            }
            DataType::Int32 => {
                Arc::new(ints().map(|it| it.map(|it| it as i32)).collect::<Int32Array>())
            }
            DataType::Int64 => Arc::new(ints().collect::<Int64Array>()),
            DataType::Float32 => {
                Arc::new(floats().map(|it| it.map(|it| it as f32)).collect::<Float32Array>())
            }
            DataType::Float64 => Arc::new(floats().collect::<Float64Array>()),
            DataType::Timestamp(_, zone) => {
                let times = ints().collect::<TimestampMicrosecondArray>();
                Arc::new(times.with_timezone_opt(zone.clone()))
            }
            DataType::List(item) => lists(values(), item)?,
            DataType::Utf8 => {
                let texts = values().map(|value| match value {
                    Some(Datum::Text(text)) => Some(text.as_str()),
                    _ => or_none.then_some(""),
                });
                Arc::new(texts.collect::<StringArray>())
            }
            // Types of columns that nothing fills.
            other => new_null_array(other, self.rows.len()),
        })
    }
}

fn int(value: Option<&Datum>) -> Option<i64> {
    match value {
        Some(Datum::Int(value)) => Some(*value),
        _ => None,
    }
}

fn float(value: Option<&Datum>) -> Option<f64> {
    match value {
        Some(Datum::Float(value)) => Some(*value),
        _ => None,
    }
}

fn lists<'a>(
    values: impl Iterator<Item = Option<&'a Datum>>,
    item: &Arc<Field>,
) -> Result<ArrayRef> {
    let list = DataType::List(Arc::clone(item));
    let scalars = values.map(|value| match value {
        Some(Datum::List(items)) => {
            let items = items.iter().map(|value| scalar(value, item.data_type()));
            let items = items.collect::<Result<Vec<_>>>()?;
            let array = match items.is_empty() {
                true => datafusion::arrow::array::new_empty_array(item.data_type()),
                false => ScalarValue::iter_to_array(items)?,
            };
            let offsets = datafusion::arrow::buffer::OffsetBuffer::from_lengths([array.len()]);
            let of =
                datafusion::arrow::array::ListArray::new(Arc::clone(item), offsets, array, None);
            Ok(ScalarValue::List(Arc::new(of)))
        }
        _ => ScalarValue::try_from(&list),
    });
    let scalars = scalars.collect::<Result<Vec<_>>>()?;
    match scalars.is_empty() {
        true => Ok(datafusion::arrow::array::new_empty_array(&list)),
        false => ScalarValue::iter_to_array(scalars),
    }
}

fn scalar(value: &Datum, wanted: &DataType) -> Result<ScalarValue> {
    let value = match value {
        Datum::Null | Datum::List(_) => return ScalarValue::try_from(wanted),
        Datum::Bool(value) => ScalarValue::from(*value),
        Datum::Int(value) => ScalarValue::from(*value),
        Datum::Float(value) => ScalarValue::from(*value),
        Datum::Text(value) => ScalarValue::from(value.as_str()),
    };
    value.cast_to(wanted)
}

impl<T: Into<Datum>> From<Option<T>> for Datum {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<bool> for Datum {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Datum {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<usize> for Datum {
    fn from(value: usize) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Datum {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Datum {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Datum {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&Arc<str>> for Datum {
    fn from(value: &Arc<str>) -> Self {
        Self::Text(value.to_string())
    }
}

impl From<SystemTime> for Datum {
    fn from(value: SystemTime) -> Self {
        let since = value.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::Int(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

impl<T: Into<Datum>> FromIterator<T> for Datum {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}
