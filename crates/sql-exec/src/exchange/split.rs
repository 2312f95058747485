//! Splitting batches by output, and gathering the pieces into batches of full size again.
//!
//! Rows are split exactly as DataFusion splits them (its `BatchPartitioner` with its hash seed), so
//! that a reported hash partitioning may be trusted by joins, aggregates and dynamic filters.
//! Pieces are gathered per (node, output), by the producers of that node: the copy reads and writes
//! local memory, and what crosses to the output's home is one full batch, read once in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_plan::coalesce::LimitedBatchCoalescer;
use parking_lot::Mutex;

/// The pieces that the producers of one node hold back for each output.
pub(super) struct NodeCoalescer {
    outputs: Vec<Mutex<LimitedBatchCoalescer>>,
    /// Producers of the node that have not finished.
    producing: AtomicUsize,
}

impl NodeCoalescer {
    /// Nothing gathered yet, for this many outputs and producers on the node.
    pub(super) fn new(
        schema: &SchemaRef,
        rows: usize,
        outputs: usize,
        producers: usize,
    ) -> Arc<Self> {
        let coalescer = |_| Mutex::new(LimitedBatchCoalescer::new(schema.clone(), rows, None));
        Arc::new(Self {
            outputs: (0..outputs).map(coalescer).collect(),
            producing: AtomicUsize::new(producers),
        })
    }

    /// Adds a piece; returns the batches that are complete now.
    pub(super) fn add(&self, output: usize, piece: RecordBatch) -> Result<Vec<RecordBatch>> {
        let mut coalescer = self.outputs[output].lock();
        coalescer.push_batch(piece)?;
        Ok(completed(&mut coalescer))
    }

    /// Ends one producer. Returns whether it was the node's last, which sends the [`rest`].
    ///
    /// [`rest`]: Self::rest
    pub(super) fn finish_one(&self) -> bool {
        self.producing.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The pieces still held back for an output, after the node's last producer has finished.
    pub(super) fn rest(&self, output: usize) -> Result<Vec<RecordBatch>> {
        let mut coalescer = self.outputs[output].lock();
        coalescer.finish()?;
        Ok(completed(&mut coalescer))
    }
}

fn completed(coalescer: &mut LimitedBatchCoalescer) -> Vec<RecordBatch> {
    std::iter::from_fn(|| coalescer.next_completed_batch()).collect()
}
