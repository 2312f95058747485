//! `SELECT * FROM t` of a table with very many columns.
//!
//! DataFusion 55.2 compares the columns of a select list with each other by their texts
//! (`push_projection_dedupl`), which takes ten seconds for ten thousand. A select list that is `*` alone gives what
//! FROM and WHERE give: the query is planned with a constant in its place, and that is left out of the plan.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, ObjectName, Query, SelectItem, SetExpr, Statement as Ast, TableFactor,
    Value, WildcardAdditionalOptions,
};

use super::planner::StatementPlanner;

/// Fewer columns are planned as they are written.
const COLUMNS_MIN: usize = 500;

/// A query whose `*` was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakenStar {
    /// That of the statement.
    OfQuery,
    /// That of CREATE TABLE AS.
    OfTable,
}

impl StatementPlanner {
    /// Takes the `*` out of a statement that is `SELECT * FROM t`, or makes a table of it, where `t` is wide.
    pub(super) fn take_star(
        &self,
        state: &SessionState,
        statement: &mut Parsed,
    ) -> Result<Option<TakenStar>> {
        let Parsed::Statement(ast) = statement else { return Ok(None) };
        let (query, of) = match ast.as_mut() {
            Ast::Query(query) => (query, TakenStar::OfQuery),
            Ast::CreateTable(create) if create.columns.is_empty() => match &mut create.query {
                Some(query) => (query, TakenStar::OfTable),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let Some((table, item)) = only_star(query) else { return Ok(None) };
        let Ok(at) = self.resolve_in(state, table) else { return Ok(None) };
        let found = self.names.table(&at)?;
        if found.is_none_or(|found| found.schema().fields().len() < COLUMNS_MIN) {
            return Ok(None);
        }
        *item = SelectItem::UnnamedExpr(Expr::Value(Value::Null.into()));
        Ok(Some(of))
    }
}

impl TakenStar {
    /// The plan of the statement as it was.
    pub(super) fn restored(self, plan: LogicalPlan) -> LogicalPlan {
        match (self, plan) {
            (Self::OfQuery, plan) => under_constant(plan),
            (Self::OfTable, LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut create))) => {
                create.input = Arc::new(under_constant(Arc::unwrap_or_clone(create.input)));
                LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create))
            }
            (_, plan) => plan,
        }
    }
}

/// What the constant stands on.
fn under_constant(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Projection(constant) => Arc::unwrap_or_clone(constant.input),
        LogicalPlan::Limit(mut limit) => {
            limit.input = Arc::new(under_constant(Arc::unwrap_or_clone(limit.input)));
            LogicalPlan::Limit(limit)
        }
        plan => plan,
    }
}

/// The table and the `*` of a query that has nothing else but WHERE and LIMIT.
fn only_star(query: &mut Query) -> Option<(&ObjectName, &mut SelectItem)> {
    let is_alone = query.with.is_none()
        && query.order_by.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
        && query.pipe_operators.is_empty();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let is_plain = select.distinct.is_none()
        && select.exclude.is_none()
        && select.top.is_none()
        && select.into.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.named_window.is_empty()
        && matches!(&select.group_by, GroupByExpr::Expressions(keys, more) if keys.is_empty() && more.is_empty());
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, args: None, sample: None, .. } = &from.relation else {
        return None;
    };
    let [item] = select.projection.as_mut_slice() else { return None };
    let SelectItem::Wildcard(options) = &*item else { return None };
    let is_all = *options == WildcardAdditionalOptions::default();
    (is_alone && is_plain && is_all && from.joins.is_empty()).then_some((name, item))
}
