//! Reads records one by one, with what arrow-csv lacks: NULLs, numbers and dates in other forms than
//! SQL's, rows of other lengths, and skipping of invalid rows.

use std::borrow::Cow;
use std::io::{BufReader, Read};
use std::sync::Arc;

use atoll_functions::bytes_of_text;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, RecordBatch, RecordBatchOptions,
    StringArray, StringBuilder,
};
use datafusion::arrow::compute::{cast, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};

use super::backslashes::unescaped;
use super::infer::{CsvColumn, is_whole, plain_number};
use super::options::{CsvSettings, Header};
use super::records::{CsvRecord, CsvSyntax, QuoteFlaw, RecordReader};
use super::source::{not_of_type, sql_name};
use super::times;
use crate::source::{BatchSource, Batches, SourceFile, until_failure};
use atoll_sql_semantics::arithmetic::convert;

/// The syntax and the columns of a table's files.
#[derive(Clone, Debug)]
pub(super) struct CsvReading {
    pub(super) settings: CsvSettings,
    pub(super) syntax: CsvSyntax,
    /// Lines before the first record.
    pub(super) skip: usize,
    pub(super) has_header: bool,
    pub(super) columns: Vec<CsvColumn>,
    pub(super) schema: SchemaRef,
}

impl CsvReading {
    /// The records of a file.
    pub(super) fn records(
        &self,
        file: &SourceFile,
    ) -> Result<RecordReader<BufReader<Box<dyn Read + Send>>>> {
        let input = BufReader::with_capacity(1 << 16, file.open_content()?);
        let mut reader = RecordReader::new(input, self.syntax, self.settings.line_max);
        reader.skip_lines(self.skip).map_err(|error| file.failed(&error))?;
        Ok(reader)
    }
}

impl CsvReading {
    /// Fails for a header that has all of the table's names in another order or, if it must match, anything else
    /// than these names.
    fn check_header(&self, file: &SourceFile, header: &CsvRecord) -> Result<()> {
        let found: Vec<String> = (0..header.len()).map(|at| header.text(at)).collect();
        let wanted: Vec<String> = self.schema.fields().iter().map(|it| it.name().clone()).collect();
        if self.settings.header == Some(Header::Match) && found != wanted {
            return exec_err!(
                "the header of {} does not match: it has the columns {}, and the table has {}",
                file.name(),
                found.join(", "),
                wanted.join(", ")
            );
        }
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names
        };
        match found != wanted && sorted(&found) == sorted(&wanted) {
            true => exec_err!(
                "{} has the columns {}, and the table has {}; union_by_name = true reads such files",
                file.name(),
                found.join(", "),
                wanted.join(", ")
            ),
            false => Ok(()),
        }
    }
}

impl BatchSource for CsvReading {
    fn open(&self, file: &SourceFile, columns: &[usize], rows: usize) -> Result<Batches> {
        let mut records = self.records(file)?;
        if self.has_header {
            let mut header = CsvRecord::default();
            if records.read(&mut header).map_err(|error| file.failed(&error))? {
                self.check_header(file, &header)?;
            }
        }
        let nulls = self.settings.null_texts();
        let mut of_file = CsvBatches {
            reading: self.clone(),
            schema: Arc::new(self.schema.project(columns)?),
            wanted: columns.to_vec(),
            file: file.clone(),
            records,
            nulls,
            rows,
        };
        Ok(until_failure(move || of_file.batch()))
    }
}

struct CsvBatches {
    reading: CsvReading,
    schema: SchemaRef,
    wanted: Vec<usize>,
    file: SourceFile,
    records: RecordReader<BufReader<Box<dyn Read + Send>>>,
    nulls: Vec<String>,
    rows: usize,
}

impl CsvBatches {
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut texts: Vec<StringBuilder> =
            self.wanted.iter().map(|_| StringBuilder::new()).collect();
        let (mut record, mut lines) = (CsvRecord::default(), Vec::new());
        while lines.len() < self.rows
            && self.records.read(&mut record).map_err(|error| self.file.failed(&error))?
        {
            if record.is_blank() && self.reading.columns.len() > 1 {
                continue;
            }
            match self.check(&record) {
                Ok(()) => {}
                Err(_) if self.reading.settings.ignore_errors => continue,
                Err(error) => return Err(error),
            }
            for (builder, column) in texts.iter_mut().zip(&self.wanted) {
                builder.append_option(self.value(&record, *column));
            }
            lines.push(record.line);
        }
        if lines.is_empty() { Ok(None) } else { self.typed(texts, &lines).map(Some) }
    }

    /// Fails if a record does not have the values of a row.
    fn check(&self, record: &CsvRecord) -> Result<()> {
        let CsvReading { settings, columns, schema, .. } = &self.reading;
        let (expected, found) = (columns.len(), record.len());
        if settings.strict {
            let flaw = match record.flaw {
                Some(QuoteFlaw::Unterminated) => Some("a quote is not closed"),
                Some(QuoteFlaw::Stray) => Some("a closing quote is not followed by a delimiter"),
                None => None,
            };
            if let Some(flaw) = flaw {
                return Err(self.wrong(record.line, flaw));
            }
        }
        if found > expected && settings.strict || found < expected && !settings.padding {
            let counts = format!("expected {expected} values, found {found}");
            return Err(self.wrong(record.line, &counts));
        }
        for column in 0..found.min(expected) {
            if std::str::from_utf8(&self.bytes(record, column)).is_err() {
                let name = schema.field(column).name();
                return Err(self.wrong(
                    record.line,
                    &format!(
                        "column \"{name}\" is not UTF-8; convert the file, for example with \
                              iconv -f LATIN1 -t UTF-8"
                    ),
                ));
            }
        }
        Ok(())
    }

    fn wrong(&self, line: u64, what: &str) -> DataFusionError {
        exec_datafusion_err!("{}, line {line}: {what}", self.file.name())
    }

    /// The meaning of a value that is not NULL, with its backslashes resolved.
    fn bytes<'a>(&self, record: &'a CsvRecord, column: usize) -> Cow<'a, [u8]> {
        match self.reading.settings.is_text {
            true => unescaped(record.value(column)),
            false => Cow::Borrowed(record.value(column)),
        }
    }

    fn value<'a>(&self, record: &'a CsvRecord, column: usize) -> Option<Cow<'a, str>> {
        if column >= record.len() {
            return None;
        }
        let written = record.value(column);
        let CsvReading { settings, columns, schema, .. } = &self.reading;
        let (is_text, name) = (columns[column].data_type.is_string(), schema.field(column).name());
        let are_null = settings.quoted_nulls.are_null(is_text) || settings.forced_null.has(name);
        let is_null = self.nulls.iter().any(|null| null.as_bytes() == written)
            && (are_null || !record.is_quoted(column))
            && !settings.not_null.has(name);
        match self.bytes(record, column) {
            _ if is_null => None,
            Cow::Borrowed(value) => std::str::from_utf8(value).ok().map(Cow::Borrowed),
            Cow::Owned(value) => String::from_utf8(value).ok().map(Cow::Owned),
        }
    }

    fn typed(&self, texts: Vec<StringBuilder>, lines: &[u64]) -> Result<RecordBatch> {
        let ignores = self.reading.settings.ignore_errors;
        let mut wrong = vec![false; lines.len()];
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(texts.len());
        for (mut builder, column) in texts.into_iter().zip(&self.wanted) {
            let text = builder.finish();
            let column_type = &self.reading.columns[*column];
            let array = typed(&text, column_type, &self.reading.settings)?;
            if array.null_count() > text.null_count() {
                for row in (0..text.len()).filter(|row| array.is_null(*row) && text.is_valid(*row))
                {
                    if !ignores {
                        let name = self.reading.schema.field(*column).name();
                        let wanted = sql_name(&column_type.data_type);
                        let given = self.reading.settings.auto_detect;
                        return Err(not_of_type(
                            &self.file.name(),
                            lines[row],
                            name,
                            text.value(row),
                            &wanted,
                            given,
                        ));
                    }
                    wrong[row] = true;
                }
            }
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(lines.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        match wrong.contains(&true) {
            true => {
                let kept: BooleanArray = wrong.iter().map(|wrong| Some(!wrong)).collect();
                Ok(filter_record_batch(&batch, &kept)?)
            }
            false => Ok(batch),
        }
    }
}

/// Texts as values of a type; NULL where a text is not one.
fn typed(text: &StringArray, column: &CsvColumn, settings: &CsvSettings) -> Result<ArrayRef> {
    let to = &column.data_type;
    let rewritten = |rewrite: &dyn Fn(&str) -> Option<String>| -> StringArray {
        text.iter().map(|value| value.and_then(rewrite)).collect()
    };
    let format = |timestamps: bool| match (&column.format, timestamps) {
        (Some(format), _) => Some(format.clone()),
        (None, true) => settings.timestamp_format.clone(),
        (None, false) => settings.date_format.clone(),
    };
    let text = match to {
        DataType::Utf8 => return Ok(Arc::new(text.clone())),
        _ if to.is_binary() => {
            let bytes = |text: &str| bytes_of_text(text).ok();
            let bytes: BinaryArray = text.iter().map(|text| text.and_then(bytes)).collect();
            return Ok(cast(&bytes, to)?);
        }
        _ if to.is_nested() => {
            let texts: ArrayRef = Arc::new(text.clone());
            return convert(&texts, to, true);
        }
        DataType::Date32 => match format(false) {
            Some(format) => rewritten(&|value| times::date(value, &format)),
            None => text.clone(),
        },
        DataType::Timestamp(_, _) => match format(true) {
            Some(format) => rewritten(&|value| times::timestamp(value, &format)),
            None => rewritten(&|value| Some(with_seconds(value))),
        },
        _ if column.is_whole => rewritten(&|value| {
            Some(plain_number(value, settings)).filter(|number| is_whole(number))
        }),
        _ if to.is_numeric() => rewritten(&|value| Some(plain_number(value, settings))),
        _ => text.clone(),
    };
    let text: ArrayRef = Arc::new(text);
    let array = convert(&text, to, true)?;
    match to {
        // The cast drops excess digits after the point; excess digits before it are an error.
        DataType::Float64 if array.null_count() > text.null_count() => {
            let texts = text.as_string::<i32>().iter();
            let parsed = texts.map(|value| value.and_then(|value| value.parse::<f64>().ok()));
            let parsed: datafusion::arrow::array::Float64Array = parsed.collect();
            Ok(Arc::new(parsed))
        }
        _ => Ok(array),
    }
}

/// A moment, with seconds added if it has none.
fn with_seconds(value: &str) -> String {
    let Some((date, time)) = value.trim().split_once(['T', ' ']) else { return value.to_owned() };
    let at = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(at);
    match clock.trim_end().matches(':').count() {
        1 => format!("{date}T{}:00{zone}", clock.trim_end()),
        _ => format!("{date}T{}{zone}", clock.trim_end()),
    }
}
