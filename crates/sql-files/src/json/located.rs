//! DataFusion's reader of JSON lines, with errors that name the file and the line.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::physical_plan::ExecutionPlan;

use super::reader::JsonReading;
use crate::amended::{AmendedFormat, Amendment};
use crate::blamed::{Blame, Blamed, BlamedScanExec};
use crate::source::{BatchSource, SourceFile};
use atoll_sql_common::operator::PassThroughExec;

/// The format with located errors.
pub(super) fn located(format: Arc<dyn FileFormat>, reading: JsonReading) -> Arc<dyn FileFormat> {
    Arc::new(AmendedFormat { format, amendment: Located(reading) })
}

#[derive(Clone, Debug)]
struct Located(JsonReading);

#[async_trait]
impl Amendment for Located {
    async fn create_physical_plan(
        &self,
        format: &dyn FileFormat,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = config.file_groups.iter().flat_map(|group| group.iter());
        let files = files
            .map(|file| SourceFile::of_object(&file.object_meta, config.file_compression_type));
        let blamed =
            Blamed(JsonLines { reading: self.0.clone(), files: Arc::new(files.collect()) });
        let plan = format.create_physical_plan(state, config).await?;
        Ok(PassThroughExec::plan(&plan, blamed))
    }
}

/// A scan of lines of JSON.
pub(crate) type JsonScanExec = BlamedScanExec<JsonLines>;

/// Looks for the invalid value after an error.
#[derive(Clone, Debug)]
pub(crate) struct JsonLines {
    reading: JsonReading,
    files: Arc<Vec<SourceFile>>,
}

impl Blame for JsonLines {
    const NAME: &'static str = "JsonScanExec";

    fn blamed(&self, error: DataFusionError) -> DataFusionError {
        self.first_error().unwrap_or(error)
    }
}

impl JsonLines {
    fn first_error(&self) -> Option<DataFusionError> {
        let columns: Vec<usize> = (0..self.reading.schema.fields().len()).collect();
        for file in self.files.iter() {
            match self.reading.open(file, &columns, 1000) {
                Ok(mut batches) => {
                    if let Some(error) = batches.find_map(Result::err) {
                        return Some(error);
                    }
                }
                Err(error) => return Some(error),
            }
        }
        None
    }
}
