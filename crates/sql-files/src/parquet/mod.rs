//! Parquet files, read so that nothing they hold is lost, or refused by name.
//!
//! DataFusion's format does the reading. The metadata that it gets are [`amended`](metadata::amended):
//! statistics that would mislead it are left out. An INTERVAL or UUID in the file is one in the table
//! ([`bytes`]), and both are [written](write). Two columns of one name are refused. In DataFusion 55.2 and parquet
//! 59.3, an absent count of NULLs counts as zero (apache/datafusion#25242), an INTERVAL is read as days and
//! milliseconds and not written (apache/arrow-rs#5849), a UUID is bytes, and of two columns of one name one is dropped.

mod adapter;
mod bytes;
mod damaged;
mod metadata;
mod reader;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, Result, Statistics, exec_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSinkConfig, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use super::amended::{AmendedFormat, Amendment, OwnOptions, config_without_marks};
use adapter::ByteAdapterFactory;
use bytes::ByteColumns;
pub use damaged::{parquet_files, with_damaged_file};
use metadata::amended;
use reader::AmendedReaderFactory;
pub use write::has_interval;

/// DataFusion's format over amended metadata.
pub(super) fn amended_format(format: Arc<dyn FileFormat>, _: &OwnOptions) -> Arc<dyn FileFormat> {
    Arc::new(AmendedFormat { format, amendment: AmendedMetadata })
}

#[derive(Debug)]
struct AmendedMetadata;

/// The original metadata of a file, from DataFusion's cache if present.
async fn fetch(
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
) -> Result<Arc<ParquetMetaData>> {
    check_end(store, object).await?;
    let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
    DFParquetMetadata::new(store.as_ref(), object)
        .with_file_metadata_cache(Some(cache))
        .fetch_metadata()
        .await
        .map_err(|error| damaged::of_metadata(error, object.location.as_ref()))
}

/// Bytes at the end of a file: the length of the metadata, and the magic number.
const END: u64 = 8;

/// Fails if the metadata would begin before the file, where the reader (parquet 59.3) panics.
async fn check_end(store: &Arc<dyn ObjectStore>, object: &ObjectMeta) -> Result<()> {
    let Some(start) = object.size.checked_sub(END) else { return Ok(()) };
    let end = store.get_range(&object.location, start..object.size).await?;
    match end.first_chunk() {
        Some(length) if u64::from(u32::from_le_bytes(*length)) > start => exec_err!(
            "'/{}' is truncated or damaged: its footer has an invalid metadata length",
            object.location
        ),
        _ => Ok(()),
    }
}

#[async_trait]
impl Amendment for AmendedMetadata {
    async fn infer_schema(
        &self,
        format: &dyn FileFormat,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let at_once = state.config_options().execution.meta_fetch_concurrency.get();
        // Fetched metadata stay in the cache.
        let fetched = objects.iter().map(|object| {
            let columns = async move {
                let metadata = fetch(state, store, object).await?;
                let columns = ByteColumns::from_schema(metadata.file_metadata().schema_descr());
                amended(metadata, &object.location)?;
                Ok::<_, DataFusionError>(columns)
            };
            columns.boxed()
        });
        let fetched: Vec<_> = fetched.collect();
        let mut columns = ByteColumns::default();
        let mut fetched = stream::iter(fetched).buffer_unordered(at_once);
        while let Some(of_file) = fetched.try_next().await? {
            columns.extend(of_file);
        }
        Ok(columns.typed(&format.infer_schema(state, store, objects).await?))
    }

    async fn infer_stats(
        &self,
        _: &dyn FileFormat,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        let metadata = fetch(state, store, object).await?;
        let columns = ByteColumns::from_schema(metadata.file_metadata().schema_descr());
        let metadata = amended(metadata, &object.location)?;
        let statistics =
            DFParquetMetadata::statistics_from_parquet_metadata(&metadata, &table_schema)?;
        Ok(columns.without_bounds(statistics, &table_schema))
    }

    async fn create_physical_plan(
        &self,
        format: &dyn FileFormat,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = format.create_physical_plan(state, config).await?;
        let Some((config, source)) = plan
            .downcast_ref::<DataSourceExec>()
            .and_then(|exec| exec.downcast_to_file_source::<ParquetSource>())
        else {
            return Ok(plan);
        };
        let mut source = source.clone();
        if let Some(below) = source.parquet_file_reader_factory().cloned() {
            let factory = Arc::new(AmendedReaderFactory(below));
            source = source.with_parquet_file_reader_factory(factory);
        }
        let adapter = ByteAdapterFactory::over(config.expr_adapter_factory.clone());
        let config = FileScanConfigBuilder::from(config.clone())
            .with_source(Arc::new(source))
            .with_expr_adapter(Some(Arc::new(adapter)))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    async fn create_writer_physical_plan(
        &self,
        format: &dyn FileFormat,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if write::has_bytes(config.output_schema()) {
            let plan = format.create_writer_physical_plan(input, state, config, order).await?;
            return Ok(write::with_bytes(plan));
        }
        let config = config_without_marks(config);
        format.create_writer_physical_plan(input, state, config, order).await
    }
}
