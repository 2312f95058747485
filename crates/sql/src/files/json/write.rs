//! Writing JSON: lines, or one array; NULLs are written as null, so that every column is there again when
//! the file is read. DataFusion (55.2) leaves them out, and writes lines whatever the options say.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::{JsonArray, LineDelimited};
use datafusion::common::Result;
use datafusion::common::config::JsonOptions;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::write::BatchSerializer;
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::file_format::write::orchestration::spawn_writer_tasks_and_join;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSink;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::object_store::ObjectStore;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use futures::{StreamExt, TryStreamExt, stream};

/// Batches as text. Of an array, a batch without rows is the end.
struct JsonText {
    is_array: bool,
}

impl BatchSerializer for JsonText {
    fn serialize(&self, batch: RecordBatch, initial: bool) -> Result<Bytes> {
        // As DuckDB writes them, which reads no others as moments.
        let builder = WriterBuilder::new()
            .with_explicit_nulls(true)
            .with_timestamp_format("%Y-%m-%d %H:%M:%S%.f".to_owned())
            .with_timestamp_tz_format("%Y-%m-%d %H:%M:%S%.f%:z".to_owned());
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
}

impl fmt::Debug for JsonFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonFiles").finish_non_exhaustive()
    }
}

impl DisplayAs for JsonFiles {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = if self.options.newline_delimited { "lines" } else { "array" };
        write!(f, "JsonFiles(layout={layout})")
    }
}

#[async_trait]
impl FileSink for JsonFiles {
    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let serializer = Arc::new(JsonText { is_array: !self.options.newline_delimited });
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

#[async_trait]
impl DataSink for JsonFiles {
    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let data = if self.options.newline_delimited { data } else { with_end(data) };
        FileSink::write_all(self, data, context).await
    }
}

/// The rows, then a batch without any, which there is none of before.
fn with_end(data: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = data.schema();
    let end = RecordBatch::new_empty(Arc::clone(&schema));
    let rows = data.try_filter(|batch| futures::future::ready(batch.num_rows() > 0));
    let rows = rows.chain(stream::once(async move { Ok(end) }));
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}
