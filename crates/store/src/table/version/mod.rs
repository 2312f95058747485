//! What a table holds at one moment, by row: the next version shares with it what did not change.
//!
//! ```text
//! TableVersion ── entries, by the id of the first row ── ChunkEntry ── chunk, ids of its rows
//!      │                                                     ├── mask: rows that are gone or have newer values
//!      │                                                     └── delta: the newer values, row by row
//!      ├── tail: rows that are in no chunk yet
//!      └── an index for each PRIMARY KEY and UNIQUE constraint
//! ```
//!
//! A row has an id for life. The row with an id is in the entry with the largest first id that is not above it,
//! if that entry has the id, else in the tail: ranges of entries do not overlap, though rows of the tail may
//! have ids within them. A change of one row copies the paths to it and nothing that grows with the table.
//!
//! | file | what |
//! |---|---|
//! | `entry.rs` | a chunk with what changed of it |
//! | `home.rs` | where rows are |
//! | `loose.rs` | rows by themselves, and the same rows as a chunk for those who scan |
//! | `apply.rs` | the version after a change |
//! | `fold.rs` | rows that changed as chunks again |
//! | `rewrite.rs` | a chunk with other values, for UPDATEs of many rows |
//! | `merge.rs` | rows of several places in their order, for both |
//! | `index/` | rows by key |
//! | `entry_keys.rs` | the keys of an entry's rows |
//! | `keys.rs` | indexes kept up with rows; keys that come twice |
//! | `new_keys.rs` | keys of many rows, got ready in pieces |
//! | `references.rs` | keys that come, go and are looked for: what foreign keys ask |
//! | `restore.rs` | a version from what a checkpoint keeps |
//! | `view.rs` | the version as scans read it |

mod apply;
mod entry;
mod entry_keys;
mod fold;
mod home;
mod index;
mod keys;
mod loose;
mod merge;
mod new_keys;
mod references;
mod restore;
mod rewrite;
mod view;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_array::ArrayRef;
use atoll_topology::NodeId;
use imbl::OrdMap;

use super::definition::TableDefinition;
use super::error::TableError;
use super::row::{Key, Row, RowCodec};
use super::snapshot::TableSnapshot;
use super::writer::{ChunkWriter, Destination};
use crate::ids::RowId;

pub use entry::ChunkEntry;
pub use fold::{FoldPolicy, FoldTask, Folded};
use index::UniqueIndex;
use loose::LooseRows;
pub use new_keys::{ChunkKeys, KeyTask, NewKeys, SortKeysTask, SortedRanges};
pub use references::ChangedKeys;
pub use restore::RestoredEntry;
pub use rewrite::RewriteTask;

type Result<T> = std::result::Result<T, TableError>;

/// What a table holds at one moment; see the module.
#[derive(Clone, Debug)]
pub struct TableVersion {
    shared: Arc<Shared>,
    entries: OrdMap<RowId, Arc<ChunkEntry>>,
    tail: LooseRows,
    indexes: Vec<UniqueIndex>,
    rows: usize,
    /// The id that comes next, for all versions of the table.
    next_row_id: Arc<AtomicU64>,
    view: OnceLock<Arc<TableSnapshot>>,
}

/// What versions of a table share until it is altered.
#[derive(Debug)]
struct Shared {
    name: Arc<str>,
    definition: Arc<TableDefinition>,
    destination: Destination,
    codec: Arc<RowCodec>,
}

impl Shared {
    /// A writer on a node of chunks for the table.
    fn writer(&self, node: NodeId) -> ChunkWriter {
        let (name, schema) = (Arc::clone(&self.name), Arc::clone(self.codec.schema()));
        ChunkWriter::new(name, schema, self.destination.clone(), node, 0)
    }

    fn misfit(&self, problem: String) -> TableError {
        TableError::Misfit { table: self.name.to_string(), problem }
    }
}

impl TableVersion {
    /// A table without rows. The name is for errors.
    ///
    /// # Errors
    /// [`TableError::Unsupported`] for a column of a type whose rows cannot be stored.
    pub fn new(
        name: Arc<str>,
        definition: Arc<TableDefinition>,
        destination: Destination,
    ) -> Result<Self> {
        let codec = Arc::new(RowCodec::new(&definition.columns)?);
        let indexes = definition.uniques.iter().map(UniqueIndex::new).collect();
        Ok(Self {
            shared: Arc::new(Shared { name, definition, destination, codec }),
            entries: OrdMap::new(),
            tail: LooseRows::default(),
            indexes,
            rows: 0,
            next_row_id: Arc::default(),
            view: OnceLock::new(),
        })
    }

    /// The same rows under another name in errors.
    pub fn with_name(&self, name: Arc<str>) -> Self {
        let Shared { definition, destination, codec, .. } = &*self.shared;
        let shared = Shared {
            name,
            definition: Arc::clone(definition),
            destination: destination.clone(),
            codec: Arc::clone(codec),
        };
        Self { shared: Arc::new(shared), ..self.clone() }
    }

    /// The same rows under another definition. The index of a constraint that was there before, by its
    /// columns, is kept; others are built. Whether rows have NULL where a column is NOT NULL from now on,
    /// or break a new CHECK, is seen to before.
    ///
    /// # Errors
    /// [`TableError::Duplicate`] for the first key of a new constraint that several rows have,
    /// [`TableError::Misfit`] where columns have other types and the table has rows: change those first, by
    /// a change that truncates it, and append them anew afterwards.
    pub fn with_definition(&self, definition: Arc<TableDefinition>) -> Result<Self> {
        let types = |definition: &TableDefinition| -> Vec<_> {
            definition.columns.fields().iter().map(|f| f.data_type().clone()).collect()
        };
        if self.rows > 0 && types(&definition) != types(&self.shared.definition) {
            let problem = "its columns get other types while it has rows".to_owned();
            return Err(self.shared.misfit(problem));
        }
        let shared = Shared {
            name: Arc::clone(&self.shared.name),
            codec: Arc::new(RowCodec::new(&definition.columns)?),
            destination: Destination {
                strategy: definition.placement,
                ..self.shared.destination.clone()
            },
            definition,
        };
        let mut changed = Self { shared: Arc::new(shared), view: OnceLock::new(), ..self.clone() };
        changed.indexes = Vec::new();
        for unique in &changed.shared.definition.uniques {
            let known = self.indexes.iter().find(|index| index.has_columns(&unique.columns));
            changed.indexes.push(match known {
                Some(known) => known.clone(),
                None => changed.build_index(unique)?,
            });
        }
        Ok(changed)
    }

    /// What is declared of it.
    pub fn definition(&self) -> &Arc<TableDefinition> {
        &self.shared.definition
    }

    /// Its name in errors.
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// Where its chunks go.
    pub fn destination(&self) -> &Destination {
        &self.shared.destination
    }

    /// What makes rows of batches for it and back.
    pub fn codec(&self) -> &Arc<RowCodec> {
        &self.shared.codec
    }

    /// Takes `count` ids in a row, of which no other row of the table ever has one; the first of them.
    pub fn reserve(&self, count: usize) -> RowId {
        RowId::new(self.next_row_id.fetch_add(count as u64, Ordering::Relaxed))
    }

    /// The id that is given next.
    pub fn next_row_id(&self) -> RowId {
        RowId::new(self.next_row_id.load(Ordering::Relaxed))
    }

    /// Ids below this one are given no more, as after a recovery.
    pub fn raise_next_row_id(&self, next: RowId) {
        self.next_row_id.fetch_max(next.get(), Ordering::Relaxed);
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Rows of its chunks that are gone or have newer values.
    pub fn deleted_rows(&self) -> usize {
        self.entries.values().map(|entry| entry.deleted_rows()).sum()
    }

    /// Rows that are in no chunk: newer values and the tail.
    pub fn delta_rows(&self) -> usize {
        let newer: usize = self.entries.values().map(|entry| entry.delta().count()).sum();
        newer + self.tail.len()
    }

    /// Bytes of rows that are in no chunk, and of what says which rows are in its chunks, about.
    pub fn loose_bytes(&self) -> usize {
        let newer = self.entries.values().map(|entry| entry.loose_bytes());
        newer.sum::<usize>() + self.tail.row_bytes()
    }

    /// Bytes of memory of its indexes, about.
    pub fn index_bytes(&self) -> usize {
        self.indexes.iter().map(UniqueIndex::memory_bytes).sum()
    }

    /// Bytes of memory of its chunks, rows and indexes, these about.
    pub fn memory_bytes(&self) -> usize {
        let entries: usize = self.entries.values().map(|entry| entry.memory_bytes()).sum();
        entries + self.tail.memory_bytes() + self.index_bytes()
    }

    /// Its chunks in the order of their rows.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Arc<ChunkEntry>> {
        self.entries.values()
    }

    /// The rows that are in no chunk yet, in their order.
    pub fn tail(&self) -> impl ExactSizeIterator<Item = (RowId, &Row)> {
        self.tail.iter()
    }

    /// The row with an id as it is by now; none where there is none.
    pub fn row(&self, id: RowId) -> Option<Row> {
        match self.in_chunk(id) {
            Some((entry, at)) => entry.row(&self.shared.codec, id, at),
            None => self.tail.get(id).cloned(),
        }
    }

    /// Some columns of rows as they are by now, in the order of the ids and of the projection: for the few rows
    /// that an index finds. A single row of a chunk is not copied.
    ///
    /// # Errors
    /// [`TableError::Misfit`] where there is no row with one of the ids.
    pub fn read(&self, ids: &[RowId], projection: &[usize]) -> Result<Vec<ArrayRef>> {
        if let [id] = ids
            && let Some((entry, at)) = self.in_chunk(*id)
            && !entry.is_masked(at)
        {
            return entry.read(&self.shared.codec, at, projection);
        }
        let row = |id: &RowId| {
            let row = self.row(*id);
            row.ok_or_else(|| self.shared.misfit(format!("row {id} to be read does not exist")))
        };
        let rows = ids.iter().map(row).collect::<Result<Vec<_>>>()?;
        self.shared.codec.decode_arrays(&rows, projection)
    }

    /// The entry whose chunk has an id, and the row of the chunk.
    fn in_chunk(&self, id: RowId) -> Option<(&Arc<ChunkEntry>, usize)> {
        let (_, entry) = self.entries.get_prev(&id)?;
        Some((entry, entry.ids().position(id)?))
    }

    /// Whether the row with an id is there.
    pub fn has(&self, id: RowId) -> bool {
        match self.in_chunk(id) {
            Some((entry, at)) => entry.has(id, at),
            None => self.tail.get(id).is_some(),
        }
    }

    /// Whether the row with an id is the same in two versions of the table: there in neither, or in both
    /// with equal values.
    pub fn same_row(&self, other: &Self, id: RowId) -> bool {
        if let (Some((one, at)), Some((two, _))) = (self.in_chunk(id), other.in_chunk(id))
            && Arc::ptr_eq(one.chunk(), two.chunk())
        {
            let in_chunk = |entry: &ChunkEntry| !entry.is_masked(at);
            match (in_chunk(one), in_chunk(two)) {
                (true, true) => return true,
                (false, false) => {
                    let (one, two) = (one.delta_row(id), two.delta_row(id));
                    return match (one, two) {
                        (Some(one), Some(two)) => one.ptr_eq(two) || one == two,
                        (one, two) => one.is_none() && two.is_none(),
                    };
                }
                _ => {}
            }
        }
        self.row(id) == other.row(id)
    }

    /// The row with a key under the constraint of this number in the definition.
    pub fn find(&self, unique: usize, key: &Key) -> Option<RowId> {
        self.find_all(unique, key).next()
    }

    /// All rows with a key: several only where a change that breaks the constraint was applied. One row may come
    /// twice.
    pub fn find_all<'a>(&'a self, unique: usize, key: &'a Key) -> impl Iterator<Item = RowId> + 'a {
        let index = &self.indexes[unique];
        let has_key = |id: &RowId| self.key_of(*id, index.columns()).as_ref() == Some(key);
        index.candidates(key).filter(has_key)
    }

    /// The key of a row; none where it has a NULL, or where there is no such row.
    pub fn key_of(&self, id: RowId, columns: &[usize]) -> Option<Key> {
        let codec = &self.shared.codec;
        match self.in_chunk(id) {
            Some((entry, at)) => entry.key(codec, id, at, columns),
            None => codec.key(self.tail.get(id)?, columns),
        }
    }
}
