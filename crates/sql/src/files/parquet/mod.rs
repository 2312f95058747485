//! Parquet files, read so that nothing they hold is lost, or refused by name.
//!
//! DataFusion's format does the reading. What it is told of a file is [`amended`](metadata::amended):
//! statistics that would mislead it are left out, months of intervals are kept. Two columns of one
//! name are refused. In DataFusion 55.2 and parquet 59.3, an absent count of NULLs counts as zero, an
//! INTERVAL is read as days and milliseconds, and of two columns of one name one is dropped.

mod interval;
mod metadata;
mod reader;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Result, Statistics};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::parquet::ParquetFormatFactory;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory, FileMeta};
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::object_store::{ObjectMeta, ObjectStore};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_expr::{LexOrdering, LexRequirement};
use datafusion::physical_plan::ExecutionPlan;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use interval::IntervalAdapterFactory;
use metadata::amended;
use reader::AmendedReaderFactory;

/// Makes [`AmendedParquet`].
#[derive(Debug, Default)]
pub(crate) struct AmendedParquetFactory(ParquetFormatFactory);

impl GetExt for AmendedParquetFactory {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }
}

impl FileFormatFactory for AmendedParquetFactory {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        Ok(Arc::new(AmendedParquet(self.0.create(state, options)?)))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(AmendedParquet(FileFormatFactory::default(&self.0)))
    }
}

/// DataFusion's format over amended metadata.
#[derive(Debug)]
struct AmendedParquet(Arc<dyn FileFormat>);

/// The metadata of a file, from DataFusion's cache where it has it.
async fn fetch(
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
) -> Result<Arc<ParquetMetaData>> {
    let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
    let fetched = DFParquetMetadata::new(store.as_ref(), object)
        .with_file_metadata_cache(Some(cache))
        .fetch_metadata()
        .await?;
    Ok(amended(fetched, &object.location)?)
}

#[async_trait]
impl FileFormat for AmendedParquet {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.0.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.0.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let at_once = state.config_options().execution.meta_fetch_concurrency.get();
        // For the refusals; what is fetched stays in the cache.
        let fetched: Vec<_> =
            objects.iter().map(|object| fetch(state, store, object).boxed()).collect();
        stream::iter(fetched).buffer_unordered(at_once).try_for_each(|_| async { Ok(()) }).await?;
        Ok(interval::with_months(&self.0.infer_schema(state, store, objects).await?))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        let metadata = fetch(state, store, object).await?;
        let statistics =
            DFParquetMetadata::statistics_from_parquet_metadata(&metadata, &table_schema)?;
        Ok(interval::without_bounds(statistics, &table_schema))
    }

    async fn infer_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        self.0.infer_ordering(state, store, table_schema, object).await
    }

    async fn infer_stats_and_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        let statistics = self.infer_stats(state, store, table_schema.clone(), object).await?;
        let ordering = self.infer_ordering(state, store, table_schema, object).await?;
        Ok(FileMeta::new(statistics).with_ordering(ordering))
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.0.create_physical_plan(state, config).await?;
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
        let adapter = IntervalAdapterFactory::over(config.expr_adapter_factory.clone());
        let config = FileScanConfigBuilder::from(config.clone())
            .with_source(Arc::new(source))
            .with_expr_adapter(Some(Arc::new(adapter)))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_writer_physical_plan(input, state, config, order).await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.0.file_source(table_schema)
    }
}
