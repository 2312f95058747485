//! The memory of batches.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;

/// The bytes of a batch's rows, without other rows in its buffers.
pub(crate) fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(array_bytes).sum()
}

/// The bytes of an array's values, without others in its buffers.
pub(crate) fn array_bytes(array: &Arc<dyn Array>) -> usize {
    let texts = match array.data_type() {
        // Arrow counts only the views.
        DataType::Utf8View => array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.as_binary_view().total_buffer_bytes_used(),
        _ => 0,
    };
    texts
        + array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringViewArray};
    use datafusion::arrow::datatypes::{Field, Schema};

    use super::*;

    #[test]
    fn a_batch_takes_the_bytes_of_its_rows() {
        let schema = Schema::new(vec![
            Field::new("n", DataType::Int64, false),
            Field::new("s", DataType::Utf8View, false),
        ]);
        let numbers = Int64Array::from_iter_values(0..1000);
        let texts = StringViewArray::from_iter_values((0..1000).map(|_| "x".repeat(100)));
        let batch =
            RecordBatch::try_new(Arc::new(schema), vec![Arc::new(numbers), Arc::new(texts)]);
        let batch = batch.unwrap();
        assert_eq!(batch_bytes(&batch), 1000 * (8 + 16 + 100));
        assert_eq!(batch_bytes(&batch.slice(10, 100)), 100 * (8 + 16 + 100));
    }
}
