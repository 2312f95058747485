//! A sequence as the table of one row that it is in PostgreSQL: `SELECT last_value, is_called FROM s`.

use std::sync::Arc;

use atoll_store::database::SequenceDefinition;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::Result;

/// The table of a sequence that gave this value last.
pub(super) fn table(
    definition: &SequenceDefinition,
    last: Option<i64>,
) -> Result<Arc<dyn TableProvider>> {
    let (value, is_called) = match last {
        None => (definition.start, false),
        // Before the first value, after RESTART and setval with false.
        Some(last) if !(definition.min..=definition.max).contains(&last) => {
            (last.saturating_add(definition.increment), false)
        }
        Some(last) => (last, true),
    };
    let columns: [(&str, ArrayRef); 3] = [
        ("last_value", Arc::new(Int64Array::from(vec![value]))),
        ("log_cnt", Arc::new(Int64Array::from(vec![0]))),
        ("is_called", Arc::new(BooleanArray::from(vec![is_called]))),
    ];
    let row = RecordBatch::try_from_iter(columns)?;
    Ok(Arc::new(MemTable::try_new(row.schema(), vec![vec![row]])?))
}
