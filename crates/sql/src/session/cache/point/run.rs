//! Runs statements about one row by its key.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use atoll_store::RowId;
use atoll_store::database::DatabaseVersion;
use atoll_store::table::{Row, TableChange, TableVersion};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;

use super::StatementRun;
use super::compile::{KeyIndex, PointAction, PointPlan, PointSource};
use crate::session::Session;
use crate::session::statement::command_tag::StatementTag;
use crate::session::statement::query_result::QueryResult;
use crate::session::transaction::StatementTransaction;
use crate::table::{PlacedTable, StaleStatement, WriteRules, WriteTarget, count_batch};
use atoll_sql_common::error::table_error;

/// The change that a statement made.
#[derive(Default)]
struct PointChange {
    count: usize,
    change: TableChange,
    /// The existing row.
    row: Option<RowId>,
    /// The RETURNING rows.
    returned: Vec<RecordBatch>,
}

/// The rows with a key, and the values selected from them.
struct FoundRows {
    ids: Vec<RowId>,
    values: Vec<ArrayRef>,
}

/// Rows that a selection reads one by one, at most; it is planned if there are more.
const ROWS_MAX: usize = 100;

/// The values of the parameters, and their batch once an expression reads it.
pub(super) struct PointValues<'v> {
    pub(super) values: Cow<'v, [ScalarValue]>,
    schema: &'v SchemaRef,
    row: OnceLock<RecordBatch>,
}

impl<'v> PointValues<'v> {
    /// The given values, followed by those of the clock.
    fn new(plan: &'v PointPlan, session: &Session, given: &'v [ScalarValue]) -> Result<Self> {
        let values = match plan.clock.is_empty() {
            true => Cow::Borrowed(given),
            false => Cow::Owned([given, &plan.clock.values(session)?].concat()),
        };
        Ok(Self { values, schema: &plan.parameters, row: OnceLock::new() })
    }

    fn row(&self) -> Result<&RecordBatch> {
        if let Some(row) = self.row.get() {
            return Ok(row);
        }
        let row = batch(self.schema, arrays(&self.values)?, 1)?;
        Ok(self.row.get_or_init(|| row))
    }
}

impl StatementRun<'_> {
    /// Runs the plan; `None` if the table is not the one that it was made for.
    pub(super) async fn run_point(
        &self,
        plan: &PointPlan,
        values: &[ScalarValue],
    ) -> Result<Option<QueryResult>> {
        let values = PointValues::new(plan, self.session, values)?;
        if let PointAction::Select(_) = &plan.action
            && !self.session.is_in_transaction()
        {
            let version = self.session.database().store().published();
            return self.select(plan, &version, &values);
        }
        let transaction = self.session.statement_transaction()?;
        let result = self.run_numbered(plan, &transaction, values).await;
        if result.is_err() {
            transaction.fail_settled().await;
        }
        result
    }

    /// Runs the plan with these parameters and sequence numbers.
    async fn run_numbered(
        &self,
        plan: &PointPlan,
        transaction: &StatementTransaction,
        mut values: PointValues<'_>,
    ) -> Result<Option<QueryResult>> {
        let numbers = &plan.numbers;
        if !numbers.is_empty() {
            // No number is taken for a table that was replaced.
            let version = transaction.statement(true).await?;
            if plan.table_in(&version).is_none() {
                return Ok(None);
            }
            let numbers = numbers.values(self.session, &transaction.transaction).await?;
            values.values.to_mut().extend(numbers);
        }
        self.run_in(plan, transaction, &values).await
    }

    async fn run_in(
        &self,
        plan: &PointPlan,
        transaction: &StatementTransaction,
        values: &PointValues<'_>,
    ) -> Result<Option<QueryResult>> {
        let writes = !matches!(plan.action, PointAction::Select(_));
        loop {
            let version = transaction.statement(writes).await?;
            let Some(table) = plan.table_in(&version) else { return Ok(None) };
            if !writes {
                let Some(found) = find(plan, table, values)? else { return Ok(None) };
                // What a key of several rows finds depends on rows that are not there, too.
                let is_unique =
                    matches!(plan.source, PointSource::Key { index: KeyIndex::Unique(_), .. });
                let row = found.ids.first().copied().filter(|_| is_unique);
                self.settle(plan, transaction, row, values).await?;
                return self.selected(plan, found).map(Some);
            }
            match self.write(plan, table, transaction, values).await {
                Err(error) if StaleStatement::ended(&error) => {}
                Err(error) => return Err(error),
                Ok(PointChange { count, row, returned, .. }) => {
                    match transaction.is_own {
                        true => transaction.finish(self.session.database()).await?,
                        false => self.settle(plan, transaction, row, values).await?,
                    }
                    return self.wrote(plan, count, returned).map(Some);
                }
            }
        }
    }

    /// The result of a statement that wrote this many rows.
    fn wrote(
        &self,
        plan: &PointPlan,
        count: usize,
        returned: Vec<RecordBatch>,
    ) -> Result<QueryResult> {
        let words = match plan.action {
            PointAction::Select(_) => "SELECT",
            PointAction::Insert(_) => "INSERT 0",
            PointAction::Update(_) => "UPDATE",
            PointAction::Delete => "DELETE",
        };
        let sql = Arc::clone(self.sql);
        if let Some(list) = &plan.returning {
            let result = QueryResult::from_batches(Arc::clone(&list.schema), returned, sql);
            return Ok(result.tagged(StatementTag::returned(words)));
        }
        let count = count_batch(count)?;
        let result = QueryResult::from_batches(count.schema(), vec![count], sql);
        Ok(result.tagged(StatementTag::written(words)))
    }

    fn select(
        &self,
        plan: &PointPlan,
        version: &DatabaseVersion,
        values: &PointValues<'_>,
    ) -> Result<Option<QueryResult>> {
        let Some(table) = plan.table_in(version) else { return Ok(None) };
        let Some(found) = find(plan, table, values)? else { return Ok(None) };
        self.selected(plan, found).map(Some)
    }

    fn selected(&self, plan: &PointPlan, found: FoundRows) -> Result<QueryResult> {
        let schema = match &plan.action {
            PointAction::Select(schema) => schema,
            _ => return internal_err!("a statement that writes selects nothing"),
        };
        let FoundRows { ids, values } = found;
        let rows = match ids.is_empty() {
            true => Vec::new(),
            false => vec![batch(schema, values, ids.len())?],
        };
        Ok(QueryResult::from_batches(Arc::clone(schema), rows, Arc::clone(self.sql)))
    }

    /// Waits until everything that the result depends on is on disk: the row, if that is all; for a changed row, whose
    /// tag shows no value, its existence under its key.
    async fn settle(
        &self,
        plan: &PointPlan,
        transaction: &StatementTransaction,
        row: Option<RowId>,
        values: &PointValues<'_>,
    ) -> Result<()> {
        let depends_on_nothing = matches!(plan.source, PointSource::Rows(_));
        let tells_values =
            matches!(plan.action, PointAction::Select(_)) || plan.returning.is_some();
        let is_settled = match row {
            Some(row) => {
                transaction.transaction.lock().await?.is_settled_row(plan.table.id(), row)
                    || (!tells_values && self.is_on_disk(plan, row, values)?)
            }
            None => depends_on_nothing,
        };
        match is_settled && plan.keeps_keys {
            true => Ok(()),
            false => transaction.settle().await,
        }
    }

    /// Whether a row is on disk under the key by which it was found, perhaps with other values.
    fn is_on_disk(&self, plan: &PointPlan, row: RowId, values: &PointValues<'_>) -> Result<bool> {
        let on_disk = self.session.database().store().published();
        let found = plan.table_in(&on_disk).map(|table| find_id(plan, table, values));
        Ok(found.transpose()?.flatten() == Some(row))
    }

    /// Finds the row and writes.
    async fn write(
        &self,
        plan: &PointPlan,
        table: &Arc<TableVersion>,
        transaction: &StatementTransaction,
        values: &PointValues<'_>,
    ) -> Result<PointChange> {
        if let (PointAction::Insert(into), PointSource::Rows(rows)) = (&plan.action, &plan.source)
            && let Some(conflict) = &into.insert_target()?.rules.conflict
        {
            let rules = &into.insert_target()?.rules;
            let rows = rows.iter().map(|row| {
                let row = written(plan, row, values)?;
                rules.complete(&plan.table, row)
            });
            let rows = rows.collect::<Result<Vec<_>>>()?;
            let (database, rules) = (self.session.database().clone(), rules.clone());
            let transaction = transaction.transaction.clone();
            let target = WriteTarget { database, transaction, rules };
            let into = into.in_version(Arc::clone(table));
            let list = plan.returning.as_ref();
            let written = conflict.insert(&into, &target, &rows, list.is_some()).await?;
            let batches = written.rows.iter();
            let returned =
                list.map(|list| batches.map(|rows| list.of_batch(rows, values)).collect());
            let returned = returned.transpose()?.unwrap_or_default();
            return Ok(PointChange { count: written.count, returned, ..PointChange::default() });
        }
        let mut made = made(plan, table, values)?;
        if let (1.., Some(list)) = (made.count, &plan.returning) {
            made.returned = vec![list.of_rows(table, &made.rows(plan, table), values)?];
        }
        if made.count > 0 {
            let (database, rules) = (self.session.database().clone(), WriteRules::default());
            let transaction = transaction.transaction.clone();
            let change = std::mem::take(&mut made.change);
            WriteTarget { database, transaction, rules }.write(&plan.table, change).await?;
        }
        Ok(made)
    }
}

impl PointChange {
    /// The rows that RETURNING reads: old ones for DELETE, new ones otherwise.
    fn rows(&self, plan: &PointPlan, table: &TableVersion) -> Vec<Row> {
        match plan.action {
            PointAction::Delete => self.row.and_then(|id| table.row(id)).into_iter().collect(),
            _ => {
                self.change.inserted.values().chain(self.change.updated.values()).cloned().collect()
            }
        }
    }
}

/// The change that a statement makes.
fn made(plan: &PointPlan, table: &TableVersion, values: &PointValues<'_>) -> Result<PointChange> {
    let mut made = PointChange::default();
    match &plan.action {
        PointAction::Select(_) => {}
        PointAction::Insert(target) => {
            let rows = inserted(plan, target, table, values)?;
            let first = table.reserve(rows.len()).get();
            made.count = rows.len();
            made.change.inserted = (first..).map(RowId::new).zip(rows).collect();
        }
        PointAction::Update(changed) => {
            if let Some(id) = find_id(plan, table, values)? {
                let row = updated(plan, changed.target(), table, id, values)?;
                made.change.updated.insert(id, row);
                made.change.keeps_keys = plan.keeps_keys;
                (made.count, made.row) = (1, Some(id));
            }
        }
        PointAction::Delete => {
            if let Some(id) = find_id(plan, table, values)? {
                made.count = usize::from(made.change.deleted.insert(id.get()));
                made.row = Some(id);
            }
        }
    }
    Ok(made)
}

/// The rows of an INSERT.
fn inserted(
    plan: &PointPlan,
    target: &PlacedTable,
    table: &TableVersion,
    values: &PointValues<'_>,
) -> Result<Vec<Row>> {
    let PointSource::Rows(rows) = &plan.source else { return Ok(Vec::new()) };
    if let Some(rows) = plan.scalars.as_ref().and_then(|plan| plan.inserted(&values.values)) {
        return Ok(rows);
    }
    let mut made = Vec::with_capacity(rows.len());
    for row in rows {
        let row = checked(plan, evaluated(row, values.row()?)?, target.insert_target()?)?;
        made.extend(table.codec().encode(&row).map_err(table_error)?);
    }
    Ok(made)
}

/// The updated values of a row.
fn updated(
    plan: &PointPlan,
    target: &WriteTarget,
    table: &TableVersion,
    id: RowId,
    values: &PointValues<'_>,
) -> Result<Row> {
    let scalars = plan.scalars.as_ref();
    if let Some(row) = scalars.and_then(|plan| plan.updated(table, id, &values.values)) {
        return Ok(row);
    }
    let row = checked(plan, read(plan, table, &[id], values)?, target)?;
    let rows = table.codec().encode(&row).map_err(table_error)?;
    rows.into_iter().next().ok_or_else(|| internal_datafusion_err!("the row was lost"))
}

/// A row that a statement lists.
fn written(
    plan: &PointPlan,
    row: &[Arc<dyn PhysicalExpr>],
    values: &PointValues<'_>,
) -> Result<RecordBatch> {
    batch(&plan.written, evaluated(row, values.row()?)?, 1)
}

/// A row of the table that satisfies its declarations.
fn checked(plan: &PointPlan, values: Vec<ArrayRef>, target: &WriteTarget) -> Result<RecordBatch> {
    target.rules.complete(&plan.table, batch(&plan.written, values, 1)?)
}

/// The rows that the parameters identify, with the selected values; `None` if they are many.
fn find(
    plan: &PointPlan,
    table: &TableVersion,
    values: &PointValues<'_>,
) -> Result<Option<FoundRows>> {
    let ids = match &plan.source {
        PointSource::Key { index: KeyIndex::Ordered(index), key, .. } => {
            let key = evaluated(key, values.row()?)?;
            table.rows_with(*index, &key, ROWS_MAX).map_err(table_error)?
        }
        _ => Some(find_id(plan, table, values)?.into_iter().collect()),
    };
    let Some(ids) = ids else { return Ok(None) };
    let values = match ids.is_empty() {
        true => Vec::new(),
        false => read(plan, table, &ids, values)?,
    };
    Ok(Some(FoundRows { ids, values }))
}

/// The row that the parameters identify.
fn find_id(
    plan: &PointPlan,
    table: &TableVersion,
    values: &PointValues<'_>,
) -> Result<Option<RowId>> {
    let PointSource::Key { index: KeyIndex::Unique(unique), key, .. } = &plan.source else {
        return Ok(None);
    };
    if let Some(key) = plan.scalars.as_ref().and_then(|plan| plan.key(&values.values)) {
        return Ok(key.and_then(|key| table.find(*unique, &key)));
    }
    let key = evaluated(key, values.row()?)?;
    let key_columns = &table.definition().uniques[*unique].columns;
    let keys = table.codec().keys_of_values(key_columns, &key).map_err(table_error)?;
    Ok(keys.first().and_then(|key| table.find(*unique, key.as_ref()?)))
}

/// The values selected from rows.
fn read(
    plan: &PointPlan,
    table: &TableVersion,
    ids: &[RowId],
    parameters: &PointValues<'_>,
) -> Result<Vec<ArrayRef>> {
    let PointSource::Key { columns, row, values, .. } = &plan.source else {
        return Ok(Vec::new());
    };
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let mut read = table.read(ids, columns).map_err(table_error)?;
    if let Some(taken) = taken(values, read.len()) {
        return Ok(taken.map(|at| Arc::clone(&read[at])).collect());
    }
    let parameters = parameters.row()?;
    for at in 0..parameters.num_columns() {
        read.push(match ids.len() {
            1 => Arc::clone(parameters.column(at)),
            rows => {
                ScalarValue::try_from_array(parameters.column(at), 0)?.to_array_of_size(rows)?
            }
        });
    }
    evaluated(values, &batch(row, read, ids.len())?)
}

/// The columns that expressions take unchanged, from the first ones of a row; `None` if one does more.
pub(super) fn taken(
    values: &[Arc<dyn PhysicalExpr>],
    columns: usize,
) -> Option<impl Iterator<Item = usize> + '_> {
    let column = |value: &Arc<dyn PhysicalExpr>| value.downcast_ref::<Column>().map(Column::index);
    let are_taken = values.iter().all(|value| column(value).is_some_and(|at| at < columns));
    are_taken.then(|| values.iter().filter_map(column))
}

pub(super) fn arrays(values: &[ScalarValue]) -> Result<Vec<ArrayRef>> {
    values.iter().map(ScalarValue::to_array).collect()
}

/// A batch of rows, under a known schema.
fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn evaluated(exprs: &[Arc<dyn PhysicalExpr>], row: &RecordBatch) -> Result<Vec<ArrayRef>> {
    exprs.iter().map(|expr| expr.evaluate(row)?.into_array(row.num_rows())).collect()
}
