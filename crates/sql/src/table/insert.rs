//! `INSERT INTO`: few rows are stored one by one, many become chunks.

use std::fmt;
use std::sync::Arc;

use atoll_store::RowId;
use atoll_store::table::{AppendedChunk, TableChange};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::Distribution;
use datafusion::physical_plan::ExecutionPlan;
use futures::future::BoxFuture;

use super::PlacedTable;
use super::load::{LoadedRows, load};
use super::target::WriteTarget;
use super::write::{TableWrite, WrittenBatches};
use atoll_sql_common::error::table_error;

/// Inserts rows into a table.
#[derive(Debug)]
pub(super) struct Insert {
    pub(super) table: PlacedTable,
    pub(super) target: Arc<WriteTarget>,
}

impl fmt::Display for Insert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={}, placement={}", self.table.name, self.table.strategy())?;
        match &self.target.rules.conflict {
            None => Ok(()),
            Some(conflict) => write!(f, ", on_conflict={conflict}"),
        }
    }
}

impl TableWrite for Insert {
    fn name(&self) -> &'static str {
        "InsertExec"
    }

    fn distribution(&self) -> Distribution {
        Distribution::UnspecifiedDistribution
    }

    fn run(
        &self,
        input: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        returning: bool,
    ) -> BoxFuture<'static, Result<WrittenBatches>> {
        let (table, target) = (self.table.clone(), Arc::clone(&self.target));
        Box::pin(async move {
            let keeps_rows = returning || target.rules.conflict.is_some();
            let loaded = load(input, context, &table, &target, keeps_rows).await?;
            if let (Some(conflict), LoadedRows::Rows(batches)) = (&target.rules.conflict, &loaded) {
                return conflict.insert(&table, &target, batches, returning).await;
            }
            let written = WrittenBatches {
                count: loaded.rows(),
                rows: match (&loaded, returning) {
                    (LoadedRows::Rows(batches), true) => {
                        batches.iter().map(|batch| table.typed(batch)).collect::<Result<_>>()?
                    }
                    _ => Vec::new(),
                },
            };
            target.write(&table, inserted(&table, loaded)?).await?;
            Ok(written)
        })
    }
}

/// The change that appends rows to a table.
pub(crate) fn inserted(table: &PlacedTable, rows: LoadedRows) -> Result<TableChange> {
    let mut next = table.version().reserve(rows.rows()).get();
    let mut change = TableChange::default();
    match rows {
        LoadedRows::Rows(batches) => {
            for row in encoded(table, &batches)? {
                change.inserted.insert(RowId::new(next), row);
                next += 1;
            }
        }
        LoadedRows::Chunks(chunks) => {
            for (chunk, file) in chunks {
                let first = RowId::new(next);
                next += chunk.rows as u64;
                change.appended.push(AppendedChunk { first, chunk, file });
            }
        }
    }
    Ok(change)
}

/// Rows in the store's row format.
pub(super) fn encoded(
    table: &PlacedTable,
    batches: &[RecordBatch],
) -> Result<Vec<atoll_store::table::Row>> {
    let mut rows = Vec::new();
    for batch in batches {
        rows.extend(table.version().codec().encode(batch).map_err(table_error)?);
    }
    Ok(rows)
}
