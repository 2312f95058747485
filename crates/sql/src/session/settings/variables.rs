//! SET VARIABLE: named values of the session.
//!
//! ```text
//! SET VARIABLE x = (SELECT max(n) FROM t)      SELECT getvariable('x')      RESET VARIABLE x
//! ```
//!
//! The statements are rewritten to a name that no setting has, and `getvariable('x')` becomes DataFusion's `@x`.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::var_provider::VarProvider;
use datafusion::physical_plan::collect;
use datafusion::sql::parser::{ResetStatement, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Set, Statement as Ast};
use parking_lot::Mutex;

use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::steps::plan_physical;
use atoll_sql_common::task::BoundTask;
use atoll_sql_parse::dialect::{VARIABLE, query_of};

/// The variables of a session. Clones share them.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Variables(Arc<Mutex<HashMap<String, ScalarValue>>>);

impl Variables {
    fn value(&self, names: &[String]) -> ScalarValue {
        let name = names.first().map(|name| name.trim_start_matches('@').to_lowercase());
        let value = name.and_then(|name| self.0.lock().get(&name).cloned());
        value.unwrap_or(ScalarValue::Null)
    }

    /// Removes all variables.
    pub(in crate::session) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Runs SET and RESET VARIABLE; false for other statements.
    pub(in crate::session) async fn carry_out(
        &self,
        planner: &StatementPlanner,
        statement: &Parsed,
    ) -> Result<bool> {
        match statement {
            Parsed::Reset(ResetStatement::Variable(name)) => {
                let Some(name) = variable(name) else { return Ok(false) };
                self.0.lock().remove(&name);
                Ok(true)
            }
            Parsed::Statement(ast) => {
                let Ast::Set(Set::SingleAssignment { variable: name, values, .. }) = ast.as_ref()
                else {
                    return Ok(false);
                };
                let Some(name) = variable(name) else { return Ok(false) };
                let [value] = values.as_slice() else {
                    return plan_err!("SET VARIABLE takes one value; a list of several is [1, 2]");
                };
                let value = evaluated(planner, value.clone()).await?;
                self.0.lock().insert(name, value);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

impl VarProvider for Variables {
    fn get_value(&self, names: Vec<String>) -> Result<ScalarValue> {
        Ok(self.value(&names))
    }

    fn get_type(&self, names: &[String]) -> Option<DataType> {
        Some(self.value(names).data_type())
    }
}

/// The name of a variable that a statement sets.
pub(in crate::session) fn variable(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [kind, name] if kind.as_ident().is_some_and(|kind| kind.value == VARIABLE) => {
            name.as_ident().map(|name| name.value.to_lowercase())
        }
        _ => None,
    }
}

async fn evaluated(planner: &StatementPlanner, value: Expr) -> Result<ScalarValue> {
    let query = Parsed::Statement(Box::new(Ast::Query(Box::new(query_of(value)))));
    let plan = planner.plan_other(query).await?;
    let physical = plan_physical(&planner.state, &plan).await?;
    let rows = collect(physical, planner.state.task_ctx());
    let running = planner.workers.drive(rows);
    let batches = BoundTask::new(running).join("computing the value of a variable").await?;
    let first = batches.iter().find(|batch| batch.num_rows() > 0);
    match first {
        Some(batch) => ScalarValue::try_from_array(batch.column(0), 0),
        None => Ok(ScalarValue::Null),
    }
}
