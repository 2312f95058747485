//! The operator above a sink, and the rule that puts it there.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{TryStreamExt, stream};

use super::store::Staging;

/// Puts a [`WholeFilesExec`] above everything that writes files.
#[derive(Debug)]
pub(crate) struct PlaceWholeFiles;

impl PhysicalOptimizerRule for PlaceWholeFiles {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match plan.is::<DataSinkExec>() {
                true => Transformed::yes(Arc::new(WholeFilesExec { input: plan }) as _),
                false => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "PlaceWholeFiles"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Has its input write files without names, and places them when it has ended without an error.
/// Where it fails or is dropped, the files are gone and the old ones are as they were.
#[derive(Debug)]
pub(crate) struct WholeFilesExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for WholeFilesExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WholeFilesExec")
    }
}

impl ExecutionPlan for WholeFilesExec {
    fn name(&self) -> &'static str {
        "WholeFilesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self { input })),
            _ => internal_err!("WholeFilesExec has one child"),
        }
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let staging = Staging::default();
        let written = self.input.execute(partition, staging.context(&context))?;
        let schema = written.schema();
        let guard = Guard(staging);
        let placed = async move {
            // The one row that says how many were written.
            let said: Result<Vec<RecordBatch>> = written.try_collect().await;
            let said = said.map_err(|error| guard.0.failure().unwrap_or(error))?;
            guard.0.place().await?;
            Ok::<_, DataFusionError>(stream::iter(said.into_iter().map(Ok)))
        };
        let rows = TryStreamExt::try_flatten(stream::once(placed));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Drops what was not placed, and has late writers fail.
struct Guard(Staging);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.discard();
    }
}
