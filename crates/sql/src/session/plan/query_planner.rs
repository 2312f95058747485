//! DataFusion's physical planner with the nodes that Atoll adds to logical plans.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session as PlanningSession;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{LogicalPlan, PlanType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use crate::table::WrittenRowsPlanner;
use atoll_sql_common::operator::StatementPartsPlanner;
use atoll_sql_exec::sample::SampleNodePlanner;
use atoll_sql_semantics::volatile::{FencePlanner, SharedPlanner};

/// DataFusion's planner, which also plans samples, the rows of RETURNING, statements of several parts, and the node
/// that keeps volatile calls in place.
#[derive(Debug)]
pub(in crate::session) struct AtollQueryPlanner;

#[async_trait]
impl QueryPlanner for AtollQueryPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn PlanningSession,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let physical = planner().create_physical_plan(plan, session).await?;
        if let LogicalPlan::Explain(explain) = plan
            && has_failed(&physical)
        {
            planner().create_physical_plan(&explain.plan, session).await?;
        }
        Ok(physical)
    }
}

fn planner() -> DefaultPhysicalPlanner {
    DefaultPhysicalPlanner::with_extension_planners(vec![
        Arc::new(SampleNodePlanner),
        Arc::new(WrittenRowsPlanner),
        Arc::new(StatementPartsPlanner),
        Arc::new(FencePlanner),
        Arc::new(SharedPlanner::default()),
    ])
}

/// Whether the explained statement has no physical plan: DataFusion makes the error a row, which it does not show.
fn has_failed(explained: &Arc<dyn ExecutionPlan>) -> bool {
    let explained = explained.downcast_ref::<ExplainExec>();
    explained.is_some_and(|explained| {
        let mut plans = explained.stringified_plans().iter();
        plans.any(|plan| plan.plan_type == PlanType::PhysicalPlanError)
    })
}
