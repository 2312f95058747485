//! Settings that affect more than the session.

use atoll_topology::{Bytes, NodeId};
use datafusion::common::Result;
use datafusion::logical_expr::{
    LogicalPlan, ResetVariable, SetVariable, Statement as PlanStatement,
};

use crate::database::Workers;
use crate::session::Session;
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::pool_statement::{home_set, pool_set};
use crate::session::statement::query_result::QueryResult;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::settings::{
    self, LARGE_STATEMENTS, SESSION_MEMORY, SMALL_STATEMENTS, parse_session_memory,
};
use atoll_sql_exec::admission::StatementClass;

/// The setting of what committed transactions survive.
const DURABILITY: &str = "atoll.durability";
/// The setting of the cores of statements without a pool.
const CORES: &str = "atoll.cores";

/// Settings of the memory, disk and files that queries use.
const RESOURCES: &str = "datafusion.runtime.";
const SPILL_DIRECTORY: &str = "datafusion.runtime.temp_directory";

impl Session {
    /// Runs SET and RESET of the engine's settings.
    pub(in crate::session) async fn change_setting(
        &self,
        planner: StatementPlanner,
        statement: PlanStatement,
        sql: &str,
    ) -> Result<QueryResult> {
        let reset = match &statement {
            PlanStatement::ResetVariable(reset) => Some(reset.variable.clone()),
            _ => None,
        };
        let tag = if reset.is_some() { "RESET" } else { "SET" };
        let statement = settings::reset(statement, &self.first_options());
        self.check_setting(&planner, &statement)?;
        let plan = LogicalPlan::Statement(statement);
        let pool = pool_set(&plan, self.database().pools())?;
        let home = home_set(&plan, self.machine())?;
        let frame = self.context.execute_logical_plan(plan.clone()).await?;
        self.spill.keep(&self.context)?;
        self.place(pool, home);
        self.apply_setting(&plan, reset.is_some()).await?;
        if let Some(name) = reset {
            self.begin_again_with(Some(&name));
        }
        match frame.logical_plan() {
            LogicalPlan::EmptyRelation(_) => Ok(QueryResult::done(tag.to_owned(), sql)),
            _ => self.query(planner, frame.logical_plan().clone(), sql).await,
        }
    }

    /// Sets an initial value of the session.
    pub(crate) fn begin_with(&self, name: &str, value: &str) -> Result<()> {
        if self.parameters.set_first(name, value)? {
            return Ok(());
        }
        let set = SetVariable { variable: name.to_owned(), value: value.to_owned() };
        let plan = LogicalPlan::Statement(PlanStatement::SetVariable(set));
        let (pool, home) =
            (pool_set(&plan, self.database().pools())?, home_set(&plan, self.machine())?);
        if name == SESSION_MEMORY && !self.is_superuser() {
            self.check_session_memory(parse_session_memory(value)?)?;
        }
        self.context.state_ref().write().config_mut().options_mut().set(name, value)?;
        self.place(pool, home);
        self.watch.memory().set_limit(self.atoll_options().session_memory);
        Ok(())
    }

    /// Applies the role's value of this setting, or of all, again, as far as the engine's settings do not return to it
    /// by themselves. A value that is refused now, such as a dropped pool, was logged when the session began.
    pub(in crate::session) fn begin_again_with(&self, setting: Option<&str>) {
        for (name, value) in self.role_settings() {
            if setting.is_none_or(|setting| setting == name) && !self.parameters.knows(&name) {
                let _refused = self.begin_with(&name, &value);
            }
        }
    }

    /// Moves statements to other workers, or to another driving node, if that was set.
    fn place(&self, pool: Option<Option<Workers>>, home: Option<Option<NodeId>>) {
        if let Some(pool) = pool {
            *self.pool.lock() = pool;
        }
        if let Some(home) = home {
            self.watch.set_home(home);
        }
    }

    /// Applies the effects of a SET.
    async fn apply_setting(&self, plan: &LogicalPlan, is_reset: bool) -> Result<()> {
        let (options, database) = (self.atoll_options(), self.database());
        self.watch.memory().set_limit(options.session_memory);
        // In memory there is nothing to reset.
        let is_needless = is_reset && database.options().directory.is_none();
        if sets(plan, DURABILITY) && !is_needless {
            database.set_durability(options.durability).await?;
        }
        if sets(plan, CORES) {
            database.pools().set_cores(options.cores)?;
        }
        if sets(plan, SMALL_STATEMENTS) {
            database.admission().set_limit(StatementClass::Small, options.small_statements);
        }
        if sets(plan, LARGE_STATEMENTS) {
            database.admission().set_limit(StatementClass::Large, options.large_statements);
        }
        Ok(())
    }

    /// Refuses settings that affect other sessions or the machine, except to superusers.
    fn check_setting(&self, planner: &StatementPlanner, statement: &PlanStatement) -> Result<()> {
        let (PlanStatement::SetVariable(SetVariable { variable, .. })
        | PlanStatement::ResetVariable(ResetVariable { variable })) = statement
        else {
            return Ok(());
        };
        if variable == SPILL_DIRECTORY {
            planner.check_files("SET")?;
        }
        if let PlanStatement::SetVariable(SetVariable { variable, value }) = statement
            && variable == SESSION_MEMORY
            && !self.is_superuser()
        {
            self.check_session_memory(parse_session_memory(value)?)?;
        }
        if is_shared(variable) && !self.is_superuser() {
            return Err(SqlState::INSUFFICIENT_PRIVILEGE
                .error(format!("permission denied to set '{variable}'; ask a superuser")));
        }
        Ok(())
    }
}

impl Session {
    /// Refuses a memory limit above the one that the session began with.
    fn check_session_memory(&self, wanted: Option<Bytes>) -> Result<()> {
        let most = self.first_options().session_memory;
        match (most, wanted) {
            (Some(most), wanted) if wanted.is_none_or(|wanted| wanted > most) => {
                Err(SqlState::INSUFFICIENT_PRIVILEGE.error(format!(
                    "permission denied to set '{SESSION_MEMORY}' to more than {most}; ask a superuser"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a setting applies to all sessions.
pub(in crate::session) fn is_shared(variable: &str) -> bool {
    let shared = [DURABILITY, CORES, SMALL_STATEMENTS, LARGE_STATEMENTS];
    shared.contains(&variable) || variable.starts_with(RESOURCES)
}

/// Whether a statement sets this setting of the whole database, which another session may have set differently.
fn sets(plan: &LogicalPlan, setting: &str) -> bool {
    match plan {
        LogicalPlan::Statement(PlanStatement::SetVariable(set)) => set.variable == setting,
        LogicalPlan::Statement(PlanStatement::ResetVariable(reset)) => reset.variable == setting,
        _ => false,
    }
}
