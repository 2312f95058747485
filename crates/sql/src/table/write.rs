//! The operator that writes to a table: it runs its input to the end, passes its changes to the transaction, and
//! returns the number of written rows, or these rows.

use std::fmt;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
};
use futures::future::BoxFuture;
use futures::{StreamExt, TryFutureExt, stream};

/// A way to write to a table.
pub(super) trait TableWrite: fmt::Debug + fmt::Display + Send + Sync {
    /// Name of the operator.
    fn name(&self) -> &'static str;

    /// The required distribution of its input.
    fn distribution(&self) -> Distribution;

    /// Writes the rows of the input in one step; returns them with `returning`.
    fn run(
        &self,
        input: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        returning: bool,
    ) -> BoxFuture<'static, Result<WrittenBatches>>;
}

/// The result of a write.
#[derive(Debug, Default)]
pub(crate) struct WrittenBatches {
    /// The number of rows.
    pub(crate) count: usize,
    /// The rows, if they were requested.
    pub(crate) rows: Vec<RecordBatch>,
}

/// Writes its input to a table; returns one row, the number of rows written, or those rows.
#[derive(Debug)]
pub(super) struct WriteExec {
    write: Arc<dyn TableWrite>,
    input: Arc<dyn ExecutionPlan>,
    /// The columns of the rows that it returns, if it does.
    returns: Option<SchemaRef>,
    properties: Arc<PlanProperties>,
}

impl WriteExec {
    pub(super) fn new(
        write: Arc<dyn TableWrite>,
        input: Arc<dyn ExecutionPlan>,
        returns: Option<SchemaRef>,
    ) -> Self {
        let schema = returns.clone().unwrap_or_else(count_schema);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { write, input, returns, properties: Arc::new(properties) }
    }
}

/// The result of a statement that wrote this many rows.
pub(crate) fn count_batch(count: usize) -> Result<RecordBatch> {
    // The usual result of statements that run thousands of times a second.
    static ONE: LazyLock<Result<RecordBatch>> = LazyLock::new(|| new_count_batch(1));
    match (count, &*ONE) {
        (1, Ok(one)) => Ok(one.clone()),
        _ => new_count_batch(count),
    }
}

fn new_count_batch(count: usize) -> Result<RecordBatch> {
    let count = Arc::new(UInt64Array::from(vec![count as u64]));
    Ok(RecordBatch::try_new(count_schema(), vec![count])?)
}

fn count_schema() -> SchemaRef {
    static COUNT: LazyLock<SchemaRef> =
        LazyLock::new(|| Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)])));
    Arc::clone(&COUNT)
}

impl DisplayAs for WriteExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.write.name(), self.write)
    }
}

impl ExecutionPlan for WriteExec {
    fn name(&self) -> &str {
        self.write.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![self.write.distribution()])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        // Loading itself deals the chunks of a single partition to all workers.
        vec![false]
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(
            Arc::clone(&self.write),
            children.swap_remove(0),
            self.returns.clone(),
        )))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, recompute)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let returning = self.returns.is_some();
        let written = self.write.run(Arc::clone(&self.input), context, returning);
        let schema = self.schema();
        let batches = written.and_then(move |written| async move {
            let WrittenBatches { count, rows } = written;
            if returning {
                return Ok(rows);
            }
            Ok(vec![count_batch(count)?])
        });
        let batches = stream::once(batches).flat_map(|batches| match batches {
            Ok(batches) => stream::iter(batches.into_iter().map(Ok)).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
