//! Session helpers for the benchmarks.

use anyhow::{Context, Result};
use atoll_sql::Session;
use atoll_sql::arrow::array::{Array, Int64Array, RecordBatch, UInt64Array};

/// Runs a statement on the calling thread.
pub(crate) fn run(session: &Session, sql: &str) -> Result<Vec<RecordBatch>> {
    let run = async { session.run(sql).await?.collect().await };
    Ok(session.runtime().block_on(run)?)
}

/// A number that a query gives.
pub(crate) fn number(session: &Session, sql: &str) -> Result<u64> {
    let batches = run(session, sql)?;
    let batch = batches.iter().find(|batch| batch.num_rows() == 1);
    let column = batch.with_context(|| format!("{sql} returned no row"))?.column(0);
    let signed = column.as_any().downcast_ref::<Int64Array>().map(|array| array.value(0));
    let number = column.as_any().downcast_ref::<UInt64Array>().map(|array| array.value(0));
    number.or(signed.map(i64::unsigned_abs)).with_context(|| format!("{sql} returned no number"))
}
