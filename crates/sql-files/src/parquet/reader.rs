//! Readers that hand out amended metadata.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::object_store::path::Path;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::metadata::amended;

/// The readers below, with amended metadata.
#[derive(Debug)]
pub(super) struct AmendedReaderFactory(pub(super) Arc<dyn ParquetFileReaderFactory>);

impl ParquetFileReaderFactory for AmendedReaderFactory {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let location = file.object_meta.location.clone();
        let below = self.0.create_reader(partition, file, metadata_size_hint, metrics)?;
        Ok(Box::new(AmendedReader { below, location }))
    }
}

struct AmendedReader {
    below: Box<dyn AsyncFileReader + Send>,
    location: Path,
}

impl AsyncFileReader for AmendedReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.below.get_bytes(range)
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.below.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move { amended(self.below.get_metadata(options).await?, &self.location) }.boxed()
    }
}
