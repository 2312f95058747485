//! A shard: some rows of the relation in memory of its own, and the clock scan that answers a batch over them.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Result, ensure};
use atoll_placement::{Arena, Kernel, LiveKernel, Strategy};
use atoll_sql::store::clock_scan::{
    BatchQuery, BatchScan, ColumnSamples, ColumnTest, NumberTest, QueryBatch, QueryRows, TextTest,
};
use atoll_sql::store::table::{CHUNK_ROWS, ChunkWriter, Destination, TableSnapshot, stored_schema};
use atoll_topology::{CpuSet, Machine, NodeId};

use super::super::attributes::{ATTRIBUTES, AttributeKind, BOOKINGS};
use super::super::queries::{ScanQuery, ScanStatement};
use super::super::relation::Relation;

/// Rows that one query gets at most; the product's limit for a worker.
const ROWS_MAX: usize = 1 << 16;

/// The rows of a shard.
#[derive(Clone, Debug)]
pub(super) struct ShardPart {
    /// Rows of the whole relation.
    pub(super) relation_rows: u64,
    pub(super) seed: u64,
    pub(super) rows: Range<u64>,
}

/// Where a shard lies and is scanned.
#[derive(Clone, Debug)]
pub(super) struct ShardPlace {
    pub(super) node: NodeId,
    pub(super) cpus: CpuSet,
}

/// A shard that is loaded.
pub(super) struct Shard {
    snapshot: TableSnapshot,
    samples: ColumnSamples,
    statements: Arc<[ScanStatement]>,
}

impl ShardPlace {
    /// Binds the calling thread to it; where a container forbids that, the thread stays free.
    pub(super) fn bind(&self) {
        let _ = LiveKernel::new().bind_thread(&self.cpus);
    }
}

impl Shard {
    /// Makes the rows on a node, or without one where the calling thread is.
    pub(super) fn load(
        machine: &Arc<Machine>,
        part: &ShardPart,
        node: Option<NodeId>,
        statements: Arc<[ScanStatement]>,
    ) -> Result<Self> {
        let relation = Relation::new(part.relation_rows, part.seed);
        let all: Vec<usize> = (0..ATTRIBUTES).collect();
        let schema = stored_schema(&relation.batch(0..0, &all)?.schema());
        let arena = Arena::new(Arc::clone(machine), Arc::new(LiveKernel::new()), None);
        let strategy = if node.is_some() { Strategy::Aligned } else { Strategy::Default };
        let destination = Destination { machine: Arc::clone(machine), arena, strategy };
        let node = node.unwrap_or(machine.nodes[0].id);
        let mut writer =
            ChunkWriter::new("bookings".into(), Arc::clone(&schema), destination, node, 0);
        for first in part.rows.clone().step_by(CHUNK_ROWS) {
            let last = (first + CHUNK_ROWS as u64).min(part.rows.end);
            writer.write(&relation.batch(first..last, &all)?)?;
        }
        let chunks = writer.finish()?.into_iter().map(Arc::new).collect();
        let snapshot = TableSnapshot::new(schema, chunks);
        Ok(Self { samples: ColumnSamples::from_snapshot(&snapshot), snapshot, statements })
    }

    /// Answers a batch in one pass.
    pub(super) fn answer(&self, batch: &[ScanQuery]) -> Result<Vec<QueryRows>> {
        let queries = batch.iter().map(|query| self.query(query)).collect::<Result<_>>()?;
        let schema = Arc::clone(&self.snapshot.schema);
        let batch = Arc::new(QueryBatch::new(schema, queries, &self.samples));
        let mut scan = BatchScan::new(batch, ROWS_MAX);
        for chunk in 0..self.snapshot.chunks.len() {
            scan.chunk(&self.snapshot, chunk, 0)?;
        }
        Ok(scan.finish()?.0)
    }

    fn query(&self, query: &ScanQuery) -> Result<BatchQuery> {
        ensure!(query.statement < self.statements.len(), "no statement {}", query.statement);
        let statement = self.statements[query.statement];
        let ([equal, range, _, text], [wanted, low, high, string]) =
            (statement.parameters(), query.numbers);
        let AttributeKind::Text(form) = BOOKINGS[text].kind else {
            anyhow::bail!("{} is not a string attribute", BOOKINGS[text].name);
        };
        let string: Box<str> = form.text(string).into();
        let tests = vec![
            (equal, ColumnTest::Number(NumberTest::In([wanted].into()))),
            (range, ColumnTest::Number(NumberTest::Between(low, high))),
            (text, ColumnTest::Text(TextTest::In([string].into()))),
        ];
        let projection = statement.output.into();
        Ok(BatchQuery { tests, projection, with_ids: false, limit: usize::MAX })
    }
}
