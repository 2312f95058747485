//! DataFusion's file formats with amendments.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Result, Statistics, exec_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::object_store::{ObjectMeta, ObjectStore};
use datafusion::physical_expr::{LexOrdering, LexRequirement};
use datafusion::physical_plan::ExecutionPlan;

use atoll_sql_parse::parse::{BETWEEN, OWN};

/// The amendments to DataFusion's format.
#[async_trait]
pub(super) trait Amendment: fmt::Debug + Send + Sync + 'static {
    /// The columns of the files.
    async fn infer_schema(
        &self,
        format: &dyn FileFormat,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        format.infer_schema(state, store, objects).await
    }

    /// Statistics of a file's rows.
    async fn infer_stats(
        &self,
        format: &dyn FileFormat,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        format.infer_stats(state, store, table_schema, object).await
    }

    /// The scan of the files.
    async fn create_physical_plan(
        &self,
        format: &dyn FileFormat,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        format.create_physical_plan(state, config).await
    }

    /// The sink that writes rows to files.
    async fn create_writer_physical_plan(
        &self,
        format: &dyn FileFormat,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        format.create_writer_physical_plan(input, state, config, order).await
    }
}

/// DataFusion's format with its amendment.
#[derive(Debug)]
pub(super) struct AmendedFormat<A> {
    pub(super) format: Arc<dyn FileFormat>,
    pub(super) amendment: A,
}

/// Format options that DataFusion lacks; among DataFusion's their names begin with `atoll.`.
#[derive(Debug, Default)]
pub(super) struct OwnOptions(HashMap<String, String>);

impl OwnOptions {
    /// Takes our options out of all of them.
    fn take(options: &mut HashMap<String, String>) -> Self {
        let own = options.extract_if(|name, _| name.starts_with(OWN));
        Self(own.map(|(name, value)| (name[OWN.len()..].to_owned(), value)).collect())
    }

    pub(super) fn text(&self, option: &str) -> Option<&str> {
        self.0.get(option).map(String::as_str)
    }

    pub(super) fn names(&self, option: &str) -> Vec<String> {
        self.text(option)
            .map_or_else(Vec::new, |names| names.split(BETWEEN).map(str::to_owned).collect())
    }
}

/// Makes a format from DataFusion's.
pub(super) type Amend = fn(Arc<dyn FileFormat>, &OwnOptions) -> Arc<dyn FileFormat>;

/// Makes amended formats for files with an ending.
#[derive(Debug)]
pub(super) struct AmendedFactory<F> {
    pub(super) ending: &'static str,
    pub(super) factory: F,
    pub(super) amend: Amend,
}

impl<F: FileFormatFactory> GetExt for AmendedFactory<F> {
    fn get_ext(&self) -> String {
        self.ending.to_owned()
    }
}

impl<F: FileFormatFactory> FileFormatFactory for AmendedFactory<F> {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let mut options = options.clone();
        let own = OwnOptions::take(&mut options);
        self.factory.create(state, &options).map(|format| (self.amend)(format, &own))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        (self.amend)(FileFormatFactory::default(&self.factory), &OwnOptions::default())
    }
}

#[async_trait]
impl<A: Amendment> FileFormat for AmendedFormat<A> {
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
        self.amendment.infer_schema(&*self.format, state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.amendment.infer_stats(&*self.format, state, store, table_schema, object).await
    }

    async fn infer_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        self.format.infer_ordering(state, store, table_schema, object).await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.amendment.create_physical_plan(&*self.format, state, config).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let format = &*self.format;
        self.amendment.create_writer_physical_plan(format, input, state, config, order).await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.format.file_source(table_schema)
    }
}

/// The columns without Atoll's notes on their types, which mean nothing to other readers.
pub(super) fn without_marks(schema: &Schema) -> SchemaRef {
    let field = |field: &FieldRef| {
        let mut metadata = field.metadata().clone();
        metadata.retain(|_, value| !value.starts_with(OWN));
        Field::clone(field).with_metadata(metadata)
    };
    let fields: Vec<Field> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The rows that are written, without these notes.
pub(super) fn config_without_marks(mut config: FileSinkConfig) -> FileSinkConfig {
    config.output_schema = without_marks(&config.output_schema);
    config
}

/// Fails where two columns have one name, of which DataFusion makes one column; `advice` says how to
/// rename one.
pub(super) fn refuse_equal_names(schema: &Schema, object: &ObjectMeta, advice: &str) -> Result<()> {
    let mut seen = HashSet::new();
    match schema.fields().iter().find(|field| !seen.insert(field.name())) {
        Some(twice) => exec_err!(
            "/{} has two columns named \"{}\", which SQL cannot distinguish; {advice}",
            object.location,
            twice.name()
        ),
        None => Ok(()),
    }
}
