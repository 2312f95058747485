//! Running a statement about one row by its key.

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

use super::compile::{PointAction, PointPlan, PointSource};
use super::{PlannedPoint, PreparedStatement};
use crate::session::Session;
use crate::session::statement::command_tag::StatementTag;
use crate::session::statement::query_result::QueryResult;
use crate::session::transaction::StatementTransaction;
use crate::table::{PlacedTable, StaleStatement, WriteRules, WriteTarget, count_batch};
use atoll_sql_common::error::table_error;

/// What a statement wrote.
#[derive(Default)]
struct PointChange {
    count: usize,
    change: TableChange,
    /// The row that was there.
    row: Option<RowId>,
    /// What RETURNING selects.
    returned: Vec<RecordBatch>,
}

/// The row with a key, and the values that are wanted of it.
struct FoundRow {
    id: RowId,
    values: Vec<ArrayRef>,
}

/// The values of the parameters, and the same as expressions read them, once one does.
pub(super) struct PointValues<'v> {
    pub(super) values: Cow<'v, [ScalarValue]>,
    schema: &'v SchemaRef,
    row: OnceLock<RecordBatch>,
}

impl<'v> PointValues<'v> {
    /// The given values, and behind them those of the clock.
    fn new(point: &'v PlannedPoint, session: &Session, given: &'v [ScalarValue]) -> Result<Self> {
        let values = match point.clock.is_empty() {
            true => Cow::Borrowed(given),
            false => Cow::Owned([given, &point.clock.values(session)?].concat()),
        };
        Ok(Self { values, schema: &point.plan.parameters, row: OnceLock::new() })
    }

    fn row(&self) -> Result<&RecordBatch> {
        if let Some(row) = self.row.get() {
            return Ok(row);
        }
        let row = batch(self.schema, arrays(&self.values)?)?;
        Ok(self.row.get_or_init(|| row))
    }
}

impl PreparedStatement {
    /// Runs the plan; none where the table is not the one that it was made for.
    pub(super) async fn run_point(
        &self,
        point: &PlannedPoint,
        values: &[ScalarValue],
    ) -> Result<Option<QueryResult>> {
        let values = PointValues::new(point, &self.session, values)?;
        if let PointAction::Select(_) = &point.plan.action
            && !self.session.is_in_transaction()
        {
            let version = self.session.database().store().published();
            return self.select(point, &version, &values);
        }
        let transaction = self.session.statement_transaction()?;
        let result = self.run_numbered(point, &transaction, values).await;
        if result.is_err() {
            transaction.fail_settled().await;
        }
        result
    }

    /// Runs the plan with these parameters, and with the numbers of sequences that it asks for.
    async fn run_numbered(
        &self,
        point: &PlannedPoint,
        transaction: &StatementTransaction,
        mut values: PointValues<'_>,
    ) -> Result<Option<QueryResult>> {
        let numbers = &point.plan.numbers;
        if !numbers.is_empty() {
            // None are given for a table that is another one by now.
            let version = transaction.statement(true).await?;
            if point.table_in(&version).is_none() {
                return Ok(None);
            }
            let numbers = numbers.values(&self.session, &transaction.transaction).await?;
            values.values.to_mut().extend(numbers);
        }
        self.run_in(point, transaction, &values).await
    }

    async fn run_in(
        &self,
        point: &PlannedPoint,
        transaction: &StatementTransaction,
        values: &PointValues<'_>,
    ) -> Result<Option<QueryResult>> {
        let writes = !matches!(point.plan.action, PointAction::Select(_));
        loop {
            let version = transaction.statement(writes).await?;
            let Some(table) = point.table_in(&version) else { return Ok(None) };
            if !writes {
                let found = find(&point.plan, table, values)?;
                let row = found.as_ref().map(|row| row.id);
                self.settle(point, transaction, row, values).await?;
                return self.selected(point, found).map(Some);
            }
            match self.write(&point.plan, table, transaction, values).await {
                Err(error) if StaleStatement::ended(&error) => {}
                Err(error) => return Err(error),
                Ok(PointChange { count, row, returned, .. }) => {
                    match transaction.is_own {
                        true => transaction.finish(self.session.database()).await?,
                        false => self.settle(point, transaction, row, values).await?,
                    }
                    return self.wrote(&point.plan, count, returned).map(Some);
                }
            }
        }
    }

    /// The answer of a statement that wrote so many rows.
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
        let sql = Arc::clone(&self.sql);
        if let Some(list) = &plan.returning {
            let result = QueryResult::of(Arc::clone(&list.schema), returned, sql);
            return Ok(result.tagged(StatementTag::returned(words)));
        }
        let count = count_batch(count)?;
        let result = QueryResult::of(count.schema(), vec![count], sql);
        Ok(result.tagged(StatementTag::written(words)))
    }

    fn select(
        &self,
        point: &PlannedPoint,
        version: &DatabaseVersion,
        values: &PointValues<'_>,
    ) -> Result<Option<QueryResult>> {
        let Some(table) = point.table_in(version) else { return Ok(None) };
        self.selected(point, find(&point.plan, table, values)?).map(Some)
    }

    fn selected(&self, point: &PlannedPoint, found: Option<FoundRow>) -> Result<QueryResult> {
        let schema = match &point.plan.action {
            PointAction::Select(schema) => schema,
            _ => return internal_err!("a statement that writes selects nothing"),
        };
        let rows = found.map(|row| batch(schema, row.values)).transpose()?;
        let rows = rows.into_iter().collect();
        Ok(QueryResult::of(Arc::clone(schema), rows, Arc::clone(&self.sql)))
    }

    /// Waits until what the answer depends on is on disk: the row, where it is the only thing; of a row that is changed,
    /// whose tag tells no value, that it is there under its key.
    async fn settle(
        &self,
        point: &PlannedPoint,
        transaction: &StatementTransaction,
        row: Option<RowId>,
        values: &PointValues<'_>,
    ) -> Result<()> {
        let depends_on_nothing = matches!(point.plan.source, PointSource::Rows(_));
        let tells_values =
            matches!(point.plan.action, PointAction::Select(_)) || point.plan.returning.is_some();
        let is_settled = match row {
            Some(row) => {
                transaction.transaction.lock().await?.is_settled_row(point.table, row)
                    || (!tells_values && self.is_on_disk(point, row, values)?)
            }
            None => depends_on_nothing,
        };
        match is_settled && point.plan.keeps_keys {
            true => Ok(()),
            false => transaction.settle().await,
        }
    }

    /// Whether a row is on disk under the key by which it was found, perhaps with other values.
    fn is_on_disk(
        &self,
        point: &PlannedPoint,
        row: RowId,
        values: &PointValues<'_>,
    ) -> Result<bool> {
        let on_disk = self.session.database().store().published();
        let found = point.table_in(&on_disk).map(|table| find_id(&point.plan, table, values));
        Ok(found.transpose()?.flatten() == Some(row))
    }

    /// Writes, after it has found what.
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
    /// The rows as RETURNING reads them: those of a DELETE as they were, all others as they are afterwards.
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

impl PlannedPoint {
    /// The table as it is in a version; none where it is declared otherwise.
    pub(super) fn table_in<'v>(
        &self,
        version: &'v DatabaseVersion,
    ) -> Option<&'v Arc<TableVersion>> {
        let table = version.table(self.table)?;
        Arc::ptr_eq(table.definition(), &self.definition).then_some(table)
    }
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

/// What an UPDATE makes of a row.
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
    let row = checked(plan, read(plan, table, id, values)?, target)?;
    let rows = table.codec().encode(&row).map_err(table_error)?;
    rows.into_iter().next().ok_or_else(|| internal_datafusion_err!("no row is made of one"))
}

/// A row that a statement lists.
fn written(
    plan: &PointPlan,
    row: &[Arc<dyn PhysicalExpr>],
    values: &PointValues<'_>,
) -> Result<RecordBatch> {
    batch(&plan.written, evaluated(row, values.row()?)?)
}

/// A row of the table that obeys what is declared.
fn checked(plan: &PointPlan, values: Vec<ArrayRef>, target: &WriteTarget) -> Result<RecordBatch> {
    target.rules.complete(&plan.table, batch(&plan.written, values)?)
}

/// The row that the parameters name, with what is wanted of it.
fn find(
    plan: &PointPlan,
    table: &TableVersion,
    values: &PointValues<'_>,
) -> Result<Option<FoundRow>> {
    let Some(id) = find_id(plan, table, values)? else { return Ok(None) };
    Ok(Some(FoundRow { id, values: read(plan, table, id, values)? }))
}

/// The row that the parameters name.
fn find_id(
    plan: &PointPlan,
    table: &TableVersion,
    values: &PointValues<'_>,
) -> Result<Option<RowId>> {
    let PointSource::Key { unique, key, .. } = &plan.source else { return Ok(None) };
    if let Some(key) = plan.scalars.as_ref().and_then(|plan| plan.key(&values.values)) {
        return Ok(key.and_then(|key| table.find(*unique, &key)));
    }
    let key = evaluated(key, values.row()?)?;
    let key_columns = &table.definition().uniques[*unique].columns;
    let keys = table.codec().keys_of_values(key_columns, &key).map_err(table_error)?;
    Ok(keys.first().and_then(|key| table.find(*unique, key.as_ref()?)))
}

/// What is wanted of a row.
fn read(
    plan: &PointPlan,
    table: &TableVersion,
    id: RowId,
    parameters: &PointValues<'_>,
) -> Result<Vec<ArrayRef>> {
    let PointSource::Key { columns, row, values, .. } = &plan.source else {
        return Ok(Vec::new());
    };
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let mut read = table.read(&[id], columns).map_err(table_error)?;
    if let Some(taken) = taken(values, read.len()) {
        return Ok(taken.map(|at| Arc::clone(&read[at])).collect());
    }
    read.extend(parameters.row()?.columns().iter().cloned());
    evaluated(values, &batch(row, read)?)
}

/// The columns that expressions take as they are, of the first ones of a row; none where one does more.
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

/// One row of these values, under a schema that is known.
fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn evaluated(exprs: &[Arc<dyn PhysicalExpr>], row: &RecordBatch) -> Result<Vec<ArrayRef>> {
    exprs.iter().map(|expr| expr.evaluate(row)?.into_array(1)).collect()
}
