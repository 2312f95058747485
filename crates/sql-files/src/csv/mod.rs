//! CSV files: types that keep the written values, and errors with their position.
//!
//! ```text
//! files ─table─▶ sniff (delimiter, quote, preamble) ─▶ infer (header, types) ─▶ usual: DataFusion's reader
//!                                                                              else:  careful, record by record
//! ```
//!
//! DataFusion's format does the reading. Its inference (55.2) looks at 1000 rows and takes `00123` for
//! a number; its errors name neither file nor column, and count lines from the middle of a file that
//! is read in parts.

mod backslashes;
mod careful;
mod infer;
mod options;
mod records;
mod sample;
mod sniff;
mod source;
mod table;
mod times;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Schema, SchemaRef,
};
use datafusion::catalog::Session;
use datafusion::common::config::CsvOptions;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSinkConfig,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use futures::{StreamExt, TryStreamExt};

use super::SAMPLE_ROWS;
use super::amended::{AmendedFormat, Amendment, OwnOptions, refuse_equal_names};
use atoll_sql_parse::parse::QUOTED_COLUMNS;
pub use backslashes::unescaped;
pub(super) use infer::is_whole;
pub(crate) use options::KNOWN;
pub(super) use options::NamedColumns;
use sample::CsvSample;
use source::LocatedCsvSource;
pub(crate) use table::{parts, sniffed_by};
pub use write::CsvForm;

/// Values that are read at once: arrow-csv allocates a whole batch before it reads a row.
const VALUES_AT_ONCE: usize = 1 << 21;

/// The number of rows, at most `rows`, that are read at once from a file with this many columns.
fn rows_at_once(rows: usize, columns: usize) -> usize {
    rows.min(VALUES_AT_ONCE / columns.max(1)).max(1)
}

/// DataFusion's format with our inference and errors.
pub(super) fn amended(format: Arc<dyn FileFormat>, own: &OwnOptions) -> Arc<dyn FileFormat> {
    let Some(csv) = format.downcast_ref::<CsvFormat>() else { return format };
    let mut options = csv.options().clone();
    options.schema_infer_max_rec.get_or_insert(SAMPLE_ROWS);
    let format = Arc::new(CsvFormat::default().with_options(options.clone()));
    let has_line_breaks = AtomicBool::new(false);
    let quoted = own.names(QUOTED_COLUMNS);
    let amendment = CarefulCsv { options, has_line_breaks, quoted: NamedColumns(quoted) };
    Arc::new(AmendedFormat { format, amendment })
}

#[derive(Debug)]
struct CarefulCsv {
    options: CsvOptions,
    /// Whether the rows that types were inferred from have line breaks in values.
    has_line_breaks: AtomicBool,
    /// Columns that are written in quotes.
    quoted: NamedColumns,
}

impl CarefulCsv {
    /// DataFusion merges two columns with one name.
    async fn no_names_twice(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectMeta,
    ) -> Result<()> {
        let bytes = store.get(&object.location).await?.into_stream();
        let bytes = bytes.map_err(DataFusionError::from).boxed();
        let compression = FileCompressionType::from(self.options.compression);
        let bytes = compression.convert_stream(bytes)?;
        // Records that cannot be cut into columns are reported when they are read.
        let format = CsvFormat::default().with_options(self.options.clone());
        let Ok((schema, _)) = format.infer_schema_from_stream(state, 1, bytes).await else {
            return Ok(());
        };
        refuse_equal_names(&schema, object, "rename one of them in its first line")
    }

    fn sample(&self, state: &dyn Session) -> CsvSample {
        let mut options = self.options.clone();
        options.has_header.get_or_insert(state.config_options().catalog.has_header);
        if self.has_line_breaks.load(Ordering::Relaxed) {
            options.newlines_in_values.get_or_insert(true);
        }
        CsvSample { options }
    }
}

#[async_trait]
impl Amendment for CarefulCsv {
    async fn infer_schema(
        &self,
        format: &dyn FileFormat,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        if let Some(first) = objects.first() {
            self.no_names_twice(state, store, first).await?;
        }
        let schema = format.infer_schema(state, store, objects).await;
        let schema = schema.map_err(source::located_in_sample)?;
        let seen = self.sample(state).look(&schema, store, objects).await?;
        self.has_line_breaks.fetch_or(seen.has_line_breaks, Ordering::Relaxed);
        let field = |(number, field): (usize, &FieldRef)| {
            let data_type = match (seen.padded.contains(&number), seen.wide.contains(&number)) {
                (true, _) => DataType::Utf8,
                (false, true) => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
                (false, false) => return Arc::clone(field),
            };
            Arc::new(Field::clone(field).with_data_type(data_type))
        };
        let fields: Vec<FieldRef> = schema.fields().iter().enumerate().map(field).collect();
        Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
    }

    async fn create_physical_plan(
        &self,
        _: &dyn FileFormat,
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
        format: &dyn FileFormat,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.quoted.check("FORCE_QUOTE", config.output_schema())?;
        let plan = format.create_writer_physical_plan(input, state, config, order).await?;
        Ok(write::with_own_text(plan, &self.quoted))
    }
}
