//! A plan for a statement together with the data-modifying statements in its WITH, used to describe and explain it.
//! The session runs the parts one after the other.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session as PlanningSession;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use crate::error::stated_err;

/// A statement, which provides the columns, after the data-modifying statements in its WITH.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Hash)]
pub struct StatementParts {
    /// The names of the parts in WITH.
    names: Vec<String>,
    parts: Vec<LogicalPlan>,
    main: LogicalPlan,
}

impl StatementParts {
    /// Combines the named parts with the plan that reads them.
    pub fn new(names: Vec<String>, parts: Vec<LogicalPlan>, main: LogicalPlan) -> Self {
        Self { names, parts, main }
    }
}

impl UserDefinedLogicalNodeCore for StatementParts {
    fn name(&self) -> &str {
        "StatementParts"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.parts.iter().chain([&self.main]).collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        self.main.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatementParts: with={}", self.names.join(", "))
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match inputs.pop() {
            Some(main) => Ok(Self { names: self.names.clone(), parts: inputs, main }),
            None => internal_err!("StatementParts has inputs"),
        }
    }
}

/// Plans [`StatementParts`].
pub struct StatementPartsPlanner;

#[async_trait]
impl ExtensionPlanner for StatementPartsPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn PlanningSession,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<StatementParts>() else { return Ok(None) };
        let exec = StatementPartsExec::new(node.names.clone(), physical_inputs.to_vec())?;
        Ok(Some(Arc::new(exec)))
    }
}

/// Shows the plans of the parts, in the order in which they run.
#[derive(Debug)]
struct StatementPartsExec {
    names: Vec<String>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl StatementPartsExec {
    fn new(names: Vec<String>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        let Some(main) = inputs.last() else {
            return internal_err!("StatementPartsExec has inputs");
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(main.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(Self { names, inputs, properties: Arc::new(properties) })
    }
}

impl DisplayAs for StatementPartsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatementPartsExec: with={}", self.names.join(", "))
    }
}

impl ExecutionPlan for StatementPartsExec {
    fn name(&self) -> &'static str {
        "StatementPartsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        // Otherwise the optimizer would drop sorts of the parts.
        vec![true; self.inputs.len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(self.names.clone(), children)?))
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

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        stated_err!(
            FEATURE_NOT_SUPPORTED,
            "EXPLAIN ANALYZE of data-modifying statements in WITH is not supported; use EXPLAIN"
        )
    }
}
