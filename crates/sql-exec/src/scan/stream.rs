//! One partition of a scan, block by block.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use atoll_runtime::Runtime;
use atoll_store::table::{BLOCK_ROWS, Chunk, Selection, TableSnapshot};
use atoll_topology::{Bytes, NodeId};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, MetricBuilder};
use futures::Stream;

use super::ScanExec;
use super::assign::{Cuts, RowRange};
use super::filter::PartitionFilter;
use crate::memory::Gauge;

/// Blocks after which a scan that finds nothing yields, and checks for cancellation.
const BLOCKS_PER_POLL: usize = 32;

/// The fewest rows of a batch that is gathered from several blocks, whatever the batch size: Arrow's
/// coalescer (59.3, `coalesce/byte_view.rs`) gives the strings of each batch a buffer of up to 1 MiB.
const GATHERED_ROWS_MIN: usize = 1024;

/// Reads the pieces of one partition.
pub(crate) struct ScanStream {
    runtime: Runtime,
    snapshot: Arc<TableSnapshot>,
    projection: Vec<usize>,
    /// Whether ids of rows are the last column.
    with_ids: bool,
    schema: SchemaRef,
    filter: PartitionFilter,
    route: Option<(Cuts, usize)>,
    blocks: std::vec::IntoIter<BlockRange>,
    /// Gathers the remaining rows of several blocks into batches of full size.
    coalescer: Option<BatchCoalescer>,
    rows_left: usize,
    ended: bool,
    gauge: Option<Arc<Gauge>>,
    counts: ScanCounts,
    baseline: BaselineMetrics,
}

/// Rows of one block of one chunk's copy.
struct BlockRange {
    chunk: usize,
    copy: usize,
    block: usize,
    offset: usize,
    len: usize,
}

/// The metrics of a scan in EXPLAIN ANALYZE besides time and rows.
struct ScanCounts {
    rows_scanned: Count,
    blocks_pruned: Count,
    bytes_local: Count,
    bytes_remote: Count,
}

impl ScanStream {
    pub(crate) fn new(
        scan: &ScanExec,
        partition: usize,
        batch_rows: usize,
        gauge: Option<Arc<Gauge>>,
    ) -> Result<Self> {
        let blocks: Vec<BlockRange> = scan.parts[partition].iter().flat_map(blocks_of).collect();
        let batch_rows = batch_rows.max(GATHERED_ROWS_MIN);
        let count = |name: &'static str| MetricBuilder::new(&scan.metrics).counter(name, partition);
        Ok(Self {
            runtime: scan.runtime.clone(),
            snapshot: Arc::clone(&scan.snapshot),
            projection: scan.projection.clone(),
            with_ids: scan.with_ids,
            schema: Arc::clone(&scan.schema),
            filter: PartitionFilter::new(&scan.fixed, &scan.dynamic, &scan.snapshot.schema)?,
            route: scan.cuts.clone().map(|cuts| (cuts, partition)),
            blocks: blocks.into_iter(),
            coalescer: (!scan.schema.fields().is_empty()).then(|| {
                BatchCoalescer::new(Arc::clone(&scan.schema), batch_rows)
                    .with_biggest_coalesce_batch_size(Some(batch_rows / 2))
            }),
            rows_left: scan.fetch.unwrap_or(usize::MAX),
            ended: false,
            gauge,
            counts: ScanCounts {
                rows_scanned: count("rows_scanned"),
                blocks_pruned: count("blocks_pruned"),
                bytes_local: count("bytes_local"),
                bytes_remote: count("bytes_remote"),
            },
            baseline: BaselineMetrics::new(&scan.metrics, partition),
        })
    }

    /// The next batch; `None` after [`BLOCKS_PER_POLL`] blocks without one, or at the end.
    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(gauge) = &self.gauge {
            gauge.check("a scan")?;
        }
        for _ in 0..BLOCKS_PER_POLL {
            if let Some(batch) =
                self.coalescer.as_mut().and_then(BatchCoalescer::next_completed_batch)
            {
                return Ok(Some(batch));
            }
            let block = if self.rows_left > 0 { self.blocks.next() } else { None };
            let Some(block) = block else { return self.finish() };
            let Some(batch) = self.read(&block)? else { continue };
            match &mut self.coalescer {
                Some(coalescer) => coalescer.push_batch(batch)?,
                None => return Ok(Some(batch)),
            }
        }
        Ok(None)
    }

    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        self.ended = true;
        let Some(coalescer) = &mut self.coalescer else { return Ok(None) };
        coalescer.finish_buffered_batch()?;
        let batch = coalescer.next_completed_batch();
        self.ended = !coalescer.has_completed_batch();
        Ok(batch)
    }

    /// The rows of a block that pass, decoded.
    fn read(&mut self, range: &BlockRange) -> Result<Option<RecordBatch>> {
        let snapshot = Arc::clone(&self.snapshot);
        let chunk = &snapshot.chunks[range.chunk];
        let block = &chunk.copies[range.copy].blocks[range.block];
        let whole = Selection::Range { offset: range.offset, len: range.len };
        let wanted = match snapshot.live(range.chunk, range.block) {
            Some(live) => whole.kept_by(live),
            None => Some(whole),
        };
        let Some(wanted) = wanted else { return Ok(None) };
        self.counts.rows_scanned.add(wanted.count());
        let zones = &chunk.zones[range.block];
        let route = self.route.as_ref().map(|(cuts, partition)| (cuts, *partition));
        let passed = self.filter.apply(block, zones, wanted, &snapshot.schema, route)?;
        self.counts.blocks_pruned.add(usize::from(passed.pruned));
        let mut read = passed.read;
        let batch = passed.rows.map(|rows| {
            read.extend(self.projection.iter().map(|column| (*column, rows.count())));
            self.decode(chunk, range, &rows)
        });
        self.count_read(chunk, range, &read);
        batch.transpose()
    }

    fn decode(
        &mut self,
        chunk: &Chunk,
        range: &BlockRange,
        rows: &Selection,
    ) -> Result<RecordBatch> {
        let block = &chunk.copies[range.copy].blocks[range.block];
        let decode = |(field, column): (usize, &usize)| {
            block[*column].decode(self.schema.field(field).data_type(), rows)
        };
        let columns = self.projection.iter().enumerate().map(decode);
        let mut columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
        if self.with_ids {
            columns.push(ids(&self.snapshot, range, rows));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.count()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let kept = batch.num_rows().min(self.rows_left);
        self.rows_left -= kept;
        Ok(batch.slice(0, kept))
    }

    /// Adds the bytes of (column, rows) to local or remote, by the node of the copy.
    fn count_read(&self, chunk: &Chunk, range: &BlockRange, read: &[(usize, usize)]) {
        let block = &chunk.copies[range.copy].blocks[range.block];
        let share = |(column, rows): &(usize, usize)| {
            let bytes = chunk.block_bytes[range.block][*column];
            bytes * rows / block[*column].rows().len().max(1)
        };
        let bytes: usize = read.iter().map(share).sum();
        let home = chunk.copies[range.copy].home();
        if let Some(home) = home {
            self.runtime.count_read(home, Bytes(bytes as u64));
        }
        match is_local(self.runtime.current_node(), home) {
            true => self.counts.bytes_local.add(bytes),
            false => self.counts.bytes_remote.add(bytes),
        };
    }
}

/// The ids of rows of a block.
fn ids(snapshot: &TableSnapshot, range: &BlockRange, rows: &Selection) -> ArrayRef {
    let (ids, first) = (snapshot.row_ids(range.chunk), range.block * BLOCK_ROWS);
    let id = |row: u32| ids.at(first + row as usize).get();
    Arc::new(UInt64Array::from_iter_values(rows.numbers().into_iter().map(id)))
}

/// Memory with unknown home counts as remote.
fn is_local(reader: Option<NodeId>, home: Option<NodeId>) -> bool {
    matches!((reader, home), (Some(reader), Some(home)) if reader == home)
}

fn blocks_of(piece: &RowRange) -> Vec<BlockRange> {
    let (start, end) = (piece.rows.start, piece.rows.end);
    (start / BLOCK_ROWS..end.div_ceil(BLOCK_ROWS))
        .map(|block| {
            let first = start.max(block * BLOCK_ROWS);
            let last = end.min((block + 1) * BLOCK_ROWS);
            BlockRange {
                chunk: piece.chunk,
                copy: piece.copy,
                block,
                offset: first - block * BLOCK_ROWS,
                len: last - first,
            }
        })
        .collect()
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return self.baseline.record_poll(Poll::Ready(None));
        }
        let timer = self.baseline.elapsed_compute().clone();
        let timer = timer.timer();
        let result = self.advance();
        timer.done();
        let poll = match result {
            Err(error) => {
                self.ended = true;
                Poll::Ready(Some(Err(error)))
            }
            Ok(Some(batch)) => Poll::Ready(Some(Ok(batch))),
            Ok(None) if self.ended => Poll::Ready(None),
            Ok(None) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
        };
        self.baseline.record_poll(poll)
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
