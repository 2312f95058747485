//! Reads JSON values in any layout.

use std::io::{BufReader, Read};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::ReaderBuilder;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use serde_json::Value;

use super::infer::WIDE_TYPE;
use super::rewrite::{write_row, write_whole};
use super::table::{value_error, wrong_value};
use super::values::ValueReader;
use crate::csv::is_whole;
use crate::nested::{batch_with_leaves, with_leaf_types_of, with_leaves};
use crate::source::{BatchSource, Batches, SourceFile, until_failure};
use atoll_sql_semantics::arithmetic::convert;

/// How the files of a table are read.
#[derive(Clone, Debug)]
pub(super) struct JsonReading {
    /// Whether the elements of a top-level array are the rows.
    pub(super) unwrap: bool,
    /// Whether invalid values are skipped.
    pub(super) ignores: bool,
    /// Bytes that a value may have.
    pub(super) max: usize,
    /// Whether values are one column instead of one for each key.
    pub(super) is_whole: bool,
    pub(super) rewriting: Rewriting,
    /// Whether some columns are DECIMAL(38,0) because of numbers beyond 64 bits, and so hold only whole numbers.
    pub(super) has_wide: bool,
    pub(super) schema: SchemaRef,
}

/// How values are rewritten before Arrow's reader sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rewriting {
    Never,
    /// If the reader rejects the original: a column may be the text of JSON.
    IfNeeded,
    /// Some columns are the text of JSON.
    Always,
}

impl BatchSource for JsonReading {
    fn open(&self, file: &SourceFile, columns: &[usize], rows: usize) -> Result<Batches> {
        let input = BufReader::with_capacity(1 << 16, file.open_content()?);
        let values = ValueReader::new(input, self.unwrap, self.max);
        let schema = Arc::new(self.schema.project(columns)?);
        let mut of_file = JsonBatches {
            reading: self.clone(),
            file: file.clone(),
            read: with_texts(&schema, self.has_wide),
            schema,
            values: values.map_err(|error| file.failed(&error))?,
            rows,
        };
        Ok(until_failure(move || of_file.batch()))
    }
}

struct JsonBatches {
    reading: JsonReading,
    file: SourceFile,
    /// The columns in types that Arrow's reader supports.
    read: SchemaRef,
    schema: SchemaRef,
    values: ValueReader<BufReader<Box<dyn Read + Send>>>,
    rows: usize,
}

/// The columns with texts in place of values that Arrow's reader does not support, or reads in another form than
/// ours: it truncates a number at its point.
fn with_texts(schema: &Schema, has_wide: bool) -> SchemaRef {
    with_leaf_types_of(schema, &mut |leaf| match leaf {
        DataType::Interval(_) => DataType::Utf8,
        wide if has_wide && *wide == WIDE_TYPE => DataType::Utf8,
        _ if leaf.is_binary() => DataType::Utf8,
        _ => leaf.clone(),
    })
}

/// The texts of values, and the lines they begin in.
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
        self.whole(texts).or_else(|error| self.one_by_one(texts, error))
    }

    fn whole(&self, texts: &Texts) -> Result<RecordBatch> {
        let as_they_are = || self.as_they_are(&texts.bytes, texts.ends.len());
        match self.reading.rewriting {
            _ if self.reading.is_whole => self.rewritten(texts),
            Rewriting::Never => as_they_are(),
            Rewriting::IfNeeded => as_they_are().or_else(|_| self.rewritten(texts)),
            Rewriting::Always => self.rewritten(texts),
        }
    }

    /// Texts that are values of the columns.
    fn as_they_are(&self, bytes: &[u8], rows: usize) -> Result<RecordBatch> {
        let builder = ReaderBuilder::new(Arc::clone(&self.read)).with_batch_size(rows);
        let mut decoder = builder.with_coerce_primitive(true).build_decoder()?;
        decoder.decode(bytes)?;
        self.counted(decoder.flush()?, rows)
    }

    /// Values that become text where their column is one.
    fn rewritten(&self, texts: &Texts) -> Result<RecordBatch> {
        let (columns, mut bytes) = (self.read.fields(), Vec::with_capacity(texts.bytes.len()));
        for (text, line) in texts.iter() {
            let checked = serde_json::from_slice::<Value>(text);
            checked.map_err(|error| wrong_value(&self.file, line, &error))?;
            match self.reading.is_whole {
                true => write_whole(text, columns.first().map(AsRef::as_ref), &mut bytes),
                false => write_row(text, columns, &mut bytes),
            }
        }
        self.as_they_are(&bytes, texts.ends.len())
    }

    fn counted(&self, batch: Option<RecordBatch>, rows: usize) -> Result<RecordBatch> {
        match batch {
            Some(batch) if batch.num_rows() == rows => {
                let leaf = |texts: &ArrayRef, to: &DataType| self.leaf(texts, to);
                let typed = batch_with_leaves(&batch, &self.schema, &leaf);
                typed.map_err(|error| self.with_column(&batch, error))
            }
            _ => Err(exec_datafusion_err!("{}: a value is incomplete", self.file.name())),
        }
    }

    /// Texts as the innermost values of a column.
    fn leaf(&self, texts: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
        if self.reading.has_wide && *to == WIDE_TYPE {
            let numbers = convert(texts, to, true)?;
            for (row, text) in texts.as_string::<i32>().iter().enumerate() {
                if let Some(text) = text
                    && (numbers.is_null(row) || !is_whole(text))
                {
                    let wanted = "the type that the first rows suggest";
                    let why = format!("'{text}' cannot be read as DECIMAL(38,0), {wanted}");
                    return Err(ArrowError::JsonError(why).into());
                }
            }
            return Ok(numbers);
        }
        convert(texts, to, false)
    }

    /// The error of a batch with the name of its column.
    fn with_column(&self, batch: &RecordBatch, error: DataFusionError) -> DataFusionError {
        let leaf = |texts: &ArrayRef, to: &DataType| self.leaf(texts, to);
        let is_wrong = |(values, field): &(&ArrayRef, &FieldRef)| {
            with_leaves(values, field.data_type(), &leaf).is_err()
        };
        let wrong = batch.columns().iter().zip(self.schema.fields()).find(is_wrong);
        let why = match error.find_root() {
            DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
                ArrowError::JsonError(why) => Some(why.clone()),
                _ => None,
            },
            _ => None,
        };
        match (wrong, why) {
            (Some((_, field)), Some(why)) => {
                ArrowError::JsonError(format!("column \"{}\": {why}", field.name())).into()
            }
            _ => error,
        }
    }

    /// Finds the invalid value, and skips it if the statement says so.
    fn one_by_one(&self, texts: &Texts, all: DataFusionError) -> Result<RecordBatch> {
        let mut batches = Vec::new();
        for (text, line) in texts.iter() {
            let one = Texts { bytes: text.to_vec(), ends: vec![(text.len(), line)] };
            let read = match self.reading.rewriting {
                Rewriting::IfNeeded => self.whole(&one),
                // The error names parts of the value itself.
                Rewriting::Never | Rewriting::Always => self.rewritten(&one),
            };
            match read {
                Ok(batch) => batches.push(batch),
                Err(_) if self.reading.ignores => {}
                Err(DataFusionError::Execution(text)) => {
                    return Err(DataFusionError::Execution(text));
                }
                Err(error) => return Err(self.wrong(line, &error)),
            }
        }
        if !self.reading.ignores && self.reading.rewriting == Rewriting::Never {
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
