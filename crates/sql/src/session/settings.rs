//! Settings that hold for more than the session.

use datafusion::common::Result;
use datafusion::logical_expr::{
    LogicalPlan, ResetVariable, SetVariable, Statement as PlanStatement,
};

use super::Session;
use super::planner::StatementPlanner;
use crate::error::SqlState;

/// The setting of what commits survive.
pub(super) const DURABILITY: &str = "atoll.durability";
/// The setting of the cores of statements without a pool.
pub(super) const CORES: &str = "atoll.cores";

/// Settings of the memory, the disk and the files that queries take.
const RESOURCES: &str = "datafusion.runtime.";
const SPILL_DIRECTORY: &str = "datafusion.runtime.temp_directory";

impl Session {
    /// Refuses settings that hold for others too, or for the machine, to all but superusers.
    pub(super) fn check_setting(
        &self,
        planner: &StatementPlanner,
        statement: &PlanStatement,
    ) -> Result<()> {
        let (PlanStatement::SetVariable(SetVariable { variable, .. })
        | PlanStatement::ResetVariable(ResetVariable { variable })) = statement
        else {
            return Ok(());
        };
        if variable == SPILL_DIRECTORY {
            planner.check_files("SET")?;
        }
        let is_shared = [DURABILITY, CORES].contains(&variable.as_str());
        let is_shared = is_shared || variable.starts_with(RESOURCES);
        if is_shared && !self.is_superuser() {
            return Err(SqlState::INSUFFICIENT_PRIVILEGE
                .error(format!("permission denied to set '{variable}'; ask a superuser")));
        }
        Ok(())
    }
}

/// Whether a statement sets this setting of the whole database, which another session may have set otherwise.
pub(super) fn sets(plan: &LogicalPlan, setting: &str) -> bool {
    match plan {
        LogicalPlan::Statement(PlanStatement::SetVariable(set)) => set.variable == setting,
        LogicalPlan::Statement(PlanStatement::ResetVariable(reset)) => reset.variable == setting,
        _ => false,
    }
}
