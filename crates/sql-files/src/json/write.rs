//! Writes JSON: lines, or one array; NULLs are written as null, so that every column is present when
//! the file is read. DataFusion (55.2) leaves them out, and writes lines whatever the options say. Floats that are not
//! numbers of JSON are texts, as in PostgreSQL: `"NaN"`, `"Infinity"`; Arrow writes null.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::{JsonArray, LineDelimited};
use datafusion::common::Result;
use datafusion::common::config::JsonOptions;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::write::BatchSerializer;
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::file_format::write::orchestration::spawn_writer_tasks_and_join;
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::object_store::ObjectStore;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt, stream};

use super::encode::Encoders;
use crate::amended::OwnOptions;
use crate::sink::WriteFiles;
use atoll_sql_parse::parse::{DATE_FORMAT, TIMESTAMP_FORMAT};

/// The form of dates and timestamps, which JSON does not define: by default DuckDB's, the only one that it reads.
#[derive(Clone, Debug)]
pub(super) struct JsonForm {
    date: Option<String>,
    timestamp: Option<String>,
}

impl JsonForm {
    pub(super) fn from_options(own: &OwnOptions) -> Self {
        let text = |option| own.text(option).map(str::to_owned);
        Self { date: text(DATE_FORMAT), timestamp: text(TIMESTAMP_FORMAT) }
    }

    fn builder(&self) -> WriterBuilder {
        let timestamp =
            |default: &str| self.timestamp.clone().unwrap_or_else(|| default.to_owned());
        let builder = WriterBuilder::new()
            .with_explicit_nulls(true)
            .with_encoder_factory(Arc::new(Encoders))
            .with_timestamp_format(timestamp("%Y-%m-%d %H:%M:%S%.f"))
            .with_timestamp_tz_format(timestamp("%Y-%m-%d %H:%M:%S%.f%:z"));
        match &self.date {
            Some(format) => builder.with_date_format(format.clone()),
            None => builder,
        }
    }
}

/// Batches as text. An empty batch ends an array.
struct JsonText {
    is_array: bool,
    form: JsonForm,
}

impl BatchSerializer for JsonText {
    fn serialize(&self, batch: RecordBatch, initial: bool) -> Result<Bytes> {
        let builder = self.form.builder();
        let mut text = Vec::new();
        if !self.is_array {
            let mut writer = builder.build::<_, LineDelimited>(&mut text);
            writer.write(&batch)?;
            writer.finish()?;
            return Ok(text.into());
        }
        if batch.num_rows() == 0 {
            return Ok(Bytes::from_static(if initial { b"[]\n" } else { b"\n]\n" }));
        }
        let mut rows = Vec::new();
        let mut writer = builder.build::<_, JsonArray>(&mut rows);
        writer.write(&batch)?;
        writer.finish()?;
        drop(writer);
        let rows = rows.strip_prefix(b"[").unwrap_or(&rows);
        let rows = rows.strip_suffix(b"]").unwrap_or(rows);
        text.extend_from_slice(if initial { b"[\n" } else { b",\n" });
        text.extend_from_slice(rows);
        Ok(text.into())
    }
}

/// Writes files of JSON.
pub(super) struct JsonFiles {
    pub(super) config: FileSinkConfig,
    pub(super) options: JsonOptions,
    pub(super) form: JsonForm,
}

#[async_trait]
impl WriteFiles for JsonFiles {
    const NAME: &'static str = "JsonFiles";

    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    fn details(&self) -> String {
        let layout = if self.options.newline_delimited { "lines" } else { "array" };
        format!("(layout={layout})")
    }

    fn rows(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        if self.options.newline_delimited { rows } else { with_end(rows) }
    }

    async fn write(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let is_array = !self.options.newline_delimited;
        let serializer = Arc::new(JsonText { is_array, form: self.form.clone() });
        spawn_writer_tasks_and_join(
            context,
            serializer,
            self.options.compression.into(),
            self.options.compression_level,
            store,
            demux_task,
            files,
        )
        .await
    }
}

/// The rows, then one empty batch, with no empty batch before it.
fn with_end(data: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = data.schema();
    let end = RecordBatch::new_empty(Arc::clone(&schema));
    let rows = data.try_filter(|batch| futures::future::ready(batch.num_rows() > 0));
    let rows = rows.chain(stream::once(async move { Ok(end) }));
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}
