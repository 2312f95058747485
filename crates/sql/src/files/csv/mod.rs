//! CSV files: types that keep what is written, and errors that say where.
//!
//! DataFusion's format does the reading. Its inference (55.2) looks at 1000 rows and takes `00123` for
//! a number; its errors name neither file nor column, and count lines from the middle of a file that
//! is read in parts.

mod sample;
mod source;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::config::CsvOptions;
use datafusion::common::{DataFusionError, GetExt, Result, Statistics, exec_err};
use datafusion::datasource::file_format::csv::{CsvFormat, CsvFormatFactory};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use futures::{StreamExt, TryStreamExt};

use super::SAMPLE_ROWS;
use sample::Sample;
use source::LocatedCsvSource;

/// Makes [`CarefulCsv`].
#[derive(Debug, Default)]
pub(crate) struct CarefulCsvFactory(CsvFormatFactory);

impl GetExt for CarefulCsvFactory {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }
}

impl FileFormatFactory for CarefulCsvFactory {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let made = self.0.create(state, options)?;
        let Some(format) = made.downcast_ref::<CsvFormat>() else { return Ok(made) };
        let mut options = format.options().clone();
        options.schema_infer_max_rec.get_or_insert(SAMPLE_ROWS);
        Ok(Arc::new(CarefulCsv::new(options)))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(CarefulCsv::new(CsvOptions::default().with_schema_infer_max_rec(SAMPLE_ROWS)))
    }
}

/// DataFusion's format with our inference and errors.
#[derive(Debug)]
struct CarefulCsv {
    format: CsvFormat,
    /// Whether the rows that types were inferred from have line breaks in values.
    has_line_breaks: AtomicBool,
}

impl CarefulCsv {
    fn new(options: CsvOptions) -> Self {
        let format = CsvFormat::default().with_options(options);
        Self { format, has_line_breaks: AtomicBool::new(false) }
    }

    /// Of two columns of one name, DataFusion makes one.
    async fn no_names_twice(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectMeta,
    ) -> Result<()> {
        let bytes = store.get(&object.location).await?.into_stream();
        let bytes = bytes.map_err(DataFusionError::from).boxed();
        let compression = FileCompressionType::from(self.format.options().compression);
        let bytes = compression.convert_stream(bytes)?;
        // What cannot be cut into columns is told when it is read.
        let Ok((schema, _)) = self.format.infer_schema_from_stream(state, 1, bytes).await else {
            return Ok(());
        };
        let mut seen = HashSet::new();
        match schema.fields().iter().find(|field| !seen.insert(field.name())) {
            Some(twice) => exec_err!(
                "/{} has two columns named \"{}\", which SQL cannot tell apart; rename one of them in \
                 its first line",
                object.location,
                twice.name()
            ),
            None => Ok(()),
        }
    }

    fn sample(&self, state: &dyn Session) -> Sample {
        let mut options = self.format.options().clone();
        options.has_header.get_or_insert(state.config_options().catalog.has_header);
        if self.has_line_breaks.load(Ordering::Relaxed) {
            options.newlines_in_values.get_or_insert(true);
        }
        Sample { options }
    }
}

#[async_trait]
impl FileFormat for CarefulCsv {
    fn get_ext(&self) -> String {
        self.format.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.format.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.format.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        if let Some(first) = objects.first() {
            self.no_names_twice(state, store, first).await?;
        }
        let schema = self.format.infer_schema(state, store, objects).await;
        let schema = schema.map_err(source::located_in_sample)?;
        let seen = self.sample(state).look(&schema, store, objects).await?;
        self.has_line_breaks.fetch_or(seen.has_line_breaks, Ordering::Relaxed);
        let field = |(number, field): (usize, &FieldRef)| match seen.padded.contains(&number) {
            true => Arc::new(Field::clone(field).with_data_type(DataType::Utf8)),
            false => Arc::clone(field),
        };
        let fields: Vec<FieldRef> = schema.fields().iter().enumerate().map(field).collect();
        Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.format.infer_stats(state, store, table_schema, object).await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sample = self.sample(state);
        let format = CsvFormat::default().with_options(sample.options.clone());
        let plan = format.create_physical_plan(state, config).await?;
        let scan = plan
            .downcast_ref::<DataSourceExec>()
            .and_then(|exec| exec.data_source().downcast_ref::<FileScanConfig>());
        let Some(config) = scan else { return Ok(plan) };
        let source = LocatedCsvSource { below: Arc::clone(config.file_source()), sample };
        let config =
            FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source)).build();
        Ok(DataSourceExec::from_data_source(config))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.format.create_writer_physical_plan(input, state, config, order).await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.format.file_source(table_schema)
    }
}
