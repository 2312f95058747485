//! Arrow files. DataFusion (55.2) merges two columns with one name, and does not say which file is damaged.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig};
use datafusion::object_store::{GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;

use super::amended::{
    AmendedFormat, Amendment, OwnOptions, config_without_marks, refuse_equal_names,
};
use super::blamed::{Blame, Blamed, BlamedScanExec};
use atoll_sql_common::operator::PassThroughExec;

/// DataFusion's format with a check of the column names.
pub(super) fn amended(format: Arc<dyn FileFormat>, _: &OwnOptions) -> Arc<dyn FileFormat> {
    Arc::new(AmendedFormat { format, amendment: CheckedNames })
}

#[derive(Debug)]
struct CheckedNames;

/// The schema that a local file begins or ends with; `None` if it is not an Arrow
/// file, which the reader reports.
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
impl Amendment for CheckedNames {
    async fn infer_schema(
        &self,
        format: &dyn FileFormat,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let advice = "write the file with another name for one of them";
        for object in objects {
            if let Some(schema) = schema_of(store.as_ref(), object).await? {
                refuse_equal_names(&schema, object, advice)?;
            }
        }
        format.infer_schema(state, store, objects).await
    }

    async fn create_physical_plan(
        &self,
        format: &dyn FileFormat,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = config.file_groups.iter().flat_map(|group| group.iter());
        let files = files.map(|file| Path::new("/").join(file.object_meta.location.as_ref()));
        let blamed = Blamed(ArrowFiles { files: Arc::new(files.collect()) });
        let plan = format.create_physical_plan(state, config).await?;
        Ok(PassThroughExec::plan(&plan, blamed))
    }

    async fn create_writer_physical_plan(
        &self,
        format: &dyn FileFormat,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let config = config_without_marks(config);
        format.create_writer_physical_plan(input, state, config, order).await
    }
}

/// A scan of Arrow files.
pub(crate) type ArrowScanExec = BlamedScanExec<ArrowFiles>;

/// Looks for the damaged file after an error.
#[derive(Clone, Debug)]
pub(crate) struct ArrowFiles {
    files: Arc<Vec<PathBuf>>,
}

impl Blame for ArrowFiles {
    const NAME: &'static str = "ArrowScanExec";

    fn blamed(&self, error: DataFusionError) -> DataFusionError {
        let is_of_file = matches!(
            error.find_root(),
            DataFusionError::ArrowError(..) | DataFusionError::IoError(_)
        );
        match self.files.iter().find(|file| is_of_file && is_damaged(file)) {
            Some(file) => exec_datafusion_err!(
                "'{}' is truncated or damaged: {}",
                file.display(),
                error.find_root().strip_backtrace()
            ),
            None => error,
        }
    }
}

/// Whether a file cannot be read to its end.
fn is_damaged(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return true };
    if let Ok(mut batches) = FileReader::try_new(&file, None) {
        return batches.any(|batch| batch.is_err());
    }
    let stream = (&file).seek(SeekFrom::Start(0)).map(|_| StreamReader::try_new(&file, None));
    match stream {
        Ok(Ok(mut batches)) => batches.any(|batch| batch.is_err()),
        _ => true,
    }
}
