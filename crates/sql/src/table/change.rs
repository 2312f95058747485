//! DELETE and UPDATE: the rows found by their query are deleted or get other values.
//!
//! ```text
//! query over a ChangedTable ─▶ ids, new values ─▶ ChangeRows ─▶ ids, new rows ─▶ transaction
//!   (with row ids)
//! ```

use std::sync::Arc;
use std::{fmt, iter};

use async_trait::async_trait;
use atoll_store::RowId;
use atoll_store::table::TableChange;
use datafusion::arrow::array::{AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::{cast, concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{Schema, SchemaRef, UInt64Type};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::Distribution;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use futures::future::BoxFuture;
use roaring::RoaringTreemap;

use super::PlacedTable;
use super::target::WriteTarget;
use super::update::{NewValues, updated};
use super::write::{TableWrite, WriteExec, WrittenBatches};
use atoll_sql_common::error::table_error;
use atoll_sql_common::names::row_id_field;

/// The name of the row id column, with as many apostrophes appended as make it the only column of that name.
const ROW_ID: &str = "row id";

/// The change of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// They are deleted.
    Delete,
    /// They get the values that follow their ids, one for each column.
    Update,
}

/// A table whose rows are about to be changed: its columns, and the id of each row.
#[derive(Clone, Debug)]
pub(crate) struct ChangedTable {
    table: PlacedTable,
    kind: ChangeKind,
    /// Name of the column of ids, the last one.
    row_id: String,
    schema: SchemaRef,
    target: Arc<WriteTarget>,
}

impl ChangedTable {
    /// The table as the target of a change.
    pub(crate) fn new(table: PlacedTable, kind: ChangeKind, target: WriteTarget) -> Self {
        Self::with_ids(table, kind, target, ROW_ID.to_owned())
    }

    /// The table as one of several whose rows a query locks: the id column has a unique name, so that no NATURAL JOIN
    /// compares it.
    pub(crate) fn locked(table: PlacedTable, target: WriteTarget, number: usize) -> Self {
        Self::with_ids(table, ChangeKind::Delete, target, format!("{ROW_ID} {number}"))
    }

    fn with_ids(
        table: PlacedTable,
        kind: ChangeKind,
        target: WriteTarget,
        mut row_id: String,
    ) -> Self {
        while table.schema.index_of(&row_id).is_ok() {
            row_id.push('\'');
        }
        let last = row_id_field(&row_id);
        let schema = Schema::new(table.nullable_fields().chain([last]).collect::<Vec<_>>());
        Self { table, kind, row_id, schema: Arc::new(schema), target: Arc::new(target) }
    }

    /// Same as [`PlacedTable::without_rows`].
    pub(crate) fn without_rows(&self) -> Result<Self> {
        Ok(Self { table: self.table.without_rows()?, ..self.clone() })
    }

    /// Name of the column of ids.
    pub(crate) fn row_id(&self) -> &str {
        &self.row_id
    }

    /// The change of the rows.
    pub(crate) fn kind(&self) -> ChangeKind {
        self.kind
    }

    /// The table.
    pub(crate) fn table(&self) -> &PlacedTable {
        &self.table
    }

    /// The target of its rows.
    pub(crate) fn target(&self) -> &WriteTarget {
        &self.target
    }

    /// Changes rows whose ids, and new values, were found in a version of the table, and returns their number.
    ///
    /// # Errors
    /// The errors of [`WriteTarget::write`].
    pub(crate) async fn change_found(
        &self,
        table: PlacedTable,
        found: &[RecordBatch],
        target: &WriteTarget,
    ) -> Result<usize> {
        let mut rows = FoundRows::new(table, self.kind);
        for batch in found {
            rows.take(batch, &self.target)?;
        }
        Ok(rows.write(target, None).await?.count)
    }

    /// Changes the rows whose ids, and new values, are the input. With `returns`, the table's columns followed by the
    /// other columns of the input, it returns the rows, else their number.
    pub(crate) fn change_exec(
        &self,
        input: Arc<dyn ExecutionPlan>,
        returns: Option<SchemaRef>,
    ) -> Arc<dyn ExecutionPlan> {
        let (table, target) = (self.table.clone(), Arc::clone(&self.target));
        let change = ChangeRows { table, kind: self.kind, target, returns: returns.clone() };
        Arc::new(WriteExec::new(Arc::new(change), input, returns))
    }
}

#[async_trait]
impl TableProvider for ChangedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let last = self.schema.fields().len() - 1;
        let mut columns = projection.cloned().unwrap_or_else(|| (0..=last).collect());
        let has_ids = columns.last() == Some(&last);
        columns.truncate(columns.len() - usize::from(has_ids));
        if columns.contains(&last) {
            return internal_err!("ids of rows are not the last column");
        }
        let ids = has_ids.then_some(self.row_id.as_str());
        self.table.read(state, Some(&columns), filters, limit, ids)
    }

    /// Changes the rows whose ids, and new values, are the input.
    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        _: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.change_exec(input, None))
    }
}

/// Changes the rows of a table whose ids are the input's first column.
#[derive(Debug)]
struct ChangeRows {
    table: PlacedTable,
    kind: ChangeKind,
    target: Arc<WriteTarget>,
    returns: Option<SchemaRef>,
}

impl fmt::Display for ChangeRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            ChangeKind::Delete => "delete",
            ChangeKind::Update => "update",
        };
        write!(f, "{what}, table={}", self.table.name)
    }
}

impl TableWrite for ChangeRows {
    fn name(&self) -> &'static str {
        "ChangeExec"
    }

    fn distribution(&self) -> Distribution {
        Distribution::SinglePartition
    }

    fn run(
        &self,
        input: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        _: bool,
    ) -> BoxFuture<'static, Result<WrittenBatches>> {
        let (target, returns) = (Arc::clone(&self.target), self.returns.clone());
        let mut found = FoundRows::new(self.table.clone(), self.kind);
        Box::pin(async move {
            let mut rows = input.execute(0, context)?;
            while let Some(batch) = rows.next().await {
                found.take(&batch?, &target)?;
            }
            found.write(&target, returns.as_ref()).await
        })
    }
}

/// The rows to change.
struct FoundRows {
    table: PlacedTable,
    kind: ChangeKind,
    seen: RoaringTreemap,
    ids: Vec<RowId>,
    /// The new values of some of them.
    values: Vec<NewValues>,
    /// The other columns requested for the same rows, if any.
    others: Vec<RecordBatch>,
}

impl FoundRows {
    fn new(table: PlacedTable, kind: ChangeKind) -> Self {
        let (seen, ids, values, others) = Default::default();
        Self { table, kind, seen, ids, values, others }
    }

    /// Takes ids, followed by the new values if there are any, and the other requested columns. A row that was found
    /// twice is changed once: the first occurrence counts.
    fn take(&mut self, batch: &RecordBatch, target: &WriteTarget) -> Result<()> {
        let ids = batch.column(0).as_primitive::<UInt64Type>();
        let first = self.ids.len();
        let mut new: Vec<u64> = Vec::with_capacity(ids.len());
        for (row, id) in ids.values().iter().enumerate() {
            if self.seen.insert(*id) {
                self.ids.push(RowId::new(*id));
                new.push(row as u64);
            }
        }
        if new.is_empty() || batch.num_columns() == 1 {
            return Ok(());
        }
        let columns: Vec<usize> = (1..batch.num_columns()).collect();
        let mut values = batch.project(&columns)?;
        if new.len() < batch.num_rows() {
            // Copied, without sharing text buffers: those of all rows that a join found would fill the memory.
            values = take_record_batch(&values, &UInt64Array::from(new))?;
        }
        let new_values = match self.kind {
            ChangeKind::Delete => 0,
            ChangeKind::Update => self.table.columns().fields().len(),
        };
        let (new_values, others): (Vec<_>, Vec<_>) =
            (0..values.num_columns()).partition(|column| *column < new_values);
        if !others.is_empty() {
            self.others.push(values.project(&others)?);
        }
        if !new_values.is_empty() {
            let values = self.table.typed(&values.project(&new_values)?)?;
            let values = target.rules.complete(&self.table, values)?;
            self.values.push((self.ids[first..].to_vec(), values));
        }
        Ok(())
    }

    /// Passes the change to the transaction; the number of changed rows, or, with these columns, the rows.
    async fn write(
        self,
        target: &WriteTarget,
        returns: Option<&SchemaRef>,
    ) -> Result<WrittenBatches> {
        let mut written = WrittenBatches { count: self.ids.len(), rows: Vec::new() };
        if let Some(schema) = returns.filter(|_| !self.ids.is_empty()) {
            written.rows = self.rows(schema)?;
        }
        let change = match self.kind {
            ChangeKind::Delete => TableChange { deleted: self.seen, ..TableChange::default() },
            ChangeKind::Update => {
                // Replacing a chunk would undo the changes that an earlier part of the statement made in it.
                let by_row = target.transaction.lock().await?.has_changed(self.table.id());
                updated(&self.table, &self.values, by_row).await?
            }
        };
        target.write(&self.table, change).await?;
        Ok(written)
    }

    /// The rows, followed by the other requested columns.
    fn rows(&self, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
        let (rows, others) = match self.kind {
            ChangeKind::Delete => {
                let first = self.others.first().map(RecordBatch::schema);
                let all = first.map(|schema| concat_batches(&schema, &self.others)).transpose()?;
                (vec![self.old_rows()?], all.into_iter().collect())
            }
            ChangeKind::Update => {
                let rows = self.values.iter().map(|(_, values)| values.clone()).collect();
                (rows, self.others.clone())
            }
        };
        let others = others.iter().map(RecordBatch::columns).chain(iter::repeat(&[][..]));
        let rows = rows.iter().zip(others).map(|(rows, others)| {
            let columns = rows.columns().iter().chain(others).zip(schema.fields());
            let columns = columns.map(|(column, field)| cast(column, field.data_type()));
            let columns = columns.collect::<Result<_, _>>()?;
            Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
        });
        rows.collect()
    }

    fn old_rows(&self) -> Result<RecordBatch> {
        let version = self.table.version();
        let rows: Option<Vec<_>> = self.ids.iter().map(|id| version.row(*id)).collect();
        let rows = rows.ok_or_else(|| internal_datafusion_err!("a row that was found is gone"))?;
        self.table.typed(&version.codec().decode(&rows).map_err(table_error)?)
    }
}
