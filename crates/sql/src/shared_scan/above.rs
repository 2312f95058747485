//! The part of a statement above its scan: aggregates, sorting, a limit. It is planned once, over rows that each
//! execution provides.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session as SessionTrait, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::datasource::provider_as_source;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableScanBuilder, TableType};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, reset_plan_states};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, collect,
};
use futures::stream;

use atoll_sql_common::operator::leaf;

/// The part of a plan above its only scan.
#[derive(Clone, Debug)]
pub(super) struct PlanAbove {
    plan: Arc<dyn ExecutionPlan>,
    rows: SchemaRef,
}

/// The rows of an execution.
#[derive(Debug)]
struct BroughtRows(Vec<RecordBatch>);

impl PlanAbove {
    /// Plans the part above the scan; `None` if it needs more than the rows.
    pub(super) async fn new(state: &SessionState, plan: &LogicalPlan) -> Result<Option<Self>> {
        let Some(scan) = only_scan(plan)? else { return Ok(None) };
        let rows = Arc::new(scan.projected_schema.as_arrow().clone());
        let source = provider_as_source(Arc::new(RowsTable(Arc::clone(&rows))));
        let leaf = TableScanBuilder::new(scan.table_name.clone(), source).build()?;
        let leaf = LogicalPlan::TableScan(leaf);
        let above = plan.clone().transform_up(|node| match node {
            LogicalPlan::TableScan(_) => Ok(Transformed::yes(leaf.clone())),
            node => Ok(Transformed::no(node)),
        })?;
        // A filter that an operator fills at run time cannot be filled twice.
        let mut state = state.clone();
        state.config_mut().options_mut().optimizer.enable_dynamic_filter_pushdown = false;
        let planner = state.query_planner();
        let plan = planner.create_physical_plan(&above.data, &state).await?;
        Ok(Some(Self { plan, rows }))
    }

    /// The columns of the input rows.
    pub(super) fn rows(&self) -> &SchemaRef {
        &self.rows
    }

    /// The columns of the result.
    pub(super) fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// Runs it over these rows, with a session's settings.
    pub(super) async fn run(
        &self,
        rows: Vec<RecordBatch>,
        state: &SessionState,
    ) -> Result<Vec<RecordBatch>> {
        let config = state.config().clone().with_extension(Arc::new(BroughtRows(rows)));
        let context = TaskContext::from(state).with_session_config(config);
        collect(reset_plan_states(Arc::clone(&self.plan))?, Arc::new(context)).await
    }
}

/// The only scan of a plan; `None` if there are several, or parameters above it.
pub(super) fn only_scan(plan: &LogicalPlan) -> Result<Option<&TableScan>> {
    let (mut scans, mut has_parameters) = (0, false);
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(_) = node {
            scans += 1;
            return Ok(TreeNodeRecursion::Continue);
        }
        node.apply_expressions(|expr| {
            has_parameters |= expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_))))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let mut node = plan;
    loop {
        match node {
            LogicalPlan::TableScan(scan) if scans == 1 && !has_parameters => return Ok(Some(scan)),
            LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::SubqueryAlias(_) => match node.inputs()[..] {
                [input] => node = input,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }
    }
}

/// A placeholder for the table of the rows.
#[derive(Debug)]
struct RowsTable(SchemaRef);

#[async_trait]
impl TableProvider for RowsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn SessionTrait,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(projection) => Arc::new(self.0.project(projection)?),
            None => Arc::clone(&self.0),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (projection, properties) = (projection.cloned(), Arc::new(properties));
        Ok(Arc::new(BroughtRowsExec { projection, properties }))
    }
}

/// Reads the rows of the execution.
#[derive(Debug)]
struct BroughtRowsExec {
    projection: Option<Vec<usize>>,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for BroughtRowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BroughtRowsExec")
    }
}

impl ExecutionPlan for BroughtRowsExec {
    leaf!("BroughtRowsExec", properties, no expressions);

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let brought = context.session_config().get_extension::<BroughtRows>();
        let brought = brought.ok_or_else(|| internal_datafusion_err!("no rows were brought"))?;
        let projected = |batch: &RecordBatch| match &self.projection {
            Some(projection) => Ok(batch.project(projection)?),
            None => Ok(batch.clone()),
        };
        let rows: Vec<Result<RecordBatch>> = brought.0.iter().map(projected).collect();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream::iter(rows))))
    }
}
