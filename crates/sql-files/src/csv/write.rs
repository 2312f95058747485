//! Writes CSV and PostgreSQL's text format. arrow-csv quotes values by their text alone, so an empty string and a NULL, or
//! all of a FORCE_QUOTE, read the same; here NULL is never quoted, and values that read like it always are.

use std::sync::Arc;

use async_trait::async_trait;
use atoll_functions::temporal::{TemporalStyle, set_aside, temporal_texts};
use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::csv::{QuoteStyle, WriterBuilder};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::file_options::csv_writer::CsvWriterOptions;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::datasource::file_format::csv::CsvSink;
use datafusion::datasource::file_format::write::BatchSerializer;
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::file_format::write::orchestration::spawn_writer_tasks_and_join;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::execution::TaskContext;
use datafusion::object_store::ObjectStore;
use datafusion::physical_plan::ExecutionPlan;

use super::NamedColumns;
use crate::sink::{WriteFiles, WrittenFiles};

/// How values are separated, and distinguished from NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvForm {
    /// Between values.
    pub delimiter: u8,
    /// Around values that need it.
    pub quote: u8,
    /// Before a quote, or itself, within quotes.
    pub escape: u8,
    /// The text of NULL.
    pub null: Vec<u8>,
}

impl CsvForm {
    /// Turns the text after `start` into one CSV value; quotes it if `always`.
    pub fn quote(&self, start: usize, always: bool, text: &mut Vec<u8>) {
        let value = &text[start..];
        let is_special = |byte: &u8| {
            *byte == self.delimiter || *byte == self.quote || matches!(byte, b'\n' | b'\r')
        };
        let is_other = value == self.null || value == b"\\.";
        if !always && !is_other && !value.iter().any(is_special) {
            return;
        }
        let value = text.split_off(start);
        text.push(self.quote);
        for byte in value {
            if byte == self.quote || byte == self.escape {
                text.push(self.escape);
            }
            text.push(byte);
        }
        text.push(self.quote);
    }

    /// Turns the text after `start` into one value of PostgreSQL's text format.
    pub fn escape(&self, start: usize, text: &mut Vec<u8>) {
        let is_special = |byte: &u8| matches!(byte, b'\\' | 8..=13) || *byte == self.delimiter;
        if !text[start..].iter().any(is_special) {
            return;
        }
        for byte in text.split_off(start) {
            let letter = match byte {
                8 => b'b',
                9 => b't',
                10 => b'n',
                11 => b'v',
                12 => b'f',
                13 => b'r',
                b'\\' => b'\\',
                other if other == self.delimiter => other,
                other => {
                    text.push(other);
                    continue;
                }
            };
            text.extend_from_slice(&[b'\\', letter]);
        }
    }
}

/// Batches as text.
struct CsvText {
    form: CsvForm,
    options: WriterBuilder,
    /// Columns whose values have quotes.
    quoted: NamedColumns,
}

impl CsvText {
    fn new(options: WriterBuilder, quoted: NamedColumns) -> Self {
        let quote = options.quote();
        let form = CsvForm {
            delimiter: options.delimiter(),
            quote,
            escape: if options.double_quote() { quote } else { options.escape() },
            null: options.null().as_bytes().to_vec(),
        };
        Self { form, options, quoted }
    }

    /// Turns the text after `start` into one value; quotes it if `always`.
    fn close(&self, start: usize, always: bool, text: &mut Vec<u8>) {
        match self.options.quote_style() {
            // COPY sets no quotes for the text format.
            QuoteStyle::Never => self.form.escape(start, text),
            style => self.form.quote(start, always || matches!(style, QuoteStyle::Always), text),
        }
    }

    fn header(&self, schema: &SchemaRef, text: &mut Vec<u8>) {
        for (at, field) in schema.fields().iter().enumerate() {
            self.separate(at, text);
            let start = text.len();
            text.extend_from_slice(field.name().as_bytes());
            self.close(start, self.quoted.has(field.name()), text);
        }
        text.push(b'\n');
    }

    fn separate(&self, column: usize, text: &mut Vec<u8>) {
        if column > 0 {
            text.push(self.form.delimiter);
        }
    }
}

impl BatchSerializer for CsvText {
    fn serialize(&self, batch: RecordBatch, initial: bool) -> Result<Bytes> {
        let options = FormatOptions::default()
            .with_date_format(self.options.date_format())
            .with_datetime_format(self.options.datetime_format())
            .with_timestamp_format(self.options.timestamp_format())
            .with_timestamp_tz_format(self.options.timestamp_tz_format())
            .with_time_format(self.options.time_format());
        let mut text = Vec::with_capacity(4096);
        if initial && self.options.header() {
            self.header(&batch.schema(), &mut text);
        }
        let plain = batch.columns().iter().map(|array| match array.data_type() {
            DataType::Interval(_) | DataType::Duration(_) => {
                let texts = temporal_texts(array, TemporalStyle::default())?;
                Ok(texts.map_or_else(|| Arc::clone(array), |texts| Arc::new(texts) as _))
            }
            // Its format is that of dates.
            DataType::Date64 => Ok(cast(array, &DataType::Date32)?),
            _ => Ok(Arc::clone(array)),
        });
        // The formats of dates and timestamps cannot express infinity.
        let finite = plain.map(|array: Result<ArrayRef>| {
            let array = array?;
            Ok(match set_aside(&array)? {
                Some((finite, endless)) => (finite, Some(endless)),
                None => (array, None),
            })
        });
        let finite = finite.collect::<Result<Vec<_>>>()?;
        let columns = finite.iter().zip(batch.columns()).map(|((array, endless), all)| {
            let values = ArrayFormatter::try_new(array.as_ref(), &options)?;
            Ok((values, all.logical_nulls(), endless))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let schema = batch.schema();
        let quoted: Vec<bool> =
            schema.fields().iter().map(|field| self.quoted.has(field.name())).collect();
        let mut value = String::new();
        for row in 0..batch.num_rows() {
            for (at, (values, nulls, endless)) in columns.iter().enumerate() {
                self.separate(at, &mut text);
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    text.extend_from_slice(&self.form.null);
                    continue;
                }
                value.clear();
                match endless.as_ref().and_then(|endless| endless.endless(row)) {
                    Some(endless) => value.push_str(endless.word()),
                    None => values.value(row).write(&mut value).map_err(|error| {
                        exec_datafusion_err!("column '{}': {error}", schema.field(at).name())
                    })?,
                }
                let start = text.len();
                if batch.column(at).data_type().is_binary() {
                    // As PostgreSQL writes bytes, and as they are read.
                    text.extend_from_slice(b"\\x");
                }
                text.extend_from_slice(value.as_bytes());
                self.close(start, quoted[at], &mut text);
            }
            text.push(b'\n');
        }
        Ok(text.into())
    }
}

/// Writes files of CSV.
struct CsvFiles {
    config: FileSinkConfig,
    options: CsvWriterOptions,
    quoted: NamedColumns,
}

/// The plan of DataFusion's format with our writer, which quotes some columns.
pub(super) fn with_own_text(
    plan: Arc<dyn ExecutionPlan>,
    quoted: &NamedColumns,
) -> Arc<dyn ExecutionPlan> {
    let Some(exec) = plan.downcast_ref::<DataSinkExec>() else { return plan };
    let Some(sink) = exec.sink().downcast_ref::<CsvSink>() else { return plan };
    let (config, options) = (sink.config().clone(), sink.writer_options().clone());
    let quoted = quoted.clone();
    let files = Arc::new(WrittenFiles(CsvFiles { config, options, quoted }));
    Arc::new(DataSinkExec::new(Arc::clone(exec.input()), files, exec.sort_order().clone()))
}

#[async_trait]
impl WriteFiles for CsvFiles {
    const NAME: &'static str = "CsvFiles";

    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn write(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        spawn_writer_tasks_and_join(
            context,
            Arc::new(CsvText::new(self.options.writer_options.clone(), self.quoted.clone())),
            self.options.compression.into(),
            self.options.compression_level,
            store,
            demux_task,
            files,
        )
        .await
    }
}
