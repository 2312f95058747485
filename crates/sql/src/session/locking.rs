//! `SELECT … FOR UPDATE`: the rows of one table that a query finds, locked before they are read.
//!
//! ```text
//! SELECT a FROM t WHERE p ORDER BY b LIMIT 1 FOR UPDATE SKIP LOCKED
//!     1. SELECT t."row id" FROM t WHERE p ORDER BY b          which rows; in their order
//!     2. lock them, up to the limit of them
//!     3. SELECT a FROM <these rows> ORDER BY b                what they hold
//! ```

use std::sync::Arc;

use atoll_store::RowId;
use atoll_store::database::{LockWait, LockedRows};
use atoll_store::lock::LockMode;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, LimitClause, LockClause, LockType, NonBlock, Query, Select,
    SetExpr, Statement as Ast, TableFactor, Value,
};

use super::Session;
use super::change::{CHANGED, changed_source, column_of, rename};
use super::execute::QueryResult;
use super::planner::{StatementPlanner, plan_physical};
use crate::catalog::plain;
use crate::error::{table_error, transaction_error};
use crate::role::rights::Right;
use crate::table::{ChangeKind, ChangedTable, PlacedTable, StaleStatement, WriteRules};

/// A query that locks its rows.
pub(super) struct LockingQuery {
    query: Box<Query>,
    mode: LockMode,
    wait: LockWait,
}

impl LockingQuery {
    /// Takes the locks out of a query, if it has some.
    ///
    /// # Errors
    /// For queries whose rows are not those of one table.
    pub(super) fn take(statement: &Parsed) -> Result<Option<Self>> {
        let Parsed::Statement(ast) = statement else { return Ok(None) };
        let Ast::Query(query) = ast.as_ref() else { return Ok(None) };
        if query.locks.is_empty() {
            return Ok(None);
        }
        let mut query = query.clone();
        let locks = std::mem::take(&mut query.locks);
        let [LockClause { lock_type, nonblock, .. }] = &locks[..] else {
            return plan_err!("one FOR UPDATE or FOR SHARE at the end of a query locks its rows");
        };
        let SetExpr::Select(select) = query.body.as_ref() else { return not_of_one_table() };
        if query.with.is_some() || !is_of_one_table(select) {
            return not_of_one_table();
        }
        let mode = match lock_type {
            LockType::Update => LockMode::Exclusive,
            LockType::Share => LockMode::Shared,
        };
        let wait = match nonblock {
            None => LockWait::Wait,
            Some(NonBlock::Nowait) => LockWait::NoWait,
            Some(NonBlock::SkipLocked) => LockWait::SkipLocked,
        };
        Ok(Some(Self { query, mode, wait }))
    }

    fn select(&mut self) -> Result<&mut Select> {
        match self.query.body.as_mut() {
            SetExpr::Select(select) => Ok(select),
            _ => not_of_one_table(),
        }
    }

    /// Rows at most, where a number is said.
    fn limit(&self) -> Result<Option<usize>> {
        let limit = match &self.query.limit_clause {
            None => return Ok(None),
            Some(LimitClause::LimitOffset { limit, offset: None, .. }) => limit.as_ref(),
            Some(_) => return plan_err!("OFFSET with FOR UPDATE is not supported"),
        };
        match limit {
            None => Ok(None),
            Some(Expr::Value(value)) => match &value.value {
                Value::Number(text, _) => Ok(text.parse().ok()),
                Value::Null => Ok(None),
                _ => plan_err!("LIMIT with FOR UPDATE takes a number"),
            },
            Some(_) => plan_err!("LIMIT with FOR UPDATE takes a number"),
        }
    }
}

fn not_of_one_table<T>() -> Result<T> {
    plan_err!(
        "FOR UPDATE and FOR SHARE lock the rows of a query over one table, without joins, GROUP BY, \
         aggregates, DISTINCT, WITH or set operations"
    )
}

fn is_of_one_table(select: &Select) -> bool {
    let is_grouped =
        !matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
    let is_distinct = !matches!(select.distinct, None | Some(Distinct::All));
    let one = matches!(&select.from[..], [from] if from.joins.is_empty());
    one && !is_grouped && !is_distinct && select.having.is_none() && select.qualify.is_none()
}

impl Session {
    /// Runs a query that locks its rows.
    pub(super) async fn run_locking(
        &self,
        planner: StatementPlanner,
        mut locking: LockingQuery,
        sql: &str,
    ) -> Result<QueryResult> {
        let TableFactor::Table { name, .. } = &locking.select()?.from[0].relation else {
            return not_of_one_table();
        };
        let at = planner.resolve_in(&planner.state, name)?;
        let Some(found) = planner.names.table(&at)? else {
            return plan_err!("table '{}' not found", plain(&at));
        };
        let Some(table) = found.downcast_ref::<PlacedTable>() else {
            return plan_err!(
                "'{}' was not made by CREATE TABLE: its rows have no locks",
                plain(&at)
            );
        };
        planner.check_right(Right::Select, &at)?;
        planner.check_right(Right::Update, &at)?;
        let target = planner.target(WriteRules::default());
        let source = Arc::new(ChangedTable::new(table.clone(), ChangeKind::Delete, target));
        planner.names.hide(CHANGED, Arc::clone(&source) as _);
        let own = rename(&mut locking.select()?.from[0].relation, &changed_source(&at))?;
        let found = self.find(&planner, &locking, &own, source.row_id()).await?;
        let locked = lock(&planner, table, &locking, found).await?;
        self.read(planner, table, locking.query, &locked, sql).await
    }

    /// The ids of the rows, in the order of the query.
    async fn find(
        &self,
        planner: &StatementPlanner,
        locking: &LockingQuery,
        own: &Ident,
        row_id: &str,
    ) -> Result<Vec<RowId>> {
        let whole = planner.plan_query(&planner.state, of(locking.query.clone()), &[]).await?;
        let puts_together = |plan: &LogicalPlan| {
            Ok(matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)))
        };
        if whole.exists(puts_together)? {
            return not_of_one_table();
        }
        let mut query = locking.query.clone();
        if locking.wait == LockWait::SkipLocked {
            query.limit_clause = None;
        }
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection = vec![column_of(own, row_id)];
        }
        let plan = planner.plan_query(&planner.state, of(query), &[]).await?;
        let physical = plan_physical(&planner.state, &plan).await?;
        if physical.schema().fields().iter().map(|field| field.data_type()).ne([&DataType::UInt64])
        {
            return not_of_one_table();
        }
        let rows = self.on_worker(collect(physical, planner.state.task_ctx())).await?;
        let ids =
            rows.iter().flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values());
        Ok(ids.map(|id| RowId::new(*id)).collect())
    }

    /// What the locked rows hold.
    async fn read(
        &self,
        planner: StatementPlanner,
        table: &PlacedTable,
        query: Box<Query>,
        locked: &[RowId],
        sql: &str,
    ) -> Result<QueryResult> {
        let version = table.version();
        let rows: Vec<_> = locked.iter().filter_map(|id| version.row(*id)).collect();
        let rows = table.typed(&version.codec().decode(&rows).map_err(table_error)?)?;
        let rows = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
        planner.names.hide(CHANGED, Arc::new(rows));
        let mut query = query;
        query.limit_clause = None;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.selection = None;
        }
        let plan = planner.plan_query(&planner.state, of(query), &[]).await?;
        self.query(planner, plan, sql).await
    }
}

fn of(query: Box<Query>) -> Parsed {
    Parsed::Statement(Box::new(Ast::Query(query)))
}

/// Locks rows; which of them, where those that others have locked are left out.
async fn lock(
    planner: &StatementPlanner,
    table: &PlacedTable,
    locking: &LockingQuery,
    found: Vec<RowId>,
) -> Result<Vec<RowId>> {
    let (mode, wait) = (locking.mode, locking.wait);
    let mut transaction = planner.transaction.transaction.lock().await?;
    let rows = match (wait, locking.limit()?) {
        (LockWait::SkipLocked, Some(limit)) => {
            let mut locked = Vec::new();
            for row in found {
                if locked.len() >= limit {
                    break;
                }
                match transaction.lock_rows(table.id(), vec![row], mode, wait).await {
                    Ok(LockedRows::Locked(rows)) => locked.extend(rows),
                    Ok(LockedRows::Stale) => return Err(StaleStatement::error()),
                    Err(error) => return Err(transaction_error(error)),
                }
            }
            LockedRows::Locked(locked)
        }
        _ => {
            let locked = transaction.lock_rows(table.id(), found, mode, wait).await;
            locked.map_err(transaction_error)?
        }
    };
    match rows {
        LockedRows::Locked(rows) => Ok(rows),
        LockedRows::Stale => Err(StaleStatement::error()),
    }
}
