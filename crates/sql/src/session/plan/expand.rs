//! Looks up the data that a statement depends on before it is planned: see `dialect::needs`.

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{ResolvedTableReference, Result, plan_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Query, Statement as Ast};

use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::steps::{is_volatile, plan_physical};
use atoll_sql_common::task::BoundTask;
use atoll_sql_parse::dialect::{Answer, Expansion, Question};

/// Maximum number of rounds: each resolves one more level of subqueries.
const ROUNDS_MAX: usize = 100;

/// Maximum number of values that a PIVOT looks up.
const VALUES_MAX: usize = 10_000;

impl StatementPlanner {
    /// Expands parts of a statement that depend on tables' columns and values.
    pub(in crate::session) async fn expand(
        &self,
        state: &SessionState,
        statement: &mut Parsed,
        within: &[ResolvedTableReference],
    ) -> Result<()> {
        self.expand_macros(state, statement)?;
        let is_volatile = |name: &str| is_volatile(state, name);
        let mut expansion = Expansion::new(&is_volatile);
        for _ in 0..ROUNDS_MAX {
            let questions = expansion.asked(statement)?;
            if questions.is_empty() {
                return Ok(());
            }
            let mut answers = Vec::with_capacity(questions.len());
            for question in questions {
                answers.push(match question {
                    Question::Columns(query) => {
                        let plan = self.plan_asked(state, query, within).await?;
                        Answer::Columns(plan.schema().clone())
                    }
                    Question::AnyColumns(query) => {
                        match self.plan_asked(state, query, within).await {
                            Ok(plan) => Answer::Columns(plan.schema().clone()),
                            Err(_) => Answer::Unknown,
                        }
                    }
                    Question::Values(query) => {
                        let plan = self.plan_asked(state, query, within).await?;
                        Answer::Values(self.texts(state, &plan).await?)
                    }
                });
            }
            expansion.answered(statement, answers)?;
        }
        plan_err!(
            "COLUMNS(…), PIVOT and aliases in more than {ROUNDS_MAX} subqueries inside one another"
        )
    }

    async fn plan_asked(
        &self,
        state: &SessionState,
        query: Query,
        within: &[ResolvedTableReference],
    ) -> Result<LogicalPlan> {
        let statement = Parsed::Statement(Box::new(Ast::Query(Box::new(query))));
        self.plan_query(state, statement, within).await
    }

    /// The texts that a query of one column returns.
    async fn texts(&self, state: &SessionState, plan: &LogicalPlan) -> Result<Vec<String>> {
        let physical = plan_physical(state, plan).await?;
        let rows = collect(physical, state.task_ctx());
        let running = self.workers.drive(rows);
        let batches = BoundTask::new(running).join("looking up the values of PIVOT").await?;
        let mut texts = Vec::new();
        for batch in batches {
            let column = cast(batch.column(0), &DataType::Utf8)?;
            texts.extend(column.as_string::<i32>().iter().flatten().map(str::to_owned));
            if texts.len() > VALUES_MAX {
                return plan_err!(
                    "PIVOT over a column of more than {VALUES_MAX} values; list the wanted ones in IN (…)"
                );
            }
        }
        Ok(texts)
    }
}
