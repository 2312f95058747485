//! Execution of write statements: they run to their end before their result is returned.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::collect;

use crate::session::Session;
use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::steps::{cancel_token, plan_physical};
use crate::session::statement::query_result::QueryResult;
use crate::session_functions::NOTIFY;
use atoll_sql_exec::scan::ScanProgress;

impl Session {
    /// Runs a write statement to its end and commits it.
    pub(in crate::session) async fn write(
        &self,
        planner: StatementPlanner,
        plan: LogicalPlan,
        sql: &str,
    ) -> Result<QueryResult> {
        let (schema, batches) = self.run_plan(&planner, &plan).await?;
        planner.transaction.finish(self.database()).await?;
        Ok(QueryResult::from_batches(schema, batches, sql))
    }

    /// Runs a plan to its end; its columns, and all of its rows.
    pub(in crate::session) async fn run_plan(
        &self,
        planner: &StatementPlanner,
        plan: &LogicalPlan,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let physical = plan_physical(&planner.state, plan).await?;
        self.watch.planned(&physical);
        let progress = ScanProgress::for_plan(&physical);
        self.watch.follow(&progress);
        let _admitted = self.admit(&planner.transaction, &progress).await?;
        let (schema, context) = (physical.schema(), planner.state.task_ctx());
        let _waiting = cancel_token(&planner.state).cancel_on_drop();
        let batches = self.on_worker(collect(physical, context)).await?;
        Ok((schema, batches))
    }
}

/// Whether a query has effects that its transaction keeps: it sets sequences or sends notifications.
pub(in crate::session) fn has_effects(plan: &LogicalPlan) -> Result<bool> {
    let mut is_found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            is_found |= expr.exists(|expr| {
                let call = if let Expr::ScalarFunction(call) = expr { Some(call) } else { None };
                Ok(call.is_some_and(|call| matches!(call.func.name(), "setval" | NOTIFY)))
            })?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_found)
}
