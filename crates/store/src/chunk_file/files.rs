//! The files of chunks in a data directory, and which of them are in use.
//!
//! A file is in use as long as its chunk is in memory: in a version of the database, in a transaction that
//! may still commit, or in a snapshot that is being read. What is in use no longer may still be named by the
//! manifest or by records of the log behind it; [`ChunkFiles::unused`] says when it may go.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use arrow_schema::Schema;
use atoll_placement::Arena;
use atoll_topology::{Machine, NodeId};
use parking_lot::Mutex;

use super::read::{LoadedChunk, check, home, read};
use super::write::write;
use super::{CHUNK_DIRECTORY, chunk_file_id, chunk_file_name};
use crate::data_file::{DataFileError, DataFileKind, Envelope};
use crate::files::{FileError, Files};
use crate::table::Chunk;
use crate::{ChunkFileId, DatabaseId};

/// The files of chunks in a data directory.
pub struct ChunkFiles {
    files: Arc<dyn Files>,
    database: DatabaseId,
    state: Mutex<FilesInUse>,
}

#[derive(Default)]
struct FilesInUse {
    next: u64,
    /// By the address of the chunk, which is not given to another one while there is a `Weak`.
    by_chunk: HashMap<usize, (Weak<Chunk>, ChunkFileId)>,
}

impl ChunkFiles {
    /// The files of a directory, which is made when it does not exist. No number up to `last` is used again.
    pub fn open(
        files: Arc<dyn Files>,
        database: DatabaseId,
        last: ChunkFileId,
    ) -> Result<Self, FileError> {
        files.create_directory(CHUNK_DIRECTORY)?;
        let found = files.list(CHUNK_DIRECTORY)?;
        let last = found.iter().filter_map(|name| chunk_file_id(name)).fold(last, ChunkFileId::max);
        let state = FilesInUse { next: last.get() + 1, ..FilesInUse::default() };
        Ok(Self { files, database, state: Mutex::new(state) })
    }

    /// The files of a directory in which nothing is to be written.
    pub(crate) fn reading(files: Arc<dyn Files>, database: DatabaseId) -> Self {
        Self { files, database, state: Mutex::default() }
    }

    /// The last number that was given.
    pub fn last(&self) -> ChunkFileId {
        ChunkFileId::new(self.state.lock().next.saturating_sub(1))
    }

    fn envelope(&self, id: ChunkFileId) -> Envelope {
        Envelope { kind: DataFileKind::Chunk, database: self.database, number: id.get() }
    }

    /// Writes a chunk to a file of its own and syncs it with its name, or finds the one it has. The schema holds
    /// the stored types of its columns. Several threads may write at the same time; none of them should be a
    /// worker.
    pub fn write(
        &self,
        chunk: &Arc<Chunk>,
        schema: &Schema,
    ) -> Result<WrittenChunk, DataFileError> {
        let written = self.write_content(chunk, schema)?;
        if written.bytes > 0
            && let Err(error) = self.sync_names()
        {
            self.state.lock().by_chunk.remove(&address(chunk));
            return Err(error.into());
        }
        Ok(written)
    }

    /// Waits until the names of all files that were written are on disk.
    pub fn sync_names(&self) -> Result<(), FileError> {
        self.files.sync_names(CHUNK_DIRECTORY)
    }

    /// As [`write`](Self::write), but for the name: of many chunks [`sync_names`](Self::sync_names) comes once, behind
    /// the last one and before a record names them.
    pub fn write_content(
        &self,
        chunk: &Arc<Chunk>,
        schema: &Schema,
    ) -> Result<WrittenChunk, DataFileError> {
        let id = {
            let mut state = self.state.lock();
            if let Some(id) = state.id_of(chunk) {
                return Ok(WrittenChunk { id, bytes: 0 });
            }
            let id = ChunkFileId::new(state.next);
            state.next += 1;
            // From here on it is in use, so that no checkpoint removes it while it is written.
            state.add(chunk, id);
            id
        };
        let written = self.write_file(id, chunk, schema);
        if written.is_err() {
            self.state.lock().by_chunk.remove(&address(chunk));
            // What is left of it takes space that may be what was missing.
            let _ = self.files.remove(&chunk_file_name(id));
        }
        Ok(WrittenChunk { id, bytes: written? })
    }

    fn write_file(
        &self,
        id: ChunkFileId,
        chunk: &Chunk,
        schema: &Schema,
    ) -> Result<u64, DataFileError> {
        let file = self.files.create_unsynced(&chunk_file_name(id))?;
        write(&*file, self.envelope(id), chunk, schema)
    }

    /// Reads a chunk into memory at its home, on a worker of that node if possible. A caller that keeps
    /// it says so by [`register`](Self::register).
    pub fn read(&self, id: ChunkFileId, arena: &Arena) -> Result<LoadedChunk, DataFileError> {
        let file = self.files.open(&chunk_file_name(id))?;
        read(&*file, self.envelope(id), arena)
    }

    /// The node on which a chunk will lie when it is read; none where any will do. Reads the beginning of its
    /// file.
    pub(crate) fn home(
        &self,
        id: ChunkFileId,
        machine: &Machine,
    ) -> Result<Option<NodeId>, DataFileError> {
        let file = self.files.open(&chunk_file_name(id))?;
        home(&*file, self.envelope(id), machine)
    }

    /// Reads a file and compares all its checksums; the rows of the chunk.
    pub fn check(&self, id: ChunkFileId) -> Result<usize, DataFileError> {
        let file = self.files.open(&chunk_file_name(id))?;
        Ok(check(&*file, self.envelope(id))?.rows)
    }

    /// Says that a chunk in memory has this file.
    pub fn register(&self, chunk: &Arc<Chunk>, id: ChunkFileId) {
        self.state.lock().add(chunk, id);
    }

    /// The file of a chunk, if it has one.
    pub fn id_of(&self, chunk: &Arc<Chunk>) -> Option<ChunkFileId> {
        self.state.lock().id_of(chunk)
    }

    /// The files whose chunks are not in memory any more. All records that name them are in the log by now, so
    /// they can be removed when a checkpoint that begins after this call, and does not name them, is on disk.
    pub fn unused(&self) -> Result<Vec<ChunkFileId>, FileError> {
        let found = self.files.list(CHUNK_DIRECTORY)?;
        let mut state = self.state.lock();
        state.by_chunk.retain(|_, (chunk, _)| chunk.strong_count() > 0);
        let used: std::collections::BTreeSet<_> =
            state.by_chunk.values().map(|(_, id)| *id).collect();
        let found = found.iter().filter_map(|name| chunk_file_id(name));
        Ok(found.filter(|id| !used.contains(id)).collect())
    }

    /// Removes a file.
    pub fn remove(&self, id: ChunkFileId) -> Result<(), FileError> {
        self.files.remove(&chunk_file_name(id))
    }
}

/// A chunk that has a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenChunk {
    /// The file.
    pub id: ChunkFileId,
    /// Bytes that were written now: 0 where the chunk had a file.
    pub bytes: u64,
}

impl FilesInUse {
    fn add(&mut self, chunk: &Arc<Chunk>, id: ChunkFileId) {
        self.by_chunk.insert(address(chunk), (Arc::downgrade(chunk), id));
    }

    fn id_of(&self, chunk: &Arc<Chunk>) -> Option<ChunkFileId> {
        self.by_chunk.get(&address(chunk)).map(|(_, id)| *id)
    }
}

fn address(chunk: &Arc<Chunk>) -> usize {
    Arc::as_ptr(chunk) as usize
}

impl fmt::Debug for ChunkFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkFiles").field("last", &self.last()).finish_non_exhaustive()
    }
}
