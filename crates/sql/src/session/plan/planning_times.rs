//! How long the steps from a text to its plan take.

use std::time::{Duration, Instant};

use atoll_functions::without_large_constants;
use datafusion::common::{Result, plan_err};
use datafusion::sql::parser::DFParser;
use futures::future::BoxFuture;

use crate::session::Session;
use atoll_sql_common::error::SqlError;
use atoll_sql_parse::parse::{on_deep_stack, stack_for};

/// Times of the steps from a text to its physical plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanningTimes {
    /// The session's settings and names, as they are when the statement begins.
    pub setup: Duration,
    /// DataFusion's parser over the same text.
    pub parser: Duration,
    /// What the dialect adds: words, names of columns, steps on the tree, what is asked before planning.
    pub rewrites: Duration,
    /// From the tree to a logical plan.
    pub logical: Duration,
    /// The analyzer's and the optimizer's rules.
    pub optimizer: Duration,
    /// From the logical plan to the physical one, with its rules.
    pub physical: Duration,
}

impl Session {
    /// Plans a query step by step, and says how long each step took.
    ///
    /// # Errors
    /// For what cannot be planned, and for a text that DataFusion's own parser does not read.
    pub fn time_planning<'a>(
        &'a self,
        sql: &'a str,
    ) -> BoxFuture<'a, Result<PlanningTimes, SqlError>> {
        Box::pin(async move {
            let timed = on_deep_stack(stack_for(sql), self.timed(sql)).await;
            timed.map_err(|error| SqlError::new(error, sql).with_near_names(|| self.table_names()))
        })
    }

    async fn timed(&self, sql: &str) -> Result<PlanningTimes> {
        let mut lap = Lap::start();
        let planner = self.planner(&self.statement_transaction()?, false).await?;
        let state = &planner.state;
        let setup = lap.next();
        if DFParser::parse_sql(sql)?.len() != 1 {
            return plan_err!("expected a single statement");
        }
        let parser = lap.next();
        let mut statement =
            crate::session::statement::parsed_statement::parse(sql, state)?.statement;
        let parsed = lap.next();
        planner.expand(state, &mut statement, &[]).await?;
        let expanded = lap.next();
        let plan = planner.plan(statement).await?;
        // Planning asks again what is asked before, and finds it answered.
        let planned = lap.next().saturating_sub(expanded);
        let optimized = without_large_constants(|| state.optimize(&plan))?;
        let optimizer = lap.next();
        state.query_planner().create_physical_plan(&optimized, state).await?;
        let rewrites = parsed.saturating_sub(parser) + expanded;
        let (logical, physical) = (planned, lap.next());
        Ok(PlanningTimes { setup, parser, rewrites, logical, optimizer, physical })
    }
}

/// A clock that tells the time since it was last asked.
struct Lap(Instant);

impl Lap {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn next(&mut self) -> Duration {
        let now = Instant::now();
        now - std::mem::replace(&mut self.0, now)
    }
}
