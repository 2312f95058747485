//! Reading values of JSON, in any layout.

use std::io::{BufReader, Read};
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::json::ReaderBuilder;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use serde_json::{Map, Value};

use super::table::{WHOLE, value_error, wrong_value};
use super::values::ValueReader;
use crate::files::read::{BatchSource, Batches, SourceFile, until_failure};

/// How the files of a table are read.
#[derive(Clone, Debug)]
pub(super) struct JsonReading {
    /// Whether of an array at the top the values within are the rows.
    pub(super) unwrap: bool,
    /// Whether values that are wrong are left out.
    pub(super) ignores: bool,
    /// Bytes that a value may have.
    pub(super) max: usize,
    /// Whether values are one column instead of one for each key.
    pub(super) is_whole: bool,
    /// Whether some columns are the text of JSON.
    pub(super) rewrites: bool,
    pub(super) schema: SchemaRef,
}

impl BatchSource for JsonReading {
    fn open(&self, file: &SourceFile, columns: &[usize], rows: usize) -> Result<Batches> {
        let input = BufReader::with_capacity(1 << 16, file.open_content()?);
        let values = ValueReader::new(input, self.unwrap, self.max);
        let mut of_file = JsonBatches {
            reading: self.clone(),
            file: file.clone(),
            schema: Arc::new(self.schema.project(columns)?),
            values: values.map_err(|error| file.failed(&error))?,
            rows,
        };
        Ok(until_failure(move || of_file.batch()))
    }
}

struct JsonBatches {
    reading: JsonReading,
    file: SourceFile,
    schema: SchemaRef,
    values: ValueReader<BufReader<Box<dyn Read + Send>>>,
    rows: usize,
}

/// Texts of values, and the lines they begin in.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<(usize, u64)>,
}

impl Texts {
    fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts.zip(&self.ends).map(|(start, (end, line))| (&self.bytes[start..*end], *line))
    }
}

impl JsonBatches {
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let mut texts = Texts::default();
            let mut text = Vec::new();
            while texts.ends.len() < self.rows {
                let read = self.values.read(&mut text);
                let Some(line) = read.map_err(|error| value_error(&self.file, error))? else {
                    break;
                };
                texts.bytes.extend_from_slice(&text);
                texts.bytes.push(b'\n');
                texts.ends.push((texts.bytes.len(), line));
            }
            if texts.ends.is_empty() {
                return Ok(None);
            }
            let batch = self.decoded(&texts)?;
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
    }

    fn decoded(&self, texts: &Texts) -> Result<RecordBatch> {
        if self.schema.fields().is_empty() && !self.reading.ignores {
            let options = RecordBatchOptions::new().with_row_count(Some(texts.ends.len()));
            let schema = Arc::clone(&self.schema);
            return Ok(RecordBatch::try_new_with_options(schema, Vec::new(), &options)?);
        }
        let whole = match self.reading.rewrites || self.reading.is_whole {
            true => self.rewritten(texts),
            false => self.as_they_are(&texts.bytes, texts.ends.len()),
        };
        match whole {
            Ok(batch) => Ok(batch),
            Err(error) => self.one_by_one(texts, error),
        }
    }

    /// Texts that are values of the columns.
    fn as_they_are(&self, bytes: &[u8], rows: usize) -> Result<RecordBatch> {
        let builder = ReaderBuilder::new(Arc::clone(&self.schema)).with_batch_size(rows);
        let mut decoder = builder.with_coerce_primitive(true).build_decoder()?;
        decoder.decode(bytes)?;
        self.counted(decoder.flush()?, rows)
    }

    /// Values that become text where their column is one.
    fn rewritten(&self, texts: &Texts) -> Result<RecordBatch> {
        let mut values = Vec::with_capacity(texts.ends.len());
        for (text, line) in texts.iter() {
            let value = serde_json::from_slice::<Value>(text);
            values.push(self.fitted(value.map_err(|error| wrong_value(&self.file, line, &error))?));
        }
        let builder = ReaderBuilder::new(Arc::clone(&self.schema)).with_batch_size(values.len());
        let mut decoder = builder.with_coerce_primitive(true).build_decoder()?;
        decoder.serialize(&values)?;
        self.counted(decoder.flush()?, values.len())
    }

    fn counted(&self, batch: Option<RecordBatch>, rows: usize) -> Result<RecordBatch> {
        match batch {
            Some(batch) if batch.num_rows() == rows => Ok(batch),
            _ => Err(exec_datafusion_err!("{}: a value is not whole", self.file.name())),
        }
    }

    fn fitted(&self, value: Value) -> Value {
        if self.reading.is_whole {
            let field = self.schema.fields().first();
            let value = field.map_or(Value::Null, |field| fit(value, field.data_type()));
            return Value::Object(Map::from_iter([(WHOLE.to_owned(), value)]));
        }
        match value {
            Value::Object(mut fields) => {
                let mut kept = Map::with_capacity(self.schema.fields().len());
                for field in self.schema.fields() {
                    if let Some(value) = fields.remove(field.name()) {
                        kept.insert(field.name().clone(), fit(value, field.data_type()));
                    }
                }
                Value::Object(kept)
            }
            other => other,
        }
    }

    /// Finds out which value is wrong, and leaves it out where the statement says so.
    fn one_by_one(&self, texts: &Texts, all: DataFusionError) -> Result<RecordBatch> {
        let mut batches = Vec::new();
        for (text, line) in texts.iter() {
            let one = Texts { bytes: text.to_vec(), ends: vec![(text.len(), line)] };
            match self.rewritten(&one) {
                Ok(batch) => batches.push(batch),
                Err(_) if self.reading.ignores => {}
                Err(DataFusionError::Execution(text)) => {
                    return Err(DataFusionError::Execution(text));
                }
                Err(error) => return Err(self.wrong(line, &error)),
            }
        }
        if !self.reading.ignores && !self.reading.rewrites {
            return Err(all);
        }
        Ok(concat_batches(&self.schema, &batches)?)
    }

    fn wrong(&self, line: u64, error: &DataFusionError) -> DataFusionError {
        let text = error.strip_backtrace();
        let text = text.rsplit("Json error: ").next().unwrap_or(&text);
        exec_datafusion_err!(
            "{}, line {line}: {text}; read_json with columns = {{…}} names the types, and with \
             ignore_errors = true leaves such values out",
            self.file.name()
        )
    }
}

/// A value as its column reads it: where that is text, the text of JSON, and of a string the string.
fn fit(value: Value, to: &DataType) -> Value {
    match (to, value) {
        (_, Value::Null) => Value::Null,
        (DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8, value) => match value {
            Value::String(text) => Value::String(text),
            other => Value::String(other.to_string()),
        },
        (DataType::List(of) | DataType::LargeList(of), Value::Array(values)) => {
            Value::Array(values.into_iter().map(|value| fit(value, of.data_type())).collect())
        }
        (DataType::Struct(fields), Value::Object(mut values)) => {
            let mut kept = Map::with_capacity(fields.len());
            for field in fields {
                if let Some(value) = values.remove(field.name()) {
                    kept.insert(field.name().clone(), fit(value, field.data_type()));
                }
            }
            Value::Object(kept)
        }
        (_, value) => value,
    }
}
