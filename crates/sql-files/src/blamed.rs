//! Scans that add the file to their errors.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt;

use atoll_sql_common::operator::{PassThrough, PassThroughExec};

/// Finds out which file caused an error.
pub(crate) trait Blame: Clone + fmt::Debug + Send + Sync + 'static {
    /// The name of the scan in plans.
    const NAME: &'static str;

    /// The error with its file.
    fn blamed(&self, error: DataFusionError) -> DataFusionError;
}

/// A scan whose errors name their file.
pub(crate) type BlamedScanExec<B> = PassThroughExec<Blamed<B>>;

/// Adds the file to the errors of a scan.
#[derive(Clone, Debug)]
pub(crate) struct Blamed<B>(pub(crate) B);

impl<B: Blame> PassThrough for Blamed<B> {
    const NAME: &'static str = B::NAME;

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let rows = input.execute(partition, context)?;
        let (schema, blame) = (rows.schema(), self.0.clone());
        let rows = rows.map_err(move |error| blame.blamed(error));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
