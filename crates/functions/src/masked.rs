//! Rows that an aggregate skips.

use datafusion::arrow::array::{Array, BooleanArray};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};

/// Returns a null buffer that marks rows with null in `values`, or with false or null in `filter`.
pub(crate) fn masked(values: &dyn Array, filter: Option<&BooleanArray>) -> Option<NullBuffer> {
    let passed = filter.map(|filter| NullBuffer::new(passing(filter)));
    NullBuffer::union(values.nulls(), passed.as_ref())
}

fn passing(filter: &BooleanArray) -> BooleanBuffer {
    match filter.nulls() {
        Some(nulls) => filter.values() & nulls.inner(),
        None => filter.values().clone(),
    }
}
