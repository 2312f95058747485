//! The sink that writes the files of a COPY; each kind of file supplies what differs of DataFusion's two traits.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSink;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::object_store::ObjectStore;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};

/// Files of a kind.
#[async_trait]
pub(super) trait WriteFiles: Send + Sync + 'static {
    /// Its name in EXPLAIN.
    const NAME: &'static str;

    fn config(&self) -> &FileSinkConfig;

    /// The details that EXPLAIN shows after the name.
    fn details(&self) -> String {
        String::new()
    }

    /// The rows as they are written.
    fn rows(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        rows
    }

    /// Writes the files that the rows were dealt to. Returns the number of rows.
    async fn write(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64>;
}

/// A sink of files.
pub(super) struct WrittenFiles<W>(pub(super) W);

impl<W: WriteFiles> fmt::Debug for WrittenFiles<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(W::NAME).finish_non_exhaustive()
    }
}

impl<W: WriteFiles> DisplayAs for WrittenFiles<W> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", W::NAME, self.0.details())
    }
}

#[async_trait]
impl<W: WriteFiles> FileSink for WrittenFiles<W> {
    fn config(&self) -> &FileSinkConfig {
        self.0.config()
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        self.0.write(context, demux_task, files, store).await
    }
}

#[async_trait]
impl<W: WriteFiles> DataSink for WrittenFiles<W> {
    fn schema(&self) -> &SchemaRef {
        self.0.config().output_schema()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        FileSink::write_all(self, self.0.rows(data), context).await
    }
}
