//! `TABLESAMPLE`: rows of a table by chance.
//!
//! ```text
//! FROM t TABLESAMPLE BERNOULLI (5)         Sample: each row by itself
//! FROM t TABLESAMPLE SYSTEM (5)            Sample: whole batches
//! FROM t TABLESAMPLE (1000 ROWS)           t with a random column, sorted by it, LIMIT 1000
//! ```
//!
//! DataFusion reads the clause and forgets it. A filter by `random()` would not do: rules move filters.

mod exec;
mod node;
mod relation;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session as PlanningSession;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

pub(crate) use relation::SampledRelations;

use crate::operator::StatementPartsPlanner;
use crate::table::WrittenRowsPlanner;
use crate::volatile::{FencePlanner, SharedPlanner};

/// DataFusion's planner, which also plans samples, the rows of RETURNING, statements of several parts, and what
/// keeps volatile calls in their place.
#[derive(Debug)]
pub(crate) struct SamplePlanner;

#[async_trait]
impl QueryPlanner for SamplePlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn PlanningSession,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![
            Arc::new(node::SampleNodePlanner),
            Arc::new(WrittenRowsPlanner),
            Arc::new(StatementPartsPlanner),
            Arc::new(FencePlanner),
            Arc::new(SharedPlanner::default()),
        ]);
        planner.create_physical_plan(plan, session).await
    }
}
