//! From record batches to placed chunks.

use std::sync::Arc;

use super::bounds::bounds;
use super::chunk::{BLOCK_ROWS, CHUNK_ROWS, Chunk, ChunkCopy, ColumnStats, rising, zone};
use super::column::StoredColumn;
use super::encode::encode;
use super::error::TableError;
use super::place::place;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use atoll_placement::{Arena, ChunkHome, NodeBuffer, Strategy, verify_pages_sampled};
use atoll_topology::{Machine, NodeId};

type Result<T> = std::result::Result<T, TableError>;

/// Where a writer puts its chunks.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The machine with its homes.
    pub machine: Arc<Machine>,
    /// Where memory comes from.
    pub arena: Arena,
    /// The table's placement.
    pub strategy: Strategy,
}

/// Collects batches and turns every [`CHUNK_ROWS`] of them into a chunk.
#[derive(Debug)]
pub struct ChunkWriter {
    table: Arc<str>,
    destination: Destination,
    schema: SchemaRef,
    /// Columns that are declared NOT NULL.
    not_null: Vec<usize>,
    node: NodeId,
    /// Where all chunks go, whatever the placement says of their numbers.
    home: Option<ChunkHome>,
    /// Number of the next chunk, for strategies that deal chunks out in turn.
    next: usize,
    pending: Vec<RecordBatch>,
    pending_rows: usize,
    chunks: Vec<Chunk>,
}

impl ChunkWriter {
    /// A writer on `node` of rows with these stored types for a table, named in its errors, whose first
    /// chunk has the number `first`.
    pub fn new(
        table: Arc<str>,
        schema: SchemaRef,
        destination: Destination,
        node: NodeId,
        first: usize,
    ) -> Self {
        let not_null = |column: &usize| !schema.field(*column).is_nullable();
        Self {
            table,
            destination,
            not_null: (0..schema.fields().len()).filter(not_null).collect(),
            schema,
            node,
            home: None,
            next: first,
            pending: Vec::new(),
            pending_rows: 0,
            chunks: Vec::new(),
        }
    }

    /// The same with all chunks in one place, as rows that were elsewhere before have theirs.
    pub fn with_home(self, home: ChunkHome) -> Self {
        Self { home: Some(home), ..self }
    }

    /// Takes a batch; its columns are cast to the table's types.
    ///
    /// # Errors
    /// [`TableError`]; what was taken before is kept.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check(batch)?;
        let mut rest = batch.clone();
        while rest.num_rows() > 0 {
            let room = CHUNK_ROWS - self.pending_rows;
            let rows = room.min(rest.num_rows());
            self.pending.push(rest.slice(0, rows));
            self.pending_rows += rows;
            rest = rest.slice(rows, rest.num_rows() - rows);
            if self.pending_rows == CHUNK_ROWS {
                self.cut()?;
            }
        }
        Ok(())
    }

    /// The chunks, the last one filled as far as rows were given.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn finish(mut self) -> Result<Vec<Chunk>> {
        if self.pending_rows > 0 {
            self.cut()?;
        }
        Ok(self.chunks)
    }

    fn check(&self, batch: &RecordBatch) -> Result<()> {
        let is_null = |column: &&usize| batch.column(**column).logical_null_count() > 0;
        match self.not_null.iter().find(is_null) {
            None => Ok(()),
            Some(column) => Err(TableError::Null {
                column: self.schema.field(*column).name().clone(),
                table: self.table.to_string(),
            }),
        }
    }

    fn cut(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.pending);
        let rows = std::mem::take(&mut self.pending_rows);
        let columns = self.encode(&batches)?;
        let chunk = self.chunk_of(columns, rows)?;
        self.next += 1;
        self.chunks.push(chunk);
        Ok(())
    }

    /// A chunk of columns that are encoded already, as blocks of [`BLOCK_ROWS`] rows each (columns ×
    /// blocks), in this writer's place: one that is read from a file. Blocks of a column are encoded alike.
    ///
    /// # Errors
    /// [`TableError`] where there is no memory or no home for it.
    pub fn chunk_of(&self, columns: Vec<Vec<StoredColumn>>, rows: usize) -> Result<Chunk> {
        let stats = columns
            .iter()
            .zip(self.schema.fields())
            .map(|(blocks, field)| column_stats(blocks, field.data_type()))
            .collect::<Result<Vec<_>>>()?;
        let blocks = transpose(columns, rows.div_ceil(BLOCK_ROWS));
        let zones = blocks.iter().map(|block| block.iter().map(zone).collect()).collect();
        let block_bytes =
            blocks.iter().map(|block| block.iter().map(StoredColumn::bytes).collect());
        let block_bytes = block_bytes.collect();
        let (owner, copies) = self.place(&blocks)?;
        Ok(Chunk { rows, owner, copies, stats, zones, block_bytes })
    }

    fn encode(&self, batches: &[RecordBatch]) -> Result<Vec<Vec<StoredColumn>>> {
        let column = |index: usize| -> Vec<ArrayRef> {
            batches.iter().map(|batch| Arc::clone(batch.column(index))).collect()
        };
        (0..self.schema.fields().len())
            .map(|i| Ok(encode(&column(i), self.schema.field(i).data_type(), BLOCK_ROWS)?))
            .collect()
    }

    fn place(&self, blocks: &[Vec<StoredColumn>]) -> Result<(Option<NodeId>, Vec<ChunkCopy>)> {
        let Destination { machine, arena, strategy } = &self.destination;
        let home = match self.home {
            Some(home) => home,
            None => strategy.chunk_home(machine, self.node, self.next)?,
        };
        let wanted: Vec<Option<NodeId>> = match home {
            ChunkHome::Node(home) => vec![Some(home)],
            ChunkHome::Unbound => vec![None],
            ChunkHome::CopyPerNode => {
                machine.nodes_with_memory().map(|node| Some(node.id)).collect()
            }
        };
        let copy = |wanted: Option<NodeId>| -> Result<ChunkCopy> {
            let (blocks, memory) = place(blocks, arena, wanted)?;
            let found = memory.home().or_else(|| most_pages(arena, &memory));
            Ok(ChunkCopy { wanted, found, memory, blocks })
        };
        let copies = wanted.into_iter().map(copy).collect::<Result<_>>()?;
        Ok((self.owner(home)?, copies))
    }

    /// Whose workers scan a chunk: under strategies that bind threads the node that loaded it, or,
    /// where only a subset of the nodes has threads, the one that holds it; else any.
    fn owner(&self, home: ChunkHome) -> Result<Option<NodeId>> {
        let Destination { machine, strategy, .. } = &self.destination;
        let bound = strategy.home_of(machine, self.node)?.cpus.is_some();
        Ok(match (strategy, home) {
            (Strategy::Subset(_), ChunkHome::Node(home)) => Some(home),
            _ => bound.then_some(self.node),
        })
    }
}

/// Pages looked up to tell where a chunk without a wanted home ended up.
const PAGES_LOOKED_UP: u64 = 16;

fn most_pages(arena: &Arena, memory: &NodeBuffer) -> Option<NodeId> {
    let report =
        verify_pages_sampled(arena.kernel().as_ref(), &[memory.pages()], PAGES_LOOKED_UP).ok()?;
    report.by_node().into_iter().max_by_key(|(_, pages)| *pages).map(|(node, _)| node)
}

/// From columns of blocks to blocks of columns; a table without columns keeps its empty blocks.
fn transpose(columns: Vec<Vec<StoredColumn>>, blocks: usize) -> Vec<Vec<StoredColumn>> {
    let mut by_block: Vec<Vec<StoredColumn>> = (0..blocks).map(|_| Vec::new()).collect();
    for column in columns {
        for (block, part) in by_block.iter_mut().zip(column) {
            block.push(part);
        }
    }
    by_block
}

fn column_stats(blocks: &[StoredColumn], logical: &DataType) -> Result<ColumnStats> {
    let (mut bytes, mut distinct) = (0, None);
    for (index, block) in blocks.iter().enumerate() {
        bytes += block.bytes();
        if let (StoredColumn::Dictionary { values, .. }, 0) = (block, index) {
            bytes += StoredColumn::Plain(Arc::clone(values)).bytes();
            distinct = Some(values.len());
        }
    }
    Ok(ColumnStats {
        bounds: bounds(blocks, logical)?,
        nulls: blocks.iter().map(|block| block.rows().null_count()).sum(),
        bytes,
        distinct,
        rising: rising(blocks.iter()),
        encoding: blocks.first().map_or_else(String::new, encoding),
    })
}

fn encoding(column: &StoredColumn) -> String {
    match column {
        StoredColumn::Plain(_) => "plain".to_owned(),
        StoredColumn::Narrow(array) => format!("narrow {}", array.data_type()),
        StoredColumn::Dictionary { codes, .. } => format!("dictionary {}", codes.data_type()),
    }
}
