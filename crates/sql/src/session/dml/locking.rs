//! `SELECT … FOR UPDATE`: the rows of tables that a query finds, locked before they are shown.
//!
//! ```text
//! SELECT a FROM t JOIN u ON p ORDER BY b LIMIT 1 FOR UPDATE
//!     1. SELECT a, t."row id 1", u."row id 2" FROM t JOIN u ON p ORDER BY b LIMIT 1
//!     2. lock the rows with these ids; where others have changed one meanwhile, the statement runs again
//!     3. what was found, without the ids
//! ```
//!
//! SKIP LOCKED fetches more rows than are wanted and locks them one after the other; rows that others hold are left
//! out.

use std::sync::Arc;

use atoll_store::RowId;
use atoll_store::database::{LockWait, LockedRows, Transaction};
use atoll_store::lock::LockMode;
use datafusion::arrow::array::{Array, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::{DataType, SchemaRef, UInt64Type};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    Expr as PlanExpr, FetchType, LogicalPlan, LogicalPlanBuilder, SkipType,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::collect;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, LockClause, LockType, NonBlock, ObjectName, Query, Select,
    SelectItem, SetExpr, Statement as Ast, TableAliasColumnDef, TableFactor, TableWithJoins,
};

use crate::role::rights::Right;
use crate::session::Session;
use crate::session::dml::change::{changed_source, quoted, rename};
use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::steps::{cancel_token, plan_physical};
use crate::session::statement::query_result::QueryResult;
use crate::table::{ChangedTable, PlacedTable, StaleStatement, WriteRules};
use atoll_sql_common::error::{SqlState, stated_err, transaction_error};
use atoll_sql_common::names::plain;
use atoll_sql_common::user_type::UserTypes;
use atoll_sql_semantics::enums::labelled_rows;

/// Rows that SKIP LOCKED fetches beyond twice the wanted ones, before it fetches all.
const SPARE_ROWS: usize = 16;

/// Ends the name of an id's column once for each subquery that it comes from.
const FROM_SUBQUERY: &str = " of subquery";

/// A query that locks its rows.
pub(in crate::session) struct LockingQuery {
    query: Box<Query>,
    clauses: Vec<LockClause>,
    wait: LockWait,
}

/// A table whose rows are locked.
struct LockedTable {
    table: PlacedTable,
    mode: LockMode,
    /// Name of the column that holds the ids of its rows.
    row_id: String,
}

/// The result of a query.
struct FoundRows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// Number of the first id column; there is one for each table.
    first_id: usize,
}

impl LockingQuery {
    /// Takes the locking clauses out of a query, if it has any.
    ///
    /// # Errors
    /// As [`try_from_ast`](Self::try_from_ast).
    pub(in crate::session) fn take(statement: &Parsed) -> Result<Option<Self>> {
        match statement {
            Parsed::Statement(ast) => Self::try_from_ast(ast),
            _ => Ok(None),
        }
    }

    /// The same for an AST.
    ///
    /// # Errors
    /// For queries whose rows are not those of tables.
    pub(in crate::session) fn try_from_ast(ast: &Ast) -> Result<Option<Self>> {
        let Ast::Query(query) = ast else { return Ok(None) };
        let [first, others @ ..] = &query.locks[..] else { return Ok(None) };
        if others.iter().any(|other| other.nonblock != first.nonblock) {
            return plan_err!("NOWAIT and SKIP LOCKED hold for all rows that a query locks");
        }
        let wait = match first.nonblock {
            None => LockWait::Wait,
            Some(NonBlock::Nowait) => LockWait::NoWait,
            Some(NonBlock::SkipLocked) => LockWait::SkipLocked,
        };
        let mut query = query.clone();
        let clauses = std::mem::take(&mut query.locks);
        let mut locking = Self { query, clauses, wait };
        match keeps_rows(locking.select()?) {
            true => Ok(Some(locking)),
            false => not_of_tables(),
        }
    }

    fn select(&mut self) -> Result<&mut Select> {
        match self.query.body.as_mut() {
            SetExpr::Select(select) => Ok(select),
            _ => not_of_tables(),
        }
    }

    /// Adds the ids of the locked tables to the query, after its own columns.
    fn add_ids(&mut self, planner: &StatementPlanner) -> Result<Vec<LockedTable>> {
        let with = self.query.with.iter().flat_map(|with| &with.cte_tables);
        let ctes: Vec<String> = with.map(|cte| planner.normalized(&cte.alias.name)).collect();
        let clauses = std::mem::take(&mut self.clauses);
        let select = self.select()?;
        let (mut locked, mut ids, mut relations) = (Vec::new(), Vec::new(), Vec::new());
        select.from.iter_mut().for_each(|from| relations_of(from, &mut relations));
        let mut is_found = vec![false; clauses.len()];
        for relation in relations {
            let name = called(relation).map(|name| planner.normalized(name));
            let is_meant = |clause: &LockClause| match &clause.of {
                None => true,
                Some(of) => last(of).map(|of| planner.normalized(of)) == name,
            };
            let meant: Vec<usize> =
                (0..clauses.len()).filter(|at| is_meant(&clauses[*at])).collect();
            meant.iter().for_each(|at| is_found[*at] = true);
            if meant.is_empty() {
                continue;
            }
            let is_named = meant.iter().any(|at| clauses[*at].of.is_some());
            if !has_rows(relation, &ctes) {
                match is_named {
                    true => return not_a_table(relation),
                    // Functions and WITH queries have no rows that could be locked.
                    false => continue,
                }
            }
            let alone = meant.iter().any(|at| clauses[*at].lock_type == LockType::Update);
            let mode = if alone { LockMode::Exclusive } else { LockMode::Shared };
            ids.extend(lock_relation(planner, relation, mode, &ctes, &mut locked)?);
        }
        let missing =
            clauses.iter().zip(is_found).find(|(clause, found)| !found && clause.of.is_some());
        if let Some((LockClause { of: Some(of), .. }, _)) = missing {
            return Err(SqlState::UNDEFINED_TABLE.error(format!(
                "relation '{of}' in FOR UPDATE or FOR SHARE is not in FROM, or has an alias there"
            )));
        }
        let ids = ids.into_iter().zip(&locked);
        let ids = ids.map(|(id, table)| id.selected_as(&format!("{} found", table.row_id)));
        select.projection.extend(ids);
        Ok(locked)
    }

    /// The plan of the query with the ids, and without them, for its errors, `own`.
    async fn plan(&self, planner: &StatementPlanner, own: Box<Query>) -> Result<LogicalPlan> {
        let plan =
            match planner.plan_query(&planner.state, parsed_query(self.query.clone()), &[]).await {
                Ok(plan) => plan,
                Err(error) => return Err(refusal(planner, own, error).await?),
            };
        if puts_together(&plan) {
            return not_of_tables();
        }
        match &planner.values {
            Some(values) => plan.replace_params_with_values(values),
            None => Ok(plan),
        }
    }
}

/// The error of a query that cannot be planned with ids: its own, if it has one.
async fn refusal(
    planner: &StatementPlanner,
    own: Box<Query>,
    error: DataFusionError,
) -> Result<DataFusionError> {
    let plan = planner.plan_query(&planner.state, parsed_query(own), &[]).await?;
    let is_grouped =
        |node: &LogicalPlan| Ok(matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)));
    if plan.exists(is_grouped)? { not_of_tables() } else { Ok(error) }
}

fn parsed_query(query: Box<Query>) -> Parsed {
    Parsed::Statement(Box::new(Ast::Query(query)))
}

fn not_of_tables<T>() -> Result<T> {
    stated_err!(
        FEATURE_NOT_SUPPORTED,
        "FOR UPDATE and FOR SHARE lock the rows that a query shows one by one, without GROUP BY, aggregates, \
         window functions, DISTINCT or set operations"
    )
}

fn not_a_table<T>(relation: &TableFactor) -> Result<T> {
    stated_err!(
        FEATURE_NOT_SUPPORTED,
        "the rows of '{relation}' have no locks; name the tables whose rows to lock: FOR UPDATE OF t"
    )
}

fn keeps_rows(select: &Select) -> bool {
    let is_grouped =
        !matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
    let is_distinct = !matches!(select.distinct, None | Some(Distinct::All));
    !is_grouped && !is_distinct && select.having.is_none() && select.qualify.is_none()
}

/// Whether a row of the plan's result may combine several input rows.
fn puts_together(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) | LogicalPlan::Distinct(_) => true,
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_) => plan.inputs().into_iter().any(puts_together),
        _ => false,
    }
}

/// The relations in FROM, one by one.
fn relations_of<'q>(from: &'q mut TableWithJoins, found: &mut Vec<&'q mut TableFactor>) {
    let joined = from.joins.iter_mut().map(|join| &mut join.relation);
    for relation in std::iter::once(&mut from.relation).chain(joined) {
        match relation {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                relations_of(table_with_joins, found);
            }
            relation => found.push(relation),
        }
    }
}

fn last(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(|part| part.as_ident())
}

/// The name of a relation in a query.
fn called(relation: &TableFactor) -> Option<&Ident> {
    match relation {
        TableFactor::Table { name, alias, .. } => {
            alias.as_ref().map(|alias| &alias.name).or_else(|| last(name))
        }
        TableFactor::Derived { alias, .. } | TableFactor::NestedJoin { alias, .. } => {
            alias.as_ref().map(|alias| &alias.name)
        }
        _ => None,
    }
}

/// Whether it is a plain name, and not that of a query in WITH.
fn is_table(relation: &TableFactor, ctes: &[String]) -> bool {
    let TableFactor::Table { name, args: None, .. } = relation else { return false };
    !matches!(&name.0[..], [name] if name.as_ident().is_some_and(|name| {
        ctes.iter().any(|cte| cte.eq_ignore_ascii_case(&name.value))
    }))
}

/// Whether a relation is a table, or a subquery.
fn has_rows(relation: &TableFactor, ctes: &[String]) -> bool {
    let is_query = matches!(relation, TableFactor::Derived { .. } | TableFactor::NestedJoin { .. });
    is_query || is_table(relation, ctes)
}

/// A column with the ids of a table's rows.
struct IdColumn {
    relation: Ident,
    name: String,
}

impl IdColumn {
    fn selected_as(self, alias: &str) -> SelectItem {
        let expr = Expr::CompoundIdentifier(vec![self.relation, quoted(&self.name)]);
        SelectItem::ExprWithAlias { expr, alias: quoted(alias) }
    }
}

/// Adds the ids of its rows to a relation: a table, or a subquery over tables.
fn lock_relation(
    planner: &StatementPlanner,
    relation: &mut TableFactor,
    mode: LockMode,
    ctes: &[String],
    locked: &mut Vec<LockedTable>,
) -> Result<Vec<IdColumn>> {
    if let TableFactor::Derived { subquery, alias: Some(alias), .. } = relation
        && (alias.columns.is_empty() || names_columns(subquery))
    {
        let ids = lock_subquery(planner, subquery, mode, ctes, locked)?;
        let relation = &alias.name;
        if !alias.columns.is_empty() {
            let column = |id: &String| TableAliasColumnDef { name: quoted(id), data_type: None };
            alias.columns.extend(ids.iter().map(column));
        }
        return Ok(ids
            .into_iter()
            .map(|name| IdColumn { relation: relation.clone(), name })
            .collect());
    }
    let (table, relation) = locked_table(planner, relation, mode, locked.len() + 1)?;
    let name = table.row_id.clone();
    locked.push(table);
    Ok(vec![IdColumn { relation, name }])
}

/// Whether a query selects columns one by one, without `*`.
fn names_columns(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    select
        .projection
        .iter()
        .all(|item| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }))
}

/// Adds the ids of the rows of its tables to a subquery; the names of their columns.
fn lock_subquery(
    planner: &StatementPlanner,
    subquery: &mut Query,
    mode: LockMode,
    ctes: &[String],
    locked: &mut Vec<LockedTable>,
) -> Result<Vec<String>> {
    let with = subquery.with.iter().flat_map(|with| &with.cte_tables);
    let own = with.map(|cte| planner.normalized(&cte.alias.name));
    let ctes: Vec<String> = own.chain(ctes.iter().cloned()).collect();
    let SetExpr::Select(select) = subquery.body.as_mut() else { return not_of_tables() };
    if !keeps_rows(select) {
        return not_of_tables();
    }
    let (mut relations, mut names) = (Vec::new(), Vec::new());
    select.from.iter_mut().for_each(|from| relations_of(from, &mut relations));
    for relation in relations {
        if !has_rows(relation, &ctes) {
            continue;
        }
        for id in lock_relation(planner, relation, mode, &ctes, locked)? {
            let name = format!("{}{FROM_SUBQUERY}", id.name);
            select.projection.push(id.selected_as(&name));
            names.push(name);
        }
    }
    Ok(names)
}

/// Replaces a relation of the query with the table including its row ids; its name in the query.
fn locked_table(
    planner: &StatementPlanner,
    relation: &mut TableFactor,
    mode: LockMode,
    number: usize,
) -> Result<(LockedTable, Ident)> {
    let TableFactor::Table { name, .. } = relation else { return not_a_table(relation) };
    let at = planner.resolve_in(&planner.state, name)?;
    let Some(found) = planner.names.table(&at)? else {
        return Err(SqlState::missing_table(&plain(&at)));
    };
    let Some(table) = found.downcast_ref::<PlacedTable>() else { return not_a_table(relation) };
    if table.is_materialized() {
        return stated_err!(
            WRONG_OBJECT_TYPE,
            "cannot lock rows in materialized view \"{}\"",
            plain(&at)
        );
    }
    planner.check_right(Right::Select, &at)?;
    planner.check_right(Right::Update, &at)?;
    let target = planner.target(WriteRules::default());
    let source = ChangedTable::locked(table.clone(), target, number);
    let row_id = source.row_id().to_owned();
    let mut hidden = changed_source(&at);
    hidden.table = format!("{} {number}", hidden.table).into();
    planner.names.hide(&hidden.table, Arc::new(source));
    let own = rename(relation, &hidden)?;
    Ok((LockedTable { table: table.clone(), mode, row_id }, own))
}

impl Session {
    /// Runs a query that locks its rows.
    pub(in crate::session) async fn run_locking(
        &self,
        planner: StatementPlanner,
        locking: LockingQuery,
        sql: &str,
    ) -> Result<QueryResult> {
        let (schema, batches) = self.locked_rows(&planner, locking).await?;
        let types = UserTypes::in_options(planner.state.config_options());
        let (schema, batches) = labelled_rows(&schema, batches, types)?;
        // Statements in its WITH may have changed rows.
        planner.transaction.finish(self.database()).await?;
        Ok(QueryResult::from_batches(schema, batches, sql))
    }

    /// The rows of a query that locks them.
    pub(in crate::session) async fn locked_rows(
        &self,
        planner: &StatementPlanner,
        mut locking: LockingQuery,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let mut statement = parsed_query(locking.query);
        planner.expand(&planner.state, &mut statement, &[]).await?;
        locking.query = match statement {
            Parsed::Statement(ast) => match *ast {
                Ast::Query(query) => query,
                _ => return not_of_tables(),
            },
            _ => return not_of_tables(),
        };
        let own = locking.query.clone();
        let tables = locking.add_ids(planner)?;
        let plan = locking.plan(planner, own).await?;
        let first_id = plan.schema().fields().len() - tables.len();
        let shown = shown_columns(&plan, first_id, &tables);
        let _waiting = cancel_token(&planner.state).cancel_on_drop();
        let found = match locking.wait {
            LockWait::SkipLocked => self.lock_free(planner, plan, first_id, &tables).await?,
            wait => {
                let found = self.find(planner, &plan, first_id).await?;
                lock_all(planner, &tables, &found, wait).await?;
                found
            }
        };
        let schema = Arc::new(found.schema.project(&shown)?);
        let batches = found.batches.iter().map(|batch| Ok(batch.project(&shown)?));
        Ok((schema, batches.collect::<Result<_>>()?))
    }

    async fn find(
        &self,
        planner: &StatementPlanner,
        plan: &LogicalPlan,
        first_id: usize,
    ) -> Result<FoundRows> {
        let physical = plan_physical(&planner.state, plan).await?;
        let schema = physical.schema();
        let batches = self.on_worker(collect(physical, planner.state.task_ctx())).await?;
        Ok(FoundRows { schema, batches, first_id })
    }

    /// Finds rows that no other transaction has locked, and locks them.
    async fn lock_free(
        &self,
        planner: &StatementPlanner,
        plan: LogicalPlan,
        first_id: usize,
        tables: &[LockedTable],
    ) -> Result<FoundRows> {
        let (plan, offset, limit) = without_limit(&planner.state, plan)?;
        let wanted = limit.map(|limit| limit.saturating_add(offset));
        let mut most = wanted.map(|wanted| wanted.saturating_mul(2).saturating_add(SPARE_ROWS));
        loop {
            let limited = LogicalPlanBuilder::from(plan.clone()).limit(0, most)?.build()?;
            let mut found = self.find(planner, &limited, first_id).await?;
            let rows: usize = found.batches.iter().map(RecordBatch::num_rows).sum();
            let locked = keep_free(planner, tables, &mut found, offset, wanted).await?;
            let is_all = most.is_none_or(|most| rows < most);
            if is_all || wanted.is_some_and(|wanted| locked >= wanted) {
                return Ok(found);
            }
            most = None;
        }
    }
}

/// Numbers of the query's own columns: without the ids, including the expansion of `*`.
fn shown_columns(plan: &LogicalPlan, first_id: usize, tables: &[LockedTable]) -> Vec<usize> {
    let is_id = |name: &str| {
        let name = name.trim_end_matches(FROM_SUBQUERY);
        tables.iter().any(|table| table.row_id == name)
    };
    let columns = plan.schema().iter().take(first_id).enumerate();
    let shown = columns
        .filter(|(_, (qualifier, field))| !(qualifier.is_some() && is_id(field.name().as_str())));
    shown.map(|(at, _)| at).collect()
}

/// A query without its LIMIT and OFFSET, and these.
fn without_limit(
    state: &SessionState,
    plan: LogicalPlan,
) -> Result<(LogicalPlan, usize, Option<usize>)> {
    let LogicalPlan::Limit(mut limit) = plan else { return Ok((plan, 0, None)) };
    let context = SimplifyContext::builder()
        .with_schema(Arc::clone(limit.input.schema()))
        .with_config_options(Arc::clone(state.config_options()))
        .build();
    let simplifier = ExprSimplifier::new(context);
    for number in [&mut limit.skip, &mut limit.fetch].into_iter().flatten() {
        if let PlanExpr::Literal(value, metadata) = simplifier.simplify(number.as_ref().clone())? {
            let value = value.cast_to(&DataType::Int64)?;
            **number = PlanExpr::Literal(value, metadata);
        }
    }
    match (limit.get_skip_type()?, limit.get_fetch_type()?) {
        (SkipType::Literal(skip), FetchType::Literal(fetch)) => {
            Ok((Arc::unwrap_or_clone(limit.input), skip, fetch))
        }
        _ => plan_err!("LIMIT and OFFSET with SKIP LOCKED take numbers"),
    }
}

impl FoundRows {
    /// The ids of a table's rows in a batch; NULL if an outer join found no row.
    fn ids<'a>(&self, batch: &'a RecordBatch, table: usize) -> &'a UInt64Array {
        batch.column(self.first_id + table).as_primitive::<UInt64Type>()
    }
}

/// Locks all rows that were found.
async fn lock_all(
    planner: &StatementPlanner,
    tables: &[LockedTable],
    found: &FoundRows,
    wait: LockWait,
) -> Result<()> {
    let mut transaction = planner.transaction.transaction.lock().await?;
    for (at, table) in tables.iter().enumerate() {
        let ids = found.batches.iter().flat_map(|batch| found.ids(batch, at)).flatten();
        let ids = ids.map(RowId::new).collect();
        lock(&mut transaction, table, ids, wait).await?;
    }
    Ok(())
}

/// Locks rows in their order until enough are locked, and keeps those that are free, after the first `offset`; how many
/// were locked.
async fn keep_free(
    planner: &StatementPlanner,
    tables: &[LockedTable],
    found: &mut FoundRows,
    offset: usize,
    wanted: Option<usize>,
) -> Result<usize> {
    let mut transaction = planner.transaction.transaction.lock().await?;
    let mut locked = 0;
    for at in 0..found.batches.len() {
        let batch = &found.batches[at];
        let mut kept = Vec::new();
        for row in 0..batch.num_rows() {
            if wanted.is_some_and(|wanted| locked >= wanted) {
                break;
            }
            let mut is_free = true;
            for (at, table) in tables.iter().enumerate() {
                let ids = found.ids(batch, at);
                let id = ids.is_valid(row).then(|| RowId::new(ids.value(row)));
                is_free = is_free && try_lock(&mut transaction, table, id).await?;
            }
            locked += usize::from(is_free);
            if is_free && locked > offset {
                kept.push(row as u64);
            }
        }
        found.batches[at] = take_record_batch(batch, &UInt64Array::from(kept))?;
    }
    Ok(locked)
}

/// Locks a row, if there is one, unless others hold it.
async fn try_lock(
    transaction: &mut Transaction,
    table: &LockedTable,
    id: Option<RowId>,
) -> Result<bool> {
    let Some(id) = id else { return Ok(true) };
    let locked = lock(transaction, table, vec![id], LockWait::SkipLocked).await?;
    Ok(!locked.is_empty())
}

/// Locks rows of a table; the rows that it locked.
async fn lock(
    transaction: &mut Transaction,
    table: &LockedTable,
    ids: Vec<RowId>,
    wait: LockWait,
) -> Result<Vec<RowId>> {
    let locked = transaction.lock_rows(table.table.id(), ids, table.mode, wait).await;
    match locked.map_err(transaction_error)? {
        LockedRows::Locked(rows) => Ok(rows),
        LockedRows::Stale => Err(StaleStatement::error()),
    }
}
