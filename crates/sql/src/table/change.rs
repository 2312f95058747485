//! DELETE and UPDATE: the rows that their query found are deleted, and written anew with other values.
//!
//! ```text
//! query over a ChangedTable ─▶ position, new values ─▶ ChangeRows ─▶ Deletion ──────────┐
//!   (its rows know where they are)                        └─▶ chunks at the old homes ──┴▶ one new snapshot
//! ```
//!
//! The statement reads one snapshot and publishes another in one step: no query sees half of it. Where
//! rows of the chunks that it changes were deleted meanwhile, it fails and has changed nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use atoll_placement::ChunkHome;
use atoll_runtime::WorkerId;
use atoll_store::table::{BLOCK_ROWS, Chunk, ChunkWriter, Deletion, RowPosition, TableSnapshot};
use atoll_topology::NodeId;
use datafusion::arrow::array::{AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::{BatchCoalescer, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::Distribution;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use futures::future::BoxFuture;

use super::write::{TableWrite, WriteExec};
use super::{PlacedTable, table_error};
use crate::task::BoundTask;

/// The column that holds the positions of rows, with as many apostrophes behind it as make it the only
/// column of that name.
const POSITION: &str = "row position";

/// What happens to the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// They are deleted.
    Delete,
    /// They get the values that come behind their positions, one for each column.
    Update,
}

/// A table whose rows are about to be changed: its columns, and the position of each row.
#[derive(Debug)]
pub(crate) struct ChangedTable {
    table: PlacedTable,
    kind: ChangeKind,
    /// Name of the column of positions, the last one.
    position: String,
    schema: SchemaRef,
}

impl ChangedTable {
    /// The table as the target of a change.
    pub(crate) fn new(table: PlacedTable, kind: ChangeKind) -> Self {
        let mut position = POSITION.to_owned();
        while table.schema.index_of(&position).is_ok() {
            position.push('\'');
        }
        let last = Field::new(&position, DataType::UInt64, false);
        let schema = Schema::new(table.nullable_fields().chain([last]).collect::<Vec<_>>());
        Self { table, kind, position, schema: Arc::new(schema) }
    }

    /// Name of the column of positions.
    pub(crate) fn position(&self) -> &str {
        &self.position
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
        let has_positions = columns.last() == Some(&last);
        columns.truncate(columns.len() - usize::from(has_positions));
        if columns.contains(&last) {
            return internal_err!("positions of rows are not the last column");
        }
        let scan = self.table.scan_exec(state, Some(&columns), filters, limit)?;
        Ok(Arc::new(if has_positions { scan.with_positions(&self.position)? } else { scan }))
    }

    /// Changes the rows whose positions, and new values, are the input.
    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        _: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let change = ChangeRows { table: self.table.clone(), kind: self.kind };
        Ok(Arc::new(WriteExec::new(Arc::new(change), input)))
    }
}

/// Changes the rows of a table whose positions are the input's first column.
#[derive(Debug)]
struct ChangeRows {
    table: PlacedTable,
    kind: ChangeKind,
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
    ) -> BoxFuture<'static, Result<usize>> {
        let mut change = Change::new(self.table.clone());
        Box::pin(async move {
            let mut found = input.execute(0, context)?;
            while let Some(batch) = found.next().await {
                change.take(&batch?)?;
            }
            change.publish().await
        })
    }
}

/// Whose node new rows are written on, and in what memory: as the rows before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowHome {
    /// Node whose worker writes them.
    node: NodeId,
    memory: ChunkHome,
}

/// A change under way.
struct Change {
    table: PlacedTable,
    snapshot: Arc<TableSnapshot>,
    deletion: Deletion,
    /// New rows, by where they go.
    values: BTreeMap<RowHome, BatchCoalescer>,
}

impl Change {
    fn new(table: PlacedTable) -> Self {
        let snapshot = table.snapshot();
        let deletion = Deletion::new(Arc::clone(&snapshot));
        Self { table, snapshot, deletion, values: BTreeMap::new() }
    }

    /// Takes positions, and behind them the new values where there are any. A row that was found twice
    /// is changed once: the first values count.
    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let positions = batch.column(0).as_primitive::<UInt64Type>();
        let mut by_home: BTreeMap<RowHome, Vec<u64>> = BTreeMap::new();
        for (row, bits) in positions.values().iter().enumerate() {
            let position = RowPosition::of_bits(*bits);
            if self.deletion.add(position) && batch.num_columns() > 1 {
                by_home.entry(self.home_of(position)).or_default().push(row as u64);
            }
        }
        if by_home.is_empty() {
            return Ok(());
        }
        let columns: Vec<usize> = (1..batch.num_columns()).collect();
        let values = batch.project(&columns)?;
        for (home, rows) in by_home {
            // Its batches have text of their own: that of all rows that a join found would fill the memory.
            let gathered = self
                .values
                .entry(home)
                .or_insert_with(|| BatchCoalescer::new(values.schema(), BLOCK_ROWS));
            gathered.push_batch(take_record_batch(&values, &UInt64Array::from(rows))?)?;
        }
        Ok(())
    }

    fn home_of(&self, position: RowPosition) -> RowHome {
        let chunk = &self.snapshot.chunks[position.chunk()];
        let near = chunk.owner.or_else(|| chunk.copies.first().and_then(|copy| copy.home()));
        let node = near.unwrap_or_else(|| self.table.runtime().node_of(WorkerId(0)));
        let memory = match &chunk.copies[..] {
            [copy] => copy.wanted.map_or(ChunkHome::Unbound, ChunkHome::Node),
            _ => ChunkHome::CopyPerNode,
        };
        RowHome { node, memory }
    }

    /// Publishes the table without the old rows and with the new ones; how many were changed.
    async fn publish(self) -> Result<usize> {
        let runtime = self.table.runtime().clone();
        let workers = (0..runtime.worker_count()).map(|worker| WorkerId(worker as u32));
        let workers: Vec<WorkerId> = workers.collect();
        let mut writing = Vec::new();
        for (home, mut gathered) in self.values {
            let writer = self.table.writer(home.node, 0).with_home(home.memory);
            gathered.finish_buffered_batch()?;
            let near = workers.iter().find(|worker| runtime.node_of(**worker) == home.node);
            let worker = near.copied().unwrap_or(WorkerId(0));
            writing.push(BoundTask::new(
                runtime.spawn_on(worker, async move { write(writer, gathered) }),
            ));
        }
        let mut chunks = Vec::new();
        for task in writing {
            chunks.extend(task.join("writing the changed rows").await?);
        }
        let count = self.deletion.count();
        if count > 0 {
            self.table.change(&self.deletion, chunks)?;
        }
        Ok(count)
    }
}

fn write(mut writer: ChunkWriter, mut rows: BatchCoalescer) -> Result<Vec<Arc<Chunk>>> {
    while let Some(batch) = rows.next_completed_batch() {
        writer.write(&batch).map_err(table_error)?;
    }
    Ok(writer.finish().map_err(table_error)?.into_iter().map(Arc::new).collect())
}

impl PlacedTable {
    /// Publishes the table of this name, as it is by now, without some rows and with more chunks.
    fn change(&self, deletion: &Deletion, chunks: Vec<Arc<Chunk>>) -> Result<()> {
        self.publish("changed", |current| {
            let Some(rest) = current.snapshot.without(deletion) else {
                return exec_err!(
                    "rows of table '{}' were changed by another statement while this one was changing \
                     them; run the statement again",
                    self.name
                );
            };
            Ok(Self { snapshot: Arc::new(rest.with(chunks)), ..current.clone() })
        })
    }
}
