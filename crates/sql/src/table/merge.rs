//! MERGE: each row of a query names an action, the row of the table that it is for, and the values to write.
//!
//! ```text
//! query over a ChangedTable ─▶ action, id, values ─▶ MergeRows ─▶ one change ─▶ transaction
//!   (with row ids)
//! ```

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use atoll_store::RowId;
use atoll_store::table::TableChange;
use datafusion::arrow::array::{Array, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::{Int32Type, SchemaRef, UInt64Type};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, internal_err};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::Distribution;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use futures::future::BoxFuture;
use roaring::RoaringTreemap;

use super::PlacedTable;
use super::insert::inserted;
use super::load::load;
use super::target::WriteTarget;
use super::update::{NewValues, updated};
use super::write::{TableWrite, WriteExec, WrittenBatches};
use atoll_sql_common::error::SqlState;

/// The action of a WHEN clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeAction {
    /// The matched row gets the values.
    Update,
    /// The matched row is deleted.
    Delete,
    /// The values are a new row.
    Insert,
}

/// The target of a MERGE. Its input has the number of the WHEN clause, or NULL if no row changes; the id of the matched
/// row; and a value for each column of the table, unless rows are only deleted.
#[derive(Clone, Debug)]
pub(crate) struct MergedTable {
    table: PlacedTable,
    target: Arc<WriteTarget>,
    /// The action of each WHEN clause; `None` for DO NOTHING.
    actions: Arc<[Option<MergeAction>]>,
}

impl MergedTable {
    pub(crate) fn new(
        table: PlacedTable,
        target: WriteTarget,
        actions: Vec<Option<MergeAction>>,
    ) -> Self {
        Self { table, target: Arc::new(target), actions: actions.into() }
    }
}

#[async_trait]
impl TableProvider for MergedTable {
    fn schema(&self) -> SchemaRef {
        self.table.written_schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        internal_err!("the target of MERGE is not read")
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        _: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(WriteExec::new(Arc::new(MergeRows(self.clone())), input, None)))
    }
}

/// Carries out the actions.
#[derive(Debug)]
struct MergeRows(MergedTable);

impl fmt::Display for MergeRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={}, actions=[", self.0.table.name())?;
        for (number, action) in self.0.actions.iter().enumerate() {
            let word = match action {
                Some(MergeAction::Update) => "update",
                Some(MergeAction::Delete) => "delete",
                Some(MergeAction::Insert) => "insert",
                None => "nothing",
            };
            write!(f, "{}{word}", if number == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

impl TableWrite for MergeRows {
    fn name(&self) -> &'static str {
        "MergeExec"
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
        let merged = self.0.clone();
        Box::pin(async move {
            let mut found = FoundRows::default();
            let mut rows = input.execute(0, Arc::clone(&context))?;
            while let Some(batch) = rows.next().await {
                found.take(&batch?, &merged)?;
            }
            found.write(&merged, context).await
        })
    }
}

/// The rows of the actions.
#[derive(Default)]
struct FoundRows {
    /// Rows that are updated or deleted.
    changed: RoaringTreemap,
    deleted: RoaringTreemap,
    updated: Vec<NewValues>,
    inserted: Vec<RecordBatch>,
}

impl FoundRows {
    fn take(&mut self, batch: &RecordBatch, merged: &MergedTable) -> Result<()> {
        let clauses = batch.column(0).as_primitive::<Int32Type>();
        let ids = batch.column(1).as_primitive::<UInt64Type>();
        let (mut updated_ids, mut updated, mut inserted) = (Vec::new(), Vec::new(), Vec::new());
        for row in (0..batch.num_rows()).filter(|row| clauses.is_valid(*row)) {
            let action = merged.actions.get(clauses.value(row) as usize).copied().flatten();
            let Some(action) = action else { return internal_err!("unknown action of MERGE") };
            if action == MergeAction::Insert {
                inserted.push(row as u64);
                continue;
            }
            let id = ids.value(row);
            if ids.is_null(row) || !self.changed.insert(id) {
                return Err(changed_twice());
            }
            match action {
                MergeAction::Delete => drop(self.deleted.insert(id)),
                _ => {
                    updated_ids.push(RowId::new(id));
                    updated.push(row as u64);
                }
            }
        }
        if updated.is_empty() && inserted.is_empty() {
            return Ok(());
        }
        let values = batch.project(&(2..batch.num_columns()).collect::<Vec<_>>())?;
        let some = |rows: Vec<u64>| {
            let rows = take_record_batch(&values, &UInt64Array::from(rows))?;
            merged.table.typed(&rows)
        };
        if !updated.is_empty() {
            let rows = merged.target.rules.complete(&merged.table, some(updated)?)?;
            self.updated.push((updated_ids, rows));
        }
        if !inserted.is_empty() {
            self.inserted.push(some(inserted)?);
        }
        Ok(())
    }

    /// Passes all actions to the transaction as one change; the number of rows.
    async fn write(
        self,
        merged: &MergedTable,
        context: Arc<TaskContext>,
    ) -> Result<WrittenBatches> {
        let MergedTable { table, target, .. } = merged;
        let new = self.inserted.iter().map(RecordBatch::num_rows).sum::<usize>();
        let count = new + self.changed.len() as usize;
        // A chunk that is replaced must not have rows which are deleted, or which an earlier part of the statement
        // changed.
        let by_row =
            !self.deleted.is_empty() || target.transaction.lock().await?.has_changed(table.id());
        let changed = updated(table, &self.updated, by_row).await?;
        let added = match self.inserted.is_empty() {
            true => TableChange::default(),
            false => {
                let schema = table.written_schema();
                let rows = MemorySourceConfig::try_new_exec(&[self.inserted], schema, None)?;
                inserted(table, load(rows, context, table, target, false).await?)?
            }
        };
        let change = TableChange {
            deleted: self.deleted,
            updated: changed.updated,
            replaced: changed.replaced,
            ..added
        };
        target.write(table, change).await?;
        Ok(WrittenBatches { count, rows: Vec::new() })
    }
}

/// PostgreSQL's error.
fn changed_twice() -> datafusion::common::DataFusionError {
    SqlState::CARDINALITY_VIOLATION.error(
        "MERGE command cannot affect row a second time; ensure that not more than one source row matches any one \
         target row",
    )
}
