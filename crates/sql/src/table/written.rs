//! The rows that a statement writes, in logical plans: the input of RETURNING.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::catalog::{Session as PlanningSession, TableProvider};
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::PlacedTable;
use super::change::ChangedTable;

/// Writes its input to a table, and returns the rows: the old ones for DELETE, the new ones otherwise.
#[derive(Clone, Debug)]
pub(crate) struct WrittenRows {
    table: String,
    target: Arc<dyn TableProvider>,
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl WrittenRows {
    /// The rows of this write, under a schema that has the table's columns.
    pub(crate) fn new(write: &DmlStatement, schema: DFSchemaRef) -> Result<Self> {
        let target = source_as_provider(&write.target)?;
        let (table, input) = (write.table_name.to_string(), LogicalPlan::clone(&write.input));
        Ok(Self { table, target, input, schema })
    }

    /// The table to write to.
    pub(crate) fn target(&self) -> &Arc<dyn TableProvider> {
        &self.target
    }

    /// The input that finds or lists the rows.
    pub(crate) fn input(&self) -> &LogicalPlan {
        &self.input
    }

    fn key(&self) -> (&str, &LogicalPlan) {
        (&self.table, &self.input)
    }
}

impl PartialEq for WrittenRows {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for WrittenRows {}

impl Hash for WrittenRows {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialOrd for WrittenRows {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.key().partial_cmp(&other.key())
    }
}

impl UserDefinedLogicalNodeCore for WrittenRows {
    fn name(&self) -> &str {
        "WrittenRows"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WrittenRows: table={}", self.table)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Ok(Self { input, ..self.clone() }),
            _ => internal_err!("WrittenRows has one input"),
        }
    }
}

/// Plans [`WrittenRows`].
pub(crate) struct WrittenRowsPlanner;

#[async_trait]
impl ExtensionPlanner for WrittenRowsPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn PlanningSession,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(rows) = node.as_any().downcast_ref::<WrittenRows>() else { return Ok(None) };
        let [input] = physical_inputs else { return internal_err!("WrittenRows has one input") };
        let input = Arc::clone(input);
        if let Some(table) = rows.target.downcast_ref::<PlacedTable>() {
            return table.insert_exec(input, true).map(Some);
        }
        match rows.target.downcast_ref::<ChangedTable>() {
            Some(table) => {
                Ok(Some(table.change_exec(input, Some(Arc::clone(rows.schema.inner())))))
            }
            None => internal_err!("'{}' cannot be written", rows.table),
        }
    }
}
