//! The operator above a sink, and the rule that puts it there.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryStreamExt, stream};

use super::store::Staging;
use crate::copy::ReplacedDirectory;
use atoll_sql_common::operator::{OperatorRule, PassThrough, PassThroughExec};

/// Puts a [`WholeFilesExec`] above everything that writes files.
#[derive(Debug)]
pub(crate) struct PlaceWholeFiles;

impl OperatorRule for PlaceWholeFiles {
    const NAME: &'static str = "PlaceWholeFiles";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        Ok(plan.is::<DataSinkExec>().then(|| WholeFilesExec::plan(plan, WholeFiles)))
    }
}

/// Makes its input write files without names, and places them when it has ended without an error.
/// If it fails or is dropped, the files are gone and the old ones are unchanged.
pub(crate) type WholeFilesExec = PassThroughExec<WholeFiles>;

/// Gives files their names when all of them are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeFiles;

impl PassThrough for WholeFiles {
    const NAME: &'static str = "WholeFilesExec";

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let staging = Staging::default();
        let written = input.execute(partition, staging.context(&context))?;
        let schema = written.schema();
        let guard = Guard(staging);
        let replaced = context.session_config().get_extension::<ReplacedDirectory>();
        let placed = async move {
            // The one row with the number of rows written.
            let said: Result<Vec<RecordBatch>> = written.try_collect().await;
            let said = said.map_err(|error| guard.0.failure().unwrap_or(error))?;
            let before = replaced.map(|replaced| replaced.files()).unwrap_or_default();
            guard.0.place().await?;
            for file in before {
                std::fs::remove_file(&file)?;
            }
            Ok::<_, DataFusionError>(stream::iter(said.into_iter().map(Ok)))
        };
        let rows = TryStreamExt::try_flatten(stream::once(placed));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Drops files that were not placed, and makes late writers fail.
struct Guard(Staging);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.discard();
    }
}
