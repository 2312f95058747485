//! `INSERT … ON CONFLICT`: rows whose key exists already are left out, or change the existing row.
//!
//! The keys are locked first, so that their state stays the same until the transaction ends.

use std::fmt;
use std::sync::Arc;

use atoll_store::RowId;
use atoll_store::database::{LockWait, LockedRows};
use atoll_store::lock::LockMode;
use atoll_store::table::{Key, TableChange};
use datafusion::arrow::array::{BooleanArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::{HashSet, Result};

use super::PlacedTable;
use super::rules::{PlannedConflict, PlannedUpdate};
use super::target::WriteTarget;
use super::write::WrittenBatches;
use atoll_sql_common::error::{SqlState, table_error, transaction_error};

impl fmt::Display for PlannedConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.update.is_some() { "update" } else { "nothing" })
    }
}

/// The new rows of a statement, classified.
#[derive(Default)]
struct SortedOut {
    /// Numbers of rows whose keys are free.
    free: Vec<u64>,
    /// Numbers of rows whose key exists, and the row that has it.
    taken: Vec<(u64, RowId)>,
}

impl PlannedConflict {
    /// Inserts the rows with free keys, and updates existing rows.
    ///
    /// # Errors
    /// The errors of [`WriteTarget::write`], and for rows that it would change twice.
    pub(crate) async fn insert(
        &self,
        table: &PlacedTable,
        target: &WriteTarget,
        batches: &[RecordBatch],
        returning: bool,
    ) -> Result<WrittenBatches> {
        let new = table.typed(&concat_rows(table, batches)?)?;
        let found = self.sort_out(table, target, &new).await?;
        let inserted = take_record_batch(&new, &UInt64Array::from(found.free.clone()))?;
        let first = table.version().reserve(inserted.num_rows()).get();
        let rows = table.version().codec().encode(&inserted).map_err(table_error)?;
        let ids = (first..).map(RowId::new);
        let mut change =
            TableChange { inserted: ids.zip(rows).collect(), ..TableChange::default() };
        let mut count = inserted.num_rows();
        let mut rows = if returning { vec![inserted] } else { vec![] };
        if let Some(update) = &self.update {
            let (numbers, updated) =
                update_rows(table, target, update, &new, &found.taken, &mut change).await?;
            count += updated.num_rows();
            if let Some(inserted) = rows.pop() {
                rows.push(in_order([(found.free, inserted), (numbers, updated)])?);
            }
        }
        target.write(table, change).await?;
        Ok(WrittenBatches { count, rows })
    }

    /// Locks the keys of all rows and checks which exist.
    async fn sort_out(
        &self,
        table: &PlacedTable,
        target: &WriteTarget,
        new: &RecordBatch,
    ) -> Result<SortedOut> {
        let mut there: Vec<Option<RowId>> = vec![None; new.num_rows()];
        let mut keys_of_uniques = Vec::with_capacity(self.uniques.len());
        for unique in &self.uniques {
            let columns = table.version().key_columns(*unique);
            let keys = table.version().codec().keys_of(new, columns).map_err(table_error)?;
            let mut transaction = target.transaction.lock().await?;
            let found = transaction.find_conflicts(table.id(), *unique, &keys).await;
            let found = found.map_err(transaction_error)?;
            for (there, found) in there.iter_mut().zip(found) {
                *there = there.or(found);
            }
            keys_of_uniques.push(keys);
        }
        let mut sorted = SortedOut::default();
        let mut seen: HashSet<(usize, &Key)> = HashSet::new();
        for (row, there) in there.into_iter().enumerate() {
            let own = keys_of_uniques.iter().map(|keys| keys[row].as_ref()).enumerate();
            let own: Vec<(usize, &Key)> =
                own.filter_map(|(unique, key)| Some((unique, key?))).collect();
            let is_twice = own.iter().any(|key| seen.contains(key));
            match there {
                _ if is_twice && self.update.is_some() => return Err(changed_twice()),
                Some(id) => sorted.taken.push((row as u64, id)),
                None if is_twice => {}
                None => sorted.free.push(row as u64),
            }
            // A row that is left out leaves its keys to later ones.
            if self.update.is_some() || (there.is_none() && !is_twice) {
                seen.extend(own);
            }
        }
        Ok(sorted)
    }
}

fn changed_twice() -> datafusion::common::DataFusionError {
    SqlState::CARDINALITY_VIOLATION.error(
        "ON CONFLICT DO UPDATE cannot affect a row a second time; the new rows have a key twice",
    )
}

/// Inserted and updated rows in the order of the new rows, whose numbers they come with.
fn in_order(
    [(free, inserted), (taken, updated)]: [(Vec<u64>, RecordBatch); 2],
) -> Result<RecordBatch> {
    let rows = concat_batches(&inserted.schema(), [&inserted, &updated])?;
    let mut places: Vec<(u64, u64)> = free.into_iter().chain(taken).zip(0..).collect();
    places.sort_unstable();
    let places: UInt64Array = places.into_iter().map(|(_, place)| place).collect();
    Ok(take_record_batch(&rows, &places)?)
}

/// Adds the updates of existing rows to a change; the updated rows, with the numbers of the new rows that they take.
async fn update_rows(
    table: &PlacedTable,
    target: &WriteTarget,
    update: &PlannedUpdate,
    new: &RecordBatch,
    taken: &[(u64, RowId)],
    change: &mut TableChange,
) -> Result<(Vec<u64>, RecordBatch)> {
    let rows = {
        let mut transaction = target.transaction.lock().await?;
        // WHERE is evaluated for the newest values, which others may be changing.
        let ids = taken.iter().map(|(_, id)| *id).collect();
        let locked = transaction.lock_rows(table.id(), ids, LockMode::Exclusive, LockWait::Wait);
        if let LockedRows::Stale = locked.await.map_err(transaction_error)? {
            return Err(super::StaleStatement::error());
        }
        let version = transaction.statement(true).map_err(transaction_error)?;
        let now = version.table(table.id());
        now.and_then(|now| taken.iter().map(|(_, id)| now.row(*id)).collect::<Option<Vec<_>>>())
    };
    let rows = rows.ok_or_else(super::StaleStatement::error)?;
    let there = table.version().codec().decode(&rows).map_err(table_error)?;
    let numbers: UInt64Array = taken.iter().map(|(row, _)| *row).collect();
    let pairs = side_by_side(&there, &take_record_batch(new, &numbers)?)?;
    let applies: BooleanArray = update.applies(&pairs)?;
    let updated = update.updated(&there, &pairs)?;
    let updated = table.typed(&filter_record_batch(&updated, &applies)?)?;
    let updated = target.rules.complete(table, updated)?;
    let applied = taken.iter().zip(applies.values()).filter(|(_, applies)| *applies);
    let (numbers, ids): (Vec<u64>, Vec<RowId>) = applied.map(|(row, _)| *row).unzip();
    let rows = table.version().codec().encode(&updated).map_err(table_error)?;
    change.updated.extend(ids.into_iter().zip(rows));
    Ok((numbers, updated))
}

fn concat_rows(table: &PlacedTable, batches: &[RecordBatch]) -> Result<RecordBatch> {
    let Some(first) = batches.first() else {
        return Ok(RecordBatch::new_empty(Arc::clone(table.columns())));
    };
    Ok(concat_batches(&first.schema(), batches)?)
}

/// The columns of both; all of them are nullable.
fn side_by_side(one: &RecordBatch, other: &RecordBatch) -> Result<RecordBatch> {
    let (one_schema, other_schema) = (one.schema(), other.schema());
    let fields = one_schema.fields().iter().chain(other_schema.fields());
    let fields: Vec<Field> =
        fields.map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let columns = one.columns().iter().chain(other.columns()).cloned().collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}
