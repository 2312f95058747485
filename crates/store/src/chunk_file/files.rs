//! The files of chunks in a data directory, and which of them are in use.
//!
//! A file is in use while its chunk is in memory: in a version of the database, in a transaction that
//! may still commit, or in a snapshot that is being read. A file that is no longer in use may still be named by the
//! manifest or by records of the log after it; [`ChunkFiles::unused`] returns the files that may be removed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use arrow_schema::Schema;
use atoll_placement::Arena;
use atoll_topology::{Machine, NodeId};
use parking_lot::Mutex;

use super::read::{LoadedChunk, check, home, read};
use super::write::write;
use super::{CHUNK_DIRECTORY, chunk_file_id, chunk_file_name};
use crate::data_file::{DataFileError, DataFileKind, Envelope};
use crate::files::{DataFile, FileError, Files};
use crate::table::Chunk;
use crate::{ChunkFileId, DatabaseId};

/// Maximum number of files that are written but not synced: each stays open until it is.
const UNSYNCED_MAX: usize = 64;

/// The files of chunks in a data directory.
pub struct ChunkFiles {
    files: Arc<dyn Files>,
    database: DatabaseId,
    state: Mutex<FilesInUse>,
}

#[derive(Default)]
struct FilesInUse {
    next: u64,
    /// By the address of the chunk, which is not reused while there is a `Weak`.
    by_chunk: HashMap<usize, FileInUse>,
    /// Files that are written but may not be on disk.
    unsynced: BTreeMap<ChunkFileId, Arc<UnsyncedFile>>,
}

struct FileInUse {
    chunk: Weak<Chunk>,
    id: ChunkFileId,
    /// 0 while it is being written.
    bytes: u64,
}

/// A written file. It is synced once, however often a sync is requested: a sync after a failed one proves nothing.
struct UnsyncedFile {
    file: Arc<dyn DataFile>,
    synced: OnceLock<Result<(), FileError>>,
}

impl UnsyncedFile {
    fn sync(&self) -> Result<(), FileError> {
        self.synced.get_or_init(|| self.file.sync_data()).clone()
    }
}

impl ChunkFiles {
    /// The files of a directory, which is created if it does not exist. Numbers up to `last` are not used again.
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

    /// The files of a directory that is not written to.
    pub(crate) fn reading(files: Arc<dyn Files>, database: DatabaseId) -> Self {
        Self { files, database, state: Mutex::default() }
    }

    /// The last number given.
    pub fn last(&self) -> ChunkFileId {
        ChunkFileId::new(self.state.lock().next.saturating_sub(1))
    }

    fn envelope(&self, id: ChunkFileId) -> Envelope {
        Envelope { kind: DataFileKind::Chunk, database: self.database, number: id.get() }
    }

    /// Writes a chunk to a file of its own, or returns the file it already has. Before anything names the file,
    /// [`sync`](Self::sync) must bring it to disk, and [`sync_names`](Self::sync_names) its name. The schema
    /// holds the stored types of its columns. Several threads may write at the same time; none of them should be a
    /// worker.
    pub fn write(
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
            // From here on it is in use, so no checkpoint removes it while it is being written.
            state.add(chunk, id, 0);
            id
        };
        let written = self.write_file(id, chunk, schema);
        if written.is_err() {
            self.give_up(id);
        }
        let bytes = written?;
        self.state.lock().set_bytes(id, chunk, bytes);
        self.sync_oldest();
        Ok(WrittenChunk { id, bytes })
    }

    fn write_file(
        &self,
        id: ChunkFileId,
        chunk: &Chunk,
        schema: &Schema,
    ) -> Result<u64, DataFileError> {
        let file = self.files.create_unsynced(&chunk_file_name(id))?;
        let bytes = write(&*file, self.envelope(id), chunk, schema)?;
        file.begin_sync();
        let unsynced = UnsyncedFile { file, synced: OnceLock::new() };
        self.state.lock().unsynced.insert(id, Arc::new(unsynced));
        Ok(bytes)
    }

    /// Waits until a file that was written is on disk, but for its name.
    pub fn sync(&self, id: ChunkFileId) -> Result<(), FileError> {
        let unsynced = self.state.lock().unsynced.get(&id).map(Arc::clone);
        let Some(unsynced) = unsynced else { return Ok(()) };
        let synced = unsynced.sync();
        match &synced {
            Ok(()) => drop(self.state.lock().unsynced.remove(&id)),
            Err(_) => self.give_up(id),
        }
        synced
    }

    /// Waits until the names of all files that were written are on disk.
    pub fn sync_names(&self) -> Result<(), FileError> {
        self.files.sync_names(CHUNK_DIRECTORY)
    }

    /// Syncs the oldest file if many are waiting. If that fails, [`sync`](Self::sync) reports it to its callers.
    fn sync_oldest(&self) {
        let oldest = {
            let state = self.state.lock();
            let mut waiting = state.unsynced.iter().filter(|(_, file)| file.synced.get().is_none());
            let oldest = waiting.next().map(|(id, file)| (*id, Arc::clone(file)));
            oldest.filter(|_| state.unsynced.len() > UNSYNCED_MAX)
        };
        if let Some((id, file)) = oldest
            && file.sync().is_ok()
        {
            self.state.lock().unsynced.remove(&id);
        }
    }

    /// Forgets a file that is incomplete or may not be on disk, and removes its remains: they take space that
    /// may be the space that was missing.
    fn give_up(&self, id: ChunkFileId) {
        self.state.lock().by_chunk.retain(|_, file| file.id != id);
        let _ = self.files.remove(&chunk_file_name(id));
    }

    /// Reads a chunk into memory at its home, on a worker of that node if possible. A caller that keeps
    /// it calls [`register`](Self::register).
    pub fn read(&self, id: ChunkFileId, arena: &Arena) -> Result<LoadedChunk, DataFileError> {
        let file = self.files.open(&chunk_file_name(id))?;
        read(&*file, self.envelope(id), arena)
    }

    /// The node on which a chunk will be placed when it is read; `None` if any will do. Reads the beginning of its
    /// file.
    pub(crate) fn home(
        &self,
        id: ChunkFileId,
        machine: &Machine,
    ) -> Result<Option<NodeId>, DataFileError> {
        let file = self.files.open(&chunk_file_name(id))?;
        home(&*file, self.envelope(id), machine)
    }

    /// Reads a file and verifies all its checksums; returns the number of rows of the chunk.
    pub fn check(&self, id: ChunkFileId) -> Result<usize, DataFileError> {
        let file = self.files.open(&chunk_file_name(id))?;
        Ok(check(&*file, self.envelope(id))?.rows)
    }

    /// Registers the file, and its size, of a chunk in memory.
    pub fn register(&self, chunk: &Arc<Chunk>, id: ChunkFileId, bytes: u64) {
        self.state.lock().add(chunk, id, bytes);
    }

    /// The file of a chunk, if it has one.
    pub fn id_of(&self, chunk: &Arc<Chunk>) -> Option<ChunkFileId> {
        self.state.lock().id_of(chunk)
    }

    /// The files whose chunks are no longer in memory. All records that name them are in the log by now, so
    /// they can be removed once a checkpoint that begins after this call, and does not name them, is on disk.
    pub fn unused(&self) -> Result<Vec<ChunkFileId>, FileError> {
        let found = self.files.list(CHUNK_DIRECTORY)?;
        let mut state = self.state.lock();
        let state = &mut *state;
        state.by_chunk.retain(|_, file| !file.is_unused());
        let used: BTreeSet<_> = state.by_chunk.values().map(|file| file.id).collect();
        state.unsynced.retain(|id, _| used.contains(id));
        let found = found.iter().filter_map(|name| chunk_file_id(name));
        Ok(found.filter(|id| !used.contains(id)).collect())
    }

    /// Bytes of files whose chunks have left memory since the last call of [`unused`](Self::unused): the
    /// next checkpoint removes them.
    pub fn unused_bytes(&self) -> u64 {
        let state = self.state.lock();
        state.by_chunk.values().filter(|file| file.is_unused()).map(|file| file.bytes).sum()
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
    /// Bytes written by this call: 0 if the chunk already had a file.
    pub bytes: u64,
}

impl FilesInUse {
    fn add(&mut self, chunk: &Arc<Chunk>, id: ChunkFileId, bytes: u64) {
        let file = FileInUse { chunk: Arc::downgrade(chunk), id, bytes };
        self.by_chunk.insert(address(chunk), file);
    }

    /// The length of a file, unless it was given up meanwhile.
    fn set_bytes(&mut self, id: ChunkFileId, chunk: &Arc<Chunk>, bytes: u64) {
        if let Some(file) = self.by_chunk.get_mut(&address(chunk)).filter(|file| file.id == id) {
            file.bytes = bytes;
        }
    }

    fn id_of(&self, chunk: &Arc<Chunk>) -> Option<ChunkFileId> {
        self.by_chunk.get(&address(chunk)).map(|file| file.id)
    }
}

impl FileInUse {
    fn is_unused(&self) -> bool {
        self.chunk.strong_count() == 0
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
