//! `now()` and similar functions in statements that are planned once: they become parameters with the time at which the
//! statement runs or its transaction began.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use crate::session::Session;
use atoll_sql_common::logical::map_named;

/// Functions without arguments that return the time of the transaction or the statement.
const CLOCK: [&str; 4] = ["now", "current_date", "current_time", STATEMENT];

/// The function that returns the time of the statement even in a transaction.
const STATEMENT: &str = "statement_timestamp";

/// The calls of such functions in a plan, each with its type.
#[derive(Debug, Default)]
pub(super) struct ClockCalls(Vec<(ScalarFunction, DataType)>);

impl ClockCalls {
    /// Replaces the calls in a plan with parameters that follow the `given` ones.
    pub(super) fn take(plan: LogicalPlan, given: usize) -> Result<(LogicalPlan, Self)> {
        let mut calls = Self::default();
        let plan = plan.transform_up_with_subqueries(|node| {
            map_named(node, |expr| expr.transform_up(|expr| calls.parameter(expr, given)))
        })?;
        Ok((plan.data, calls))
    }

    fn parameter(&mut self, expr: Expr, given: usize) -> Result<Transformed<Expr>> {
        let Expr::ScalarFunction(call) = &expr else { return Ok(Transformed::no(expr)) };
        if !call.args.is_empty() || !CLOCK.contains(&call.func.name()) {
            return Ok(Transformed::no(expr));
        }
        let known = self.0.iter().position(|(other, _)| other == call);
        let at = match known {
            Some(at) => at,
            None => {
                self.0.push((call.clone(), expr.get_type(&DFSchema::empty())?));
                self.0.len() - 1
            }
        };
        let id = format!("${}", given + at + 1);
        let field = Field::new(&id, self.0[at].1.clone(), false);
        let field = Some(Arc::new(field));
        Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field })))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn types(&self) -> Vec<DataType> {
        self.0.iter().map(|(_, data_type)| data_type.clone()).collect()
    }

    /// Their current values.
    pub(super) fn values(&self, session: &Session) -> Result<Vec<ScalarValue>> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let state = session.context.state_ref();
        let options = Arc::clone(state.read().config_options());
        let moment = || SimplifyContext::builder().with_config_options(Arc::clone(&options));
        let statement = moment().with_current_time().build();
        let begun = session.transaction_begun().or(statement.query_execution_start_time());
        let transaction = moment().with_query_execution_start_time(begun).build();
        let value = |(call, data_type): &(ScalarFunction, DataType)| {
            let name = call.func.name();
            let context = if name == STATEMENT { &statement } else { &transaction };
            match call.func.simplify(Vec::new(), context)? {
                ExprSimplifyResult::Simplified(Expr::Literal(value, _)) => value.cast_to(data_type),
                _ => internal_err!("{name} returns no time"),
            }
        };
        self.0.iter().map(value).collect()
    }
}
