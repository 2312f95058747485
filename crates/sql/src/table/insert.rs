//! `INSERT INTO`: loads its input and publishes the chunks when all of them are there.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::PlacedTable;
use super::load::load;

/// Appends its input to a table; returns one row, the number of rows inserted.
#[derive(Debug)]
pub(crate) struct InsertExec {
    table: PlacedTable,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl InsertExec {
    /// Appends the rows of `input` to `table`.
    pub(crate) fn new(table: PlacedTable, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { table, input, properties: Arc::new(count_properties()) }
    }
}

/// Of an operator that changes a table and returns how many rows it changed.
pub(super) fn count_properties() -> PlanProperties {
    PlanProperties::new(
        EquivalenceProperties::new(count_schema()),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Final,
        Boundedness::Bounded,
    )
}

pub(super) fn count_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]))
}

/// The row that such an operator returns.
pub(super) fn count_of(rows: usize) -> Result<RecordBatch> {
    let count = Arc::new(UInt64Array::from(vec![rows as u64]));
    Ok(RecordBatch::try_new(count_schema(), vec![count])?)
}

impl DisplayAs for InsertExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InsertExec: table={}, placement={}", self.table.name, self.table.strategy())
    }
}

impl ExecutionPlan for InsertExec {
    fn name(&self) -> &'static str {
        "InsertExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        // Loading deals the chunks of a single partition to all workers itself.
        vec![false]
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(self.table.clone(), children.swap_remove(0))))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
        )
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (table, input) = (self.table.clone(), Arc::clone(&self.input));
        let inserted = async move {
            let chunks = load(input, context, &table).await?;
            let rows: usize = chunks.iter().map(|chunk| chunk.rows).sum();
            table.append(chunks)?;
            count_of(rows)
        };
        let stream = futures::stream::once(inserted);
        Ok(Box::pin(RecordBatchStreamAdapter::new(count_schema(), stream)))
    }
}
