//! The size of batches, and how many of their bytes stayed on their node.

use atoll_topology::NodeId;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{BinaryViewType, ByteViewType, DataType, StringViewType};
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, Label, MetricBuilder, MetricCategory,
};

use super::homes::PartitionHomes;

/// Bytes of the rows of a batch. Slices count as the rows they show, not as the buffers they keep
/// alive: stored chunks are handed out as many slices of one large buffer.
pub(super) fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(column_bytes).sum()
}

fn column_bytes(column: &ArrayRef) -> usize {
    let views = match column.data_type() {
        DataType::Utf8View => viewed_bytes::<StringViewType>(column),
        DataType::BinaryView => viewed_bytes::<BinaryViewType>(column),
        _ => 0,
    };
    let sliced = column.to_data().get_slice_memory_size();
    views + sliced.unwrap_or_else(|_| column.get_array_memory_size())
}

/// Bytes of strings that are too long to be inlined in their views.
fn viewed_bytes<V: ByteViewType>(column: &ArrayRef) -> usize {
    const INLINE_MAX: u32 = 12;
    let lengths = column.as_byte_view::<V>().views().iter().map(|&view| view as u32);
    lengths.filter(|&length| length > INLINE_MAX).map(|length| length as usize).sum()
}

/// Counts what producers on one node send to each output.
#[derive(Clone, Debug)]
pub(super) struct SentBytes(Vec<Count>);

impl SentBytes {
    /// Counters for producers on `from`; per output `bytes_local` if its home is there, otherwise
    /// `bytes_remote`, labelled with both nodes.
    pub(super) fn new(
        metrics: &ExecutionPlanMetricsSet,
        from: NodeId,
        outputs: &PartitionHomes,
    ) -> Self {
        let counter = |(output, &to): (usize, &NodeId)| {
            MetricBuilder::new(metrics)
                .with_category(MetricCategory::Bytes)
                .with_label(Label::new("from", from.to_string()))
                .with_label(Label::new("to", to.to_string()))
                .counter(if from == to { "bytes_local" } else { "bytes_remote" }, output)
        };
        Self(outputs.0.iter().enumerate().map(counter).collect())
    }

    /// Counts bytes sent to an output.
    pub(super) fn add(&self, output: usize, bytes: usize) {
        self.0[output].add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;

    use datafusion::arrow::array::{Int64Array, StringViewArray};

    #[test]
    fn a_slice_counts_only_its_own_rows() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![0; 1000]));
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        assert_eq!(batch_bytes(&batch), 8000);
        assert_eq!(batch_bytes(&batch.slice(100, 10)), 80);
    }

    #[test]
    fn long_strings_count_in_addition_to_their_views() {
        let strings = StringViewArray::from(vec!["short", "as long as it needs to be"]);
        let column: ArrayRef = Arc::new(strings);
        assert_eq!(column_bytes(&column), 2 * 16 + 25);
    }
}
