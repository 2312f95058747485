//! Parquet files, read so that nothing they hold is lost, or refused by name.
//!
//! DataFusion's format does the reading. What it is told of a file is [`amended`](metadata::amended):
//! statistics that would mislead it are left out, months of intervals are kept. Two columns of one
//! name are refused. In DataFusion 55.2 and parquet 59.3, an absent count of NULLs counts as zero, an
//! INTERVAL is read as days and milliseconds, and of two columns of one name one is dropped.

mod interval;
mod metadata;
mod reader;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::{Result, Statistics};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::object_store::{ObjectMeta, ObjectStore};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::ExecutionPlan;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use super::amended::{AmendedFormat, Amendment};
use interval::IntervalAdapterFactory;
use metadata::amended;
use reader::AmendedReaderFactory;

/// DataFusion's format over amended metadata.
pub(super) fn amended_format(format: Arc<dyn FileFormat>) -> Arc<dyn FileFormat> {
    Arc::new(AmendedFormat { format, amendment: AmendedMetadata })
}

#[derive(Debug)]
struct AmendedMetadata;

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
impl Amendment for AmendedMetadata {
    async fn infer_schema(
        &self,
        format: &dyn FileFormat,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let at_once = state.config_options().execution.meta_fetch_concurrency.get();
        // For the refusals; what is fetched stays in the cache.
        let fetched: Vec<_> =
            objects.iter().map(|object| fetch(state, store, object).boxed()).collect();
        stream::iter(fetched).buffer_unordered(at_once).try_for_each(|_| async { Ok(()) }).await?;
        Ok(interval::with_months(&format.infer_schema(state, store, objects).await?))
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
        let statistics =
            DFParquetMetadata::statistics_from_parquet_metadata(&metadata, &table_schema)?;
        Ok(interval::without_bounds(statistics, &table_schema))
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
        let adapter = IntervalAdapterFactory::over(config.expr_adapter_factory.clone());
        let config = FileScanConfigBuilder::from(config.clone())
            .with_source(Arc::new(source))
            .with_expr_adapter(Some(Arc::new(adapter)))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}
