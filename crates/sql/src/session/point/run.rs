//! Running a statement about one row by its key.

use std::sync::Arc;

use atoll_store::RowId;
use atoll_store::database::DatabaseVersion;
use atoll_store::table::{TableChange, TableVersion};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::physical_expr::PhysicalExpr;

use super::compile::{PointAction, PointPlan, PointSource};
use super::{PlannedPoint, PreparedStatement};
use crate::error::table_error;
use crate::session::execute::QueryResult;
use crate::session::tag::StatementTag;
use crate::session::transaction::StatementTransaction;
use crate::table::{PlacedTable, StaleStatement, WriteRules, WriteTarget, count_batch};

/// What a statement wrote.
#[derive(Default)]
struct PointChange {
    count: usize,
    change: TableChange,
    /// The row that was there.
    row: Option<RowId>,
}

/// The row with a key, and the values that are wanted of it.
struct FoundRow {
    id: RowId,
    values: Vec<ArrayRef>,
}

impl PreparedStatement {
    /// Runs the plan; none where the table is not the one that it was made for.
    pub(super) async fn run_point(
        &self,
        point: &PlannedPoint,
        values: &[ScalarValue],
    ) -> Result<Option<QueryResult>> {
        let mut columns = arrays(values)?;
        columns.extend(arrays(&point.clock.values(&self.session)?)?);
        let parameters = batch(&point.plan.parameters, columns)?;
        if let PointAction::Select(_) = &point.plan.action
            && !self.session.is_in_transaction()
        {
            let version = self.session.database().store().published();
            return self.select(point, &version, &parameters);
        }
        let transaction = self.session.statement_transaction()?;
        let result = self.run_in(point, &transaction, &parameters).await;
        if result.is_err() {
            transaction.failure.tell();
        }
        result
    }

    async fn run_in(
        &self,
        point: &PlannedPoint,
        transaction: &StatementTransaction,
        parameters: &RecordBatch,
    ) -> Result<Option<QueryResult>> {
        let writes = !matches!(point.plan.action, PointAction::Select(_));
        loop {
            let version = transaction.statement(writes).await?;
            let Some(table) = point.table_in(&version) else { return Ok(None) };
            if !writes {
                let found = find(&point.plan, table, parameters)?;
                let row = found.as_ref().map(|row| row.id);
                self.settle(point, transaction, row).await?;
                return self.selected(point, found).map(Some);
            }
            match self.write(&point.plan, table, transaction, parameters).await {
                Err(error) if StaleStatement::ended(&error) => {}
                Err(error) => return Err(error),
                Ok(PointChange { count, row, .. }) => {
                    match transaction.is_own {
                        true => transaction.finish(self.session.database()).await?,
                        false => self.settle(point, transaction, row).await?,
                    }
                    let count = count_batch(count)?;
                    let words = match point.plan.action {
                        PointAction::Select(_) => "SELECT",
                        PointAction::Insert(_) => "INSERT 0",
                        PointAction::Update(_) => "UPDATE",
                        PointAction::Delete => "DELETE",
                    };
                    let sql = Arc::clone(&self.sql);
                    let result = QueryResult::of(count.schema(), vec![count], sql);
                    return Ok(Some(result.tagged(StatementTag::written(words))));
                }
            }
        }
    }

    fn select(
        &self,
        point: &PlannedPoint,
        version: &DatabaseVersion,
        parameters: &RecordBatch,
    ) -> Result<Option<QueryResult>> {
        let Some(table) = point.table_in(version) else { return Ok(None) };
        self.selected(point, find(&point.plan, table, parameters)?).map(Some)
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

    /// Waits until what the answer depends on is on disk: the row, where it is the only thing.
    async fn settle(
        &self,
        point: &PlannedPoint,
        transaction: &StatementTransaction,
        row: Option<RowId>,
    ) -> Result<()> {
        let depends_on_nothing = matches!(point.plan.source, PointSource::Rows(_));
        let is_settled = match row {
            Some(row) => transaction.transaction.lock().await?.is_settled_row(point.table, row),
            None => depends_on_nothing,
        };
        match is_settled && point.plan.keeps_keys {
            true => Ok(()),
            false => transaction.settle().await,
        }
    }

    /// Writes, after it has found what.
    async fn write(
        &self,
        plan: &PointPlan,
        table: &TableVersion,
        transaction: &StatementTransaction,
        parameters: &RecordBatch,
    ) -> Result<PointChange> {
        let mut made = made(plan, table, parameters)?;
        if made.count > 0 {
            let (database, rules) = (self.session.database().clone(), WriteRules::default());
            let transaction = transaction.transaction.clone();
            let change = std::mem::take(&mut made.change);
            WriteTarget { database, transaction, rules }.write(&plan.table, change).await?;
        }
        Ok(made)
    }
}

/// The change that a statement makes.
fn made(plan: &PointPlan, table: &TableVersion, parameters: &RecordBatch) -> Result<PointChange> {
    let mut made = PointChange::default();
    match &plan.action {
        PointAction::Select(_) => {}
        PointAction::Insert(target) => {
            made.count = insert(plan, target, table, parameters, &mut made.change)?;
        }
        PointAction::Update(changed) => {
            if let Some(FoundRow { id, values }) = find(plan, table, parameters)? {
                let row = checked(plan, values, changed.target())?;
                let rows = table.codec().encode(&row).map_err(table_error)?;
                made.change.updated.extend(rows.into_iter().map(|row| (id, row)));
                (made.count, made.row) = (1, Some(id));
            }
        }
        PointAction::Delete => {
            if let Some(row) = find(plan, table, parameters)? {
                made.count = usize::from(made.change.deleted.insert(row.id.get()));
                made.row = Some(row.id);
            }
        }
    }
    Ok(made)
}

impl PlannedPoint {
    /// The table as it is in a version; none where it is declared otherwise.
    pub(super) fn table_in<'v>(&self, version: &'v DatabaseVersion) -> Option<&'v TableVersion> {
        let table = version.table(self.table)?;
        Arc::ptr_eq(table.definition(), &self.definition).then_some(table)
    }
}

fn insert(
    plan: &PointPlan,
    target: &PlacedTable,
    table: &TableVersion,
    parameters: &RecordBatch,
    change: &mut TableChange,
) -> Result<usize> {
    let PointSource::Rows(rows) = &plan.source else { return Ok(0) };
    let mut next = table.reserve(rows.len()).get();
    for row in rows {
        let row = checked(plan, evaluated(row, parameters)?, target.insert_target()?)?;
        for row in table.codec().encode(&row).map_err(table_error)? {
            change.inserted.insert(RowId::new(next), row);
            next += 1;
        }
    }
    Ok(rows.len())
}

/// A row of the table that obeys what is declared.
fn checked(plan: &PointPlan, values: Vec<ArrayRef>, target: &WriteTarget) -> Result<RecordBatch> {
    target.rules.complete(&plan.table, batch(&plan.written, values)?)
}

/// The row that the parameters name.
fn find(
    plan: &PointPlan,
    table: &TableVersion,
    parameters: &RecordBatch,
) -> Result<Option<FoundRow>> {
    let PointSource::Key { unique, key, columns, row, values } = &plan.source else {
        return Ok(None);
    };
    let key = evaluated(key, parameters)?;
    let key_columns = &table.definition().uniques[*unique].columns;
    let keys = table.codec().keys_of_values(key_columns, &key).map_err(table_error)?;
    let Some(id) = keys.first().and_then(|key| table.find(*unique, key.as_ref()?)) else {
        return Ok(None);
    };
    if values.is_empty() {
        return Ok(Some(FoundRow { id, values: Vec::new() }));
    }
    let mut read = table.read(&[id], columns).map_err(table_error)?;
    read.extend(parameters.columns().iter().cloned());
    Ok(Some(FoundRow { id, values: evaluated(values, &batch(row, read)?)? }))
}

pub(super) fn arrays(values: &[ScalarValue]) -> Result<Vec<ArrayRef>> {
    values.iter().map(ScalarValue::to_array).collect()
}

/// One row of these values.
pub(crate) fn one_row(columns: &[ArrayRef]) -> Result<RecordBatch> {
    let fields = columns.iter().map(|column| Field::new("", column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    batch(&schema, columns.to_vec())
}

/// One row of these values, under a schema that is known.
fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn evaluated(exprs: &[Arc<dyn PhysicalExpr>], row: &RecordBatch) -> Result<Vec<ArrayRef>> {
    exprs.iter().map(|expr| expr.evaluate(row)?.into_array(1)).collect()
}
