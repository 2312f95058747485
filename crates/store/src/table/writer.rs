//! From record batches to placed chunks.

use std::sync::Arc;

use super::chunk::{BLOCK_ROWS, CHUNK_ROWS, Chunk, ChunkCopy};
use super::column::StoredColumn;
use super::encode::encode;
use super::error::TableError;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use atoll_placement::{Arena, ChunkHome, Strategy};
use atoll_topology::{Machine, NodeId};

type Result<T> = std::result::Result<T, TableError>;

/// Where a writer places its chunks.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The machine and its homes.
    pub machine: Arc<Machine>,
    /// The source of memory.
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
    /// NOT NULL columns.
    not_null: Vec<usize>,
    node: NodeId,
    /// Home of all chunks, overriding the placement.
    home: Option<ChunkHome>,
    chunk_rows: usize,
    /// Number of the next chunk, for strategies that place chunks in turn.
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
            chunk_rows: CHUNK_ROWS,
            next: first,
            pending: Vec::new(),
            pending_rows: 0,
            chunks: Vec::new(),
        }
    }

    /// The same with all chunks in one place, for rows that already have a home.
    pub fn with_home(self, home: ChunkHome) -> Self {
        Self { home: Some(home), ..self }
    }

    /// The same with another number of rows per chunk, at most [`CHUNK_ROWS`] and at least one.
    pub fn with_chunk_rows(self, rows: usize) -> Self {
        Self { chunk_rows: rows.clamp(1, CHUNK_ROWS), ..self }
    }

    /// Takes a batch; its columns are cast to the table's types.
    ///
    /// # Errors
    /// [`TableError`]; earlier batches are kept.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check(batch)?;
        let mut rest = batch.clone();
        while rest.num_rows() > 0 {
            let room = self.chunk_rows - self.pending_rows;
            let rows = room.min(rest.num_rows());
            self.pending.push(rest.slice(0, rows));
            self.pending_rows += rows;
            rest = rest.slice(rows, rest.num_rows() - rows);
            if self.pending_rows == self.chunk_rows {
                self.cut()?;
            }
        }
        Ok(())
    }

    /// The chunks made so far and not taken yet.
    pub fn take_full(&mut self) -> Vec<Chunk> {
        std::mem::take(&mut self.chunks)
    }

    /// The remaining chunks; the last one may be partly filled.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn finish(mut self) -> Result<Vec<Chunk>> {
        self.cut_rest()?;
        Ok(self.chunks)
    }

    /// Makes a chunk of the remaining rows.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn cut_rest(&mut self) -> Result<()> {
        match self.pending_rows {
            0 => Ok(()),
            _ => self.cut(),
        }
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
        let blocks = transpose(columns, rows.div_ceil(BLOCK_ROWS));
        let (owner, copies) = self.place(&blocks)?;
        self.next += 1;
        self.chunks.push(Chunk::new(&self.schema, rows, owner, copies)?);
        Ok(())
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
        let copies = wanted.into_iter().map(|wanted| ChunkCopy::place(blocks, arena, wanted));
        let copies = copies.collect::<Result<_>>()?;
        Ok((self.owner(home)?, copies))
    }

    /// The node whose workers scan a chunk: under strategies that bind threads the node that loaded it, or,
    /// if only a subset of the nodes has threads, the one that holds it; else any.
    fn owner(&self, home: ChunkHome) -> Result<Option<NodeId>> {
        let Destination { machine, strategy, .. } = &self.destination;
        let bound = strategy.home_of(machine, self.node)?.cpus.is_some();
        Ok(match (strategy, home) {
            (Strategy::Subset(_), ChunkHome::Node(home)) => Some(home),
            _ => bound.then_some(self.node),
        })
    }
}

/// Converts columns of blocks to blocks of columns; a table without columns keeps its empty blocks.
fn transpose(columns: Vec<Vec<StoredColumn>>, blocks: usize) -> Vec<Vec<StoredColumn>> {
    let mut by_block: Vec<Vec<StoredColumn>> = (0..blocks).map(|_| Vec::new()).collect();
    for column in columns {
        for (block, part) in by_block.iter_mut().zip(column) {
            block.push(part);
        }
    }
    by_block
}
