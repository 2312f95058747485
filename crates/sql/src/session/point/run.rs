//! Running a statement about one row by its key.

use std::sync::Arc;

use atoll_store::RowId;
use atoll_store::database::DatabaseVersion;
use atoll_store::table::{TableChange, TableVersion};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;

use super::compile::{PointAction, PointPlan, PointSource};
use super::{PlannedPoint, PreparedStatement, done};
use crate::session::execute::QueryResult;
use crate::session::transaction::StatementTransaction;
use crate::table::{
    PlacedTable, StaleStatement, WriteRules, WriteTarget, count_batch, table_error,
};

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
        let parameters = arrays(values)?;
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
        parameters: &[ArrayRef],
    ) -> Result<Option<QueryResult>> {
        let writes = !matches!(point.plan.action, PointAction::Select(_));
        loop {
            let version = transaction.statement(writes).await?;
            if !writes {
                transaction.settle().await?;
                return self.select(point, &version, parameters);
            }
            let Some(table) = point.table_in(&version) else { return Ok(None) };
            match self.write(&point.plan, table, transaction, parameters).await {
                Err(error) if StaleStatement::ended(&error) => {}
                Err(error) => return Err(error),
                Ok(count) => {
                    transaction.finish(self.session.database()).await?;
                    let count = count_batch(count)?;
                    return Ok(Some(done(count.schema(), vec![count], &self.sql)));
                }
            }
        }
    }

    fn select(
        &self,
        point: &PlannedPoint,
        version: &DatabaseVersion,
        parameters: &[ArrayRef],
    ) -> Result<Option<QueryResult>> {
        let Some(table) = point.table_in(version) else { return Ok(None) };
        let PointAction::Select(schema) = &point.plan.action else { return Ok(None) };
        let rows = match find(&point.plan, table, parameters)? {
            Some(row) => {
                let options = RecordBatchOptions::new().with_row_count(Some(1));
                let schema = Arc::clone(schema);
                vec![RecordBatch::try_new_with_options(schema, row.values, &options)?]
            }
            None => Vec::new(),
        };
        Ok(Some(done(Arc::clone(schema), rows, &self.sql)))
    }

    /// Writes; how many rows.
    async fn write(
        &self,
        plan: &PointPlan,
        table: &TableVersion,
        transaction: &StatementTransaction,
        parameters: &[ArrayRef],
    ) -> Result<usize> {
        let mut change = TableChange::default();
        let count = match &plan.action {
            PointAction::Select(_) => 0,
            PointAction::Insert(target) => insert(plan, target, table, parameters, &mut change)?,
            PointAction::Update(changed) => match find(plan, table, parameters)? {
                Some(FoundRow { id, values }) => {
                    let row = checked(&plan.table, values, changed.target())?;
                    let rows = table.codec().encode(&row).map_err(table_error)?;
                    change.updated.extend(rows.into_iter().map(|row| (id, row)));
                    1
                }
                None => 0,
            },
            PointAction::Delete => match find(plan, table, parameters)? {
                Some(row) => usize::from(change.deleted.insert(row.id.get())),
                None => 0,
            },
        };
        if count > 0 {
            let (database, rules) = (self.session.database().clone(), WriteRules::default());
            let transaction = transaction.transaction.clone();
            WriteTarget { database, transaction, rules }.write(&plan.table, change).await?;
        }
        Ok(count)
    }
}

impl PlannedPoint {
    /// The table as it is in a version; none where it is declared otherwise.
    fn table_in<'v>(&self, version: &'v DatabaseVersion) -> Option<&'v TableVersion> {
        let table = version.table(self.table)?;
        Arc::ptr_eq(table.definition(), &self.definition).then_some(table)
    }
}

fn insert(
    plan: &PointPlan,
    target: &PlacedTable,
    table: &TableVersion,
    parameters: &[ArrayRef],
    change: &mut TableChange,
) -> Result<usize> {
    let PointSource::Rows(rows) = &plan.source else { return Ok(0) };
    let parameters = one_row(parameters)?;
    let mut next = table.reserve(rows.len()).get();
    for row in rows {
        let row = checked(&plan.table, evaluated(row, &parameters)?, target.insert_target()?)?;
        for row in table.codec().encode(&row).map_err(table_error)? {
            change.inserted.insert(RowId::new(next), row);
            next += 1;
        }
    }
    Ok(rows.len())
}

/// A row of the table that obeys what is declared.
fn checked(
    table: &PlacedTable,
    values: Vec<ArrayRef>,
    target: &WriteTarget,
) -> Result<RecordBatch> {
    let row = RecordBatch::try_new(table.written_schema(), values)?;
    table.check_nulls(&row)?;
    target.rules.check(table.name(), &row)?;
    Ok(row)
}

/// The row that the parameters name.
fn find(
    plan: &PointPlan,
    table: &TableVersion,
    parameters: &[ArrayRef],
) -> Result<Option<FoundRow>> {
    let PointSource::Key { unique, key, values } = &plan.source else { return Ok(None) };
    let key = evaluated(key, &one_row(parameters)?)?;
    let columns = &table.definition().uniques[*unique].columns;
    let keys = table.codec().keys_of_values(columns, &key).map_err(table_error)?;
    let found = keys.first().and_then(|key| table.find(*unique, key.as_ref()?));
    let Some((id, row)) = found.and_then(|id| Some((id, table.row(id)?))) else { return Ok(None) };
    if values.is_empty() {
        return Ok(Some(FoundRow { id, values: Vec::new() }));
    }
    let row = table.codec().decode(&[row]).map_err(table_error)?;
    let mut columns = row.columns().to_vec();
    if let PointAction::Update(_) | PointAction::Delete = &plan.action {
        // The column of ids, which no value reads.
        columns.push(Arc::new(datafusion::arrow::array::UInt64Array::from(vec![id.get()])));
    }
    columns.extend(parameters.iter().cloned());
    Ok(Some(FoundRow { id, values: evaluated(values, &one_row(&columns)?)? }))
}

pub(super) fn arrays(values: &[ScalarValue]) -> Result<Vec<ArrayRef>> {
    values.iter().map(ScalarValue::to_array).collect()
}

/// One row of these values.
pub(crate) fn one_row(columns: &[ArrayRef]) -> Result<RecordBatch> {
    let fields = columns.iter().map(|column| Field::new("", column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    Ok(RecordBatch::try_new_with_options(schema, columns.to_vec(), &options)?)
}

fn evaluated(exprs: &[Arc<dyn PhysicalExpr>], row: &RecordBatch) -> Result<Vec<ArrayRef>> {
    exprs.iter().map(|expr| expr.evaluate(row)?.into_array(1)).collect()
}
