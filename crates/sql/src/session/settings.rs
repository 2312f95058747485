//! Settings that hold for more than the session.

use datafusion::common::Result;
use datafusion::logical_expr::{
    LogicalPlan, ResetVariable, SetVariable, Statement as PlanStatement,
};

use super::Session;
use super::planner::StatementPlanner;
use crate::error::SqlState;

/// The setting of what commits survive.
const DURABILITY: &str = "atoll.durability";

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
        let is_shared = variable == DURABILITY || variable.starts_with(RESOURCES);
        if is_shared && !self.is_superuser() {
            return Err(SqlState::INSUFFICIENT_PRIVILEGE
                .error(format!("permission denied to set '{variable}'; ask a superuser")));
        }
        Ok(())
    }
}

/// Whether a statement sets what commits survive: it is set for the whole database, which another session
/// may have set otherwise.
pub(super) fn sets_durability(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Statement(PlanStatement::SetVariable(set)) => set.variable == DURABILITY,
        LogicalPlan::Statement(PlanStatement::ResetVariable(reset)) => reset.variable == DURABILITY,
        _ => false,
    }
}
