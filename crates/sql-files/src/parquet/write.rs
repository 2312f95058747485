//! Writes intervals and UUIDs: DataFusion's writer does not support them, and so gets their bytes, with a schema that
//! declares their meaning.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::config::TableParquetOptions;
use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::file_format::write::get_writer_schema;
use datafusion::datasource::physical_plan::parquet::ParquetSink;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::object_store::ObjectStore;
use datafusion::object_store::buffered::BufWriter;
use datafusion::object_store::path::Path;
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::arrow::{ArrowSchemaConverter, AsyncArrowWriter};
use datafusion::parquet::file::properties::WriterPropertiesBuilder;
use datafusion::parquet::schema::types::{SchemaDescriptor, Type};
use datafusion::physical_plan::ExecutionPlan;

use super::bytes::{ByteValue, INTERVAL, bytes_of};
use super::metadata::with_leaf_columns;
use crate::amended::without_marks;
use crate::nested::{batch_with_leaves, with_leaf_types};
use crate::sink::{WriteFiles, WrittenFiles};
use atoll_sql_common::pg_type::is_uuid;

/// The plan of DataFusion's format, with our writer if a column has such values.
pub(super) fn with_bytes(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let Some(exec) = plan.downcast_ref::<DataSinkExec>() else { return plan };
    let Some(sink) = exec.sink().downcast_ref::<ParquetSink>() else { return plan };
    let (config, options) = (sink.config().clone(), sink.parquet_options().clone());
    let files = Arc::new(WrittenFiles(ByteFiles { config, options }));
    Arc::new(DataSinkExec::new(Arc::clone(exec.input()), files, exec.sort_order().clone()))
}

/// Whether a column contains such values.
pub(super) fn has_bytes(schema: &Schema) -> bool {
    schema.fields().iter().any(|field| leaves(field).iter().any(Option::is_some))
}

/// Whether values of a type contain intervals.
pub fn has_interval(data_type: &DataType) -> bool {
    let mut found = false;
    with_leaf_types(data_type, &mut |leaf| {
        found |= *leaf == INTERVAL;
        leaf.clone()
    });
    found
}

/// The meanings of a column's innermost columns.
fn leaves(field: &Field) -> Vec<Option<ByteValue>> {
    if is_uuid(field) {
        return vec![Some(ByteValue::Uuid)];
    }
    let mut leaves = Vec::new();
    with_leaf_types(field.data_type(), &mut |leaf| {
        leaves.push((*leaf == INTERVAL).then_some(ByteValue::Interval));
        leaf.clone()
    });
    leaves
}

/// The columns with bytes in place of the values.
fn as_bytes(schema: &Schema) -> SchemaRef {
    let field = |field: &FieldRef| {
        let mut leaves = leaves(field).into_iter();
        let mut bytes = |leaf: &DataType| {
            leaves.next().flatten().map_or_else(|| leaf.clone(), ByteValue::bytes)
        };
        let data_type = with_leaf_types(field.data_type(), &mut bytes);
        Field::clone(field).with_data_type(data_type)
    };
    without_marks(&Schema::new_with_metadata(
        schema.fields().iter().map(field).collect::<Vec<_>>(),
        schema.metadata().clone(),
    ))
}

/// The columns of the file, which declare the meaning of the bytes.
fn columns(values: &Schema, bytes: &Schema) -> Result<SchemaDescriptor> {
    let plain = ArrowSchemaConverter::new().convert(bytes)?;
    let mut leaves = values.fields().iter().flat_map(|field| leaves(field));
    let mut column = |column: &Type| match leaves.next().flatten() {
        Some(value) => value.column(column).map(Some),
        None => Ok(None),
    };
    let root = with_leaf_columns(plain.root_schema(), &mut column)?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

/// Writes files with such values.
struct ByteFiles {
    config: FileSinkConfig,
    options: TableParquetOptions,
}

impl ByteFiles {
    fn writer(
        &self,
        path: Path,
        store: &Arc<dyn ObjectStore>,
        bytes: &SchemaRef,
        context: &TaskContext,
    ) -> Result<AsyncArrowWriter<BufWriter>> {
        let mut options = self.options.clone();
        options.arrow_schema(bytes);
        let properties = WriterPropertiesBuilder::try_from(&options)?.build();
        let columns = columns(&get_writer_schema(&self.config), bytes)?;
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(self.options.global.skip_arrow_metadata)
            .with_parquet_schema(columns);
        let execution = &context.session_config().options().execution;
        let size = execution.objectstore_writer_buffer_size;
        let file = BufWriter::with_capacity(Arc::clone(store), path, size);
        Ok(AsyncArrowWriter::try_new_with_options(file, Arc::clone(bytes), options)?)
    }
}

#[async_trait]
impl WriteFiles for ByteFiles {
    const NAME: &'static str = "ByteFiles";

    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn write(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        mut files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let bytes = as_bytes(&get_writer_schema(&self.config));
        let mut written = JoinSet::new();
        while let Some((path, mut batches)) = files.recv().await {
            let memory = MemoryConsumer::new(format!("ByteFiles[{path}]"));
            let memory = memory.register(context.memory_pool());
            let mut writer = self.writer(path, &store, &bytes, context)?;
            let bytes = Arc::clone(&bytes);
            written.spawn(async move {
                let mut rows = 0;
                while let Some(batch) = batches.recv().await {
                    let batch = batch_with_leaves(&batch, &bytes, &bytes_of)?;
                    writer.write(&batch).await?;
                    memory.try_resize(writer.memory_size())?;
                    rows += batch.num_rows() as u64;
                }
                writer.close().await?;
                Ok::<u64, DataFusionError>(rows)
            });
        }
        let mut rows = 0;
        while let Some(file) = written.join_next().await {
            rows += file.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??;
        }
        demux_task
            .join_unwind()
            .await
            .map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??;
        Ok(rows)
    }
}
