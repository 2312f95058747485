//! Keys of many rows, prepared for the indexes in parallel pieces before the rows are
//! part of a version.
//!
//! ```text
//! KeyTask::run       a chunk: hashes of its keys, divided into ranges       on a worker of its node
//!    │ ChunkKeys
//! SortKeysTask::run  some ranges of all chunks: sorted                  on any worker
//!    │ SortedRanges
//! NewKeys            added to indexes unchanged
//! ```

use std::ops::Range;
use std::sync::Arc;

use atoll_topology::NodeId;

use super::super::change::TableChange;
use super::super::row::RowCodec;
use super::entry_keys::{appended_entries, hash_entry};
use super::index::{HashedRow, HashedRows, RANGES, SortedKeys, UniqueIndex, sorted_ranges};
use super::{ChunkEntry, Result, TableVersion};
use crate::workers::{Workers, map};

/// Ranges of hashes that are sorted in one task.
const SORTED_AT_ONCE: usize = RANGES / 16;

/// Hashes the keys of a chunk. Run it on a worker of its node.
#[derive(Debug)]
pub struct KeyTask {
    codec: Arc<RowCodec>,
    /// Columns of each index.
    indexes: Vec<Arc<[usize]>>,
    entry: Arc<ChunkEntry>,
}

/// The keys of a chunk, for each index.
#[derive(Debug)]
pub struct ChunkKeys(Vec<(Arc<[usize]>, HashedRows)>);

impl KeyTask {
    /// The node of the chunk; `None` if any worker will do.
    pub fn node(&self) -> Option<NodeId> {
        self.entry.home().node
    }

    /// Hashes the keys.
    pub fn run(self) -> Result<ChunkKeys> {
        let hashed = |columns: &Arc<[usize]>| {
            let mut rows: Vec<HashedRow> = Vec::with_capacity(self.entry.rows());
            hash_entry(&self.codec, &self.entry, columns, &mut rows)?;
            Ok((Arc::clone(columns), HashedRows::from_rows(rows)))
        };
        Ok(ChunkKeys(self.indexes.iter().map(hashed).collect::<Result<_>>()?))
    }
}

/// Sorts the keys of all chunks in some ranges, for one index.
#[derive(Debug)]
pub struct SortKeysTask {
    pieces: Arc<Vec<ChunkKeys>>,
    /// The number of the index in each piece.
    index: usize,
    ranges: Range<usize>,
}

/// Sorted keys of some ranges.
#[derive(Debug)]
pub struct SortedRanges {
    columns: Arc<[usize]>,
    ranges: Vec<Arc<[HashedRow]>>,
}

impl SortKeysTask {
    /// Sorts them.
    pub fn run(self) -> SortedRanges {
        let columns = self.pieces.first().map(|piece| Arc::clone(&piece.0[self.index].0));
        let pieces = self.pieces.iter().map(|piece| &piece.0[self.index].1);
        let ranges = sorted_ranges(pieces, self.ranges);
        SortedRanges { columns: columns.unwrap_or_default(), ranges }
    }
}

/// The keys that the chunks of a change add to each index; empty if they are to be computed when the change is
/// applied.
#[derive(Clone, Debug, Default)]
pub struct NewKeys(Arc<[IndexKeys]>);

/// The keys for an index over these columns.
#[derive(Clone, Debug)]
struct IndexKeys {
    columns: Arc<[usize]>,
    keys: SortedKeys,
}

impl NewKeys {
    /// Sorts the keys of all chunks of a change.
    pub fn sort_tasks(pieces: Vec<ChunkKeys>) -> Vec<SortKeysTask> {
        let indexes = pieces.first().map_or(0, |piece| piece.0.len());
        let pieces = Arc::new(pieces);
        let tasks = (0..indexes).flat_map(|index| {
            let pieces = Arc::clone(&pieces);
            (0..RANGES).step_by(SORTED_AT_ONCE).map(move |first| SortKeysTask {
                pieces: Arc::clone(&pieces),
                index,
                ranges: first..first + SORTED_AT_ONCE,
            })
        });
        tasks.collect()
    }

    /// The keys, from the results of all these tasks, in their order.
    pub fn from_parts(parts: Vec<SortedRanges>) -> Self {
        let of_index = |parts: &[SortedRanges]| IndexKeys {
            columns: Arc::clone(&parts[0].columns),
            keys: SortedKeys::of_ranges(
                parts.iter().flat_map(|part| part.ranges.clone()).collect(),
            ),
        };
        Self(parts.chunks(RANGES / SORTED_AT_ONCE).map(of_index).collect())
    }

    /// Whether they belong to these indexes.
    pub(super) fn are_of(&self, indexes: &[UniqueIndex]) -> bool {
        self.0.iter().map(|keys| &keys.columns).eq(indexes.iter().map(UniqueIndex::columns))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SortedKeys> {
        self.0.iter().map(|index| &index.keys)
    }
}

impl TableVersion {
    /// The first tasks that prepare the keys of a change's new chunks for its indexes. Returns none without an index.
    pub fn key_tasks(&self, change: &TableChange) -> Vec<KeyTask> {
        self.key_tasks_of(appended_entries(change).into_iter())
    }

    fn key_tasks_of(&self, entries: impl Iterator<Item = Arc<ChunkEntry>>) -> Vec<KeyTask> {
        let indexes: Vec<Arc<[usize]>> =
            self.indexes.iter().map(|index| Arc::clone(index.columns())).collect();
        if indexes.is_empty() {
            return Vec::new();
        }
        let codec = &self.shared.codec;
        let task = |entry| KeyTask { codec: Arc::clone(codec), indexes: indexes.clone(), entry };
        entries.map(task).collect()
    }

    /// The keys of these entries for all indexes.
    pub(super) fn keys_of_entries(
        &self,
        entries: &[Arc<ChunkEntry>],
        workers: &dyn Workers,
    ) -> Result<NewKeys> {
        let tasks = self.key_tasks_of(entries.iter().cloned());
        let pieces = map(workers, tasks, KeyTask::run);
        let pieces = pieces.into_iter().collect::<Result<Vec<_>>>()?;
        if pieces.is_empty() {
            return Ok(NewKeys::default());
        }
        let sorted = map(workers, NewKeys::sort_tasks(pieces), SortKeysTask::run);
        Ok(NewKeys::from_parts(sorted))
    }
}
