//! Arrow files. DataFusion (55.2) makes one column of two that have one name.

use std::collections::{HashMap, HashSet};
use std::io::{Seek, SeekFrom};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Result, Statistics, exec_err};
use datafusion::datasource::file_format::arrow::ArrowFormatFactory;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::object_store::{GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;

/// Makes [`CarefulArrow`].
#[derive(Debug, Default)]
pub(super) struct CarefulArrowFactory(ArrowFormatFactory);

impl GetExt for CarefulArrowFactory {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }
}

impl FileFormatFactory for CarefulArrowFactory {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        Ok(Arc::new(CarefulArrow(self.0.create(state, options)?)))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(CarefulArrow(FileFormatFactory::default(&self.0)))
    }
}

/// DataFusion's format with a look at the names of columns.
#[derive(Debug)]
struct CarefulArrow(Arc<dyn FileFormat>);

/// The schema that a local file begins or ends with; none of what is no Arrow file, which is for the
/// reading to tell.
async fn schema_of(store: &dyn ObjectStore, object: &ObjectMeta) -> Result<Option<SchemaRef>> {
    let GetResultPayload::File(mut file, _) = store.get(&object.location).await?.payload else {
        return Ok(None);
    };
    if let Ok(reader) = FileReader::try_new(&file, None) {
        return Ok(Some(reader.schema()));
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(StreamReader::try_new(&file, None).ok().map(|reader| reader.schema()))
}

#[async_trait]
impl FileFormat for CarefulArrow {
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
        for object in objects {
            let Some(schema) = schema_of(store.as_ref(), object).await? else { continue };
            let mut seen = HashSet::new();
            if let Some(twice) = schema.fields().iter().find(|field| !seen.insert(field.name())) {
                return exec_err!(
                    "/{} has two columns named \"{}\", which SQL cannot tell apart; write the file \
                     with another name for one of them",
                    object.location,
                    twice.name()
                );
            }
        }
        self.0.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.0.infer_stats(state, store, table_schema, object).await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_physical_plan(state, config).await
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
