//! Rows that an aggregate leaves out.

use datafusion::arrow::array::{Array, BooleanArray};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};

/// The rows that are null in `values`, false or null in `filter`, as nulls.
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
