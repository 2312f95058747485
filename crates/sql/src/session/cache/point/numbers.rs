//! `nextval` in rows that a statement lists: each call becomes a parameter, whose value is the number that the call
//! gets when the statement runs.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Placeholder;

use crate::session::Session;
use crate::session_functions::NextNumber;
use crate::shared_transaction::SharedTransaction;

/// The calls, in the order of the rows.
#[derive(Debug, Default)]
pub(super) struct NextNumbers(Vec<NextNumber>);

impl NextNumbers {
    /// Replaces the calls with parameters that follow the `given` ones.
    pub(super) fn take(rows: &mut [Vec<Expr>], given: usize) -> Result<Self> {
        let mut calls = Self::default();
        for value in rows.iter_mut().flatten() {
            let taken = std::mem::take(value).transform_up(|expr| calls.parameter(expr, given))?;
            *value = taken.data;
        }
        Ok(calls)
    }

    fn parameter(&mut self, expr: Expr, given: usize) -> Result<Transformed<Expr>> {
        let Some(call) = NextNumber::try_from_expr(&expr) else { return Ok(Transformed::no(expr)) };
        self.0.push(call);
        let id = format!("${}", given + self.0.len());
        let field = Some(Arc::new(Field::new(&id, DataType::Int64, false)));
        Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field })))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn types(&self) -> Vec<DataType> {
        vec![DataType::Int64; self.0.len()]
    }

    /// Takes their numbers from the sequences.
    pub(super) async fn values(
        &self,
        session: &Session,
        transaction: &SharedTransaction,
    ) -> Result<Vec<ScalarValue>> {
        let (user, path) = (session.limited_user(), session.search_path());
        let mut values = Vec::with_capacity(self.0.len());
        for call in &self.0 {
            let number = call.next(&path, transaction, user.as_deref()).await?;
            values.push(ScalarValue::Int64(Some(number)));
        }
        Ok(values)
    }
}
