//! Chunks read in parallel, each on its node.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use atoll_placement::Arena;
use atoll_topology::NodeId;

use super::OpenProgress;
use crate::chunk_file::{ChunkFiles, HomeChange};
use crate::data_file::DataFileError;
use crate::ids::ChunkFileId;
use crate::table::Chunk;

/// A task of opening a database: reads one chunk into memory at its home. Run it on a worker of its node.
#[derive(Debug)]
pub struct RecoveryTask {
    chunks: Arc<ChunkFiles>,
    id: ChunkFileId,
    arena: Arena,
    progress: Arc<OpenProgress>,
}

/// The result of a task.
#[derive(Debug)]
pub struct RecoveredChunk {
    pub(super) id: ChunkFileId,
    pub(super) chunk: Result<RegisteredChunk, Arc<DataFileError>>,
}

/// A chunk as read, whose file is registered.
#[derive(Clone, Debug)]
pub(super) struct RegisteredChunk {
    pub(super) chunk: Arc<Chunk>,
    pub(super) schema: SchemaRef,
    pub(super) home: HomeChange,
    pub(super) bytes: u64,
}

impl RecoveryTask {
    pub(super) fn new(
        chunks: &Arc<ChunkFiles>,
        id: ChunkFileId,
        arena: Arena,
        progress: Arc<OpenProgress>,
    ) -> Self {
        Self { chunks: Arc::clone(chunks), id, arena, progress }
    }

    /// The node on which the chunk will be placed. Returns None if any will do. Reads the beginning of the file;
    /// [`run`](Self::run) reports errors.
    pub fn node(&self) -> Option<NodeId> {
        self.chunks.home(self.id, self.arena.machine()).ok()?
    }

    /// Reads the chunk.
    pub fn run(self) -> RecoveredChunk {
        let chunk = self.chunks.read(self.id, &self.arena).map(|loaded| {
            let chunk = Arc::new(loaded.chunk);
            self.chunks.register(&chunk, self.id, loaded.bytes);
            RegisteredChunk { chunk, schema: loaded.schema, home: loaded.home, bytes: loaded.bytes }
        });
        self.progress.chunk(chunk.as_ref().map_or(0, |chunk| chunk.bytes));
        RecoveredChunk { id: self.id, chunk: chunk.map_err(Arc::new) }
    }
}
