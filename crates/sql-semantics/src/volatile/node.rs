//! The fence in logical plans.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session as PlanningSession;
use datafusion::common::{Column, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNode,
    UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::fence::Fence;

/// Passes on rows with columns that are always computed below it, even if unused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FenceNode {
    input: LogicalPlan,
    /// The columns with results of volatile calls.
    called: Vec<Column>,
    /// Whether no filter may be pushed below it, whatever it references.
    is_closed: bool,
}

/// Fences a plan so that no filter is pushed below.
pub fn barred(input: LogicalPlan) -> LogicalPlan {
    let node = Arc::new(FenceNode { input, called: Vec::new(), is_closed: true });
    LogicalPlan::Extension(Extension { node })
}

/// Whether a plan is such a fence.
pub fn is_barred(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Extension(Extension { node }) = plan else { return false };
    node.as_any().downcast_ref::<FenceNode>().is_some_and(|fence| fence.is_closed)
}

/// Fences a plan, some of whose columns are results of volatile calls. The projection gives DataFusion's rules
/// about IN a named column.
pub(super) fn fenced(input: LogicalPlan, called: Vec<Column>) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let node = Arc::new(FenceNode { input, called, is_closed: false });
    LogicalPlanBuilder::from(LogicalPlan::Extension(Extension { node })).project(columns)?.build()
}

/// Removes the fence, if there is one.
pub(super) fn unfenced(plan: LogicalPlan) -> LogicalPlan {
    let fence = match &plan {
        LogicalPlan::Projection(projection) => match projection.input.as_ref() {
            LogicalPlan::Extension(fence) => fence.node.as_any().downcast_ref::<FenceNode>(),
            _ => None,
        },
        _ => None,
    };
    fence.map(|fence| fence.input.clone()).unwrap_or(plan)
}

impl FenceNode {
    fn is_called(&self, at: usize) -> bool {
        let (table, field) = self.input.schema().qualified_field(at);
        self.called
            .iter()
            .any(|column| column.relation.as_ref() == table && &column.name == field.name())
    }
}

impl PartialOrd for FenceNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let own = (&self.called, self.is_closed);
        match own.partial_cmp(&(&other.called, other.is_closed)) {
            Some(Ordering::Equal) => self.input.partial_cmp(&other.input),
            order => order,
        }
    }
}

impl UserDefinedLogicalNodeCore for FenceNode {
    fn name(&self) -> &str {
        "Fence"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    /// A filter on other columns may be pushed down: the calls are then made for fewer rows, as in PostgreSQL.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        match self.is_closed {
            true => {
                let fields = self.input.schema().fields().iter();
                fields.map(|field| field.name().clone()).collect()
            }
            false => self.called.iter().map(|column| column.name.clone()).collect(),
        }
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fence")
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Ok(Self { input, ..self.clone() }),
            _ => internal_err!("Fence has one input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let columns = 0..self.input.schema().fields().len();
        let read = columns.filter(|at| output_columns.contains(at) || self.is_called(*at));
        Some(vec![read.collect()])
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }
}

/// Plans fences.
pub struct FencePlanner;

#[async_trait]
impl ExtensionPlanner for FencePlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn PlanningSession,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if !node.as_any().is::<FenceNode>() {
            return Ok(None);
        }
        let [input] = physical_inputs else { return internal_err!("Fence has one input") };
        Ok(Some(Fence::closed(input)))
    }
}
