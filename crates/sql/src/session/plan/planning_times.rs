//! Durations of the steps from a text to its plan.

use std::time::{Duration, Instant};

use atoll_functions::without_large_constants;
use datafusion::common::{Result, plan_err};
use datafusion::sql::parser::DFParser;
use futures::future::BoxFuture;

use crate::session::Session;
use atoll_sql_common::error::SqlError;
use atoll_sql_parse::parse::{on_deep_stack, stack_for};

/// Durations of the steps from a text to its physical plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanningTimes {
    /// Collecting the session's settings and names.
    pub setup: Duration,
    /// DataFusion's parser over the same text.
    pub parser: Duration,
    /// The dialect: words, column names, tree rewrites, lookups before planning.
    pub rewrites: Duration,
    /// From the tree to a logical plan.
    pub logical: Duration,
    /// The analyzer's and the optimizer's rules.
    pub optimizer: Duration,
    /// From the logical plan to the physical one, with its rules.
    pub physical: Duration,
}

impl Session {
    /// Plans a query step by step and measures each step.
    ///
    /// # Errors
    /// For invalid queries, and for texts that DataFusion's own parser rejects.
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
        // Planning repeats the lookups above, which are cached by then.
        let planned = lap.next().saturating_sub(expanded);
        let optimized = without_large_constants(|| state.optimize(&plan))?;
        let optimizer = lap.next();
        state.query_planner().create_physical_plan(&optimized, state).await?;
        let rewrites = parsed.saturating_sub(parser) + expanded;
        let (logical, physical) = (planned, lap.next());
        Ok(PlanningTimes { setup, parser, rewrites, logical, optimizer, physical })
    }
}

/// A stopwatch: the time since the last call.
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
