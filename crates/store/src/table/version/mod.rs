//! The contents of a table at one moment, by row: versions share everything that did not change.
//!
//! ```text
//! TableVersion ── entries, by the id of the first row ── ChunkEntry ── chunk, ids of its rows
//!      │                                                     ├── mask: rows that are deleted or have newer values
//!      │                                                     └── delta: the newer values, row by row
//!      ├── tail: rows that are not in a chunk yet
//!      └── an index for each PRIMARY KEY and UNIQUE constraint, and for each CREATE INDEX
//! ```
//!
//! A row keeps its id for life. The row with an id is in the entry with the largest first id that is not above it,
//! if that entry contains the id, else in the tail: ranges of entries do not overlap, but rows of the tail may
//! have ids within them. A change of one row copies the paths to it, and nothing that grows with the table.
//!
//! | file | what |
//! |---|---|
//! | `entry.rs` | a chunk with its changes |
//! | `home.rs` | homes of rows |
//! | `loose.rs` | loose rows, and the same rows as chunks for scans |
//! | `apply.rs` | the version after a change |
//! | `fold.rs` | folding changed rows into chunks |
//! | `rewrite.rs` | rewriting a chunk for UPDATEs of many rows |
//! | `merge.rs` | merging rows of several sources, for both |
//! | `index/` | rows by key |
//! | `entry_keys.rs` | the keys of an entry's rows |
//! | `keys.rs` | index maintenance; duplicate keys |
//! | `new_keys.rs` | keys of many rows, prepared in pieces |
//! | `ordered/` | rows in the order of columns |
//! | `ordered_keys.rs` | these indexes kept up with rows |
//! | `references.rs` | added, removed and looked up keys, for foreign keys |
//! | `restore.rs` | a version restored from a checkpoint |
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
mod ordered;
mod ordered_keys;
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
use ordered::OrderedIndex;
pub use ordered::{OrderWords, is_indexable, order_words};
pub use references::ChangedKeys;
pub use restore::RestoredEntry;
pub use rewrite::RewriteTask;

type Result<T> = std::result::Result<T, TableError>;

/// The contents of a table at one moment; see the module.
#[derive(Clone, Debug)]
pub struct TableVersion {
    shared: Arc<Shared>,
    entries: OrdMap<RowId, Arc<ChunkEntry>>,
    tail: LooseRows,
    indexes: Vec<UniqueIndex>,
    /// For each of the definition's indexes.
    ordered: Vec<OrderedIndex>,
    rows: usize,
    /// The next id, for all versions of the table.
    next_row_id: Arc<AtomicU64>,
    view: OnceLock<Arc<TableSnapshot>>,
}

/// State shared by versions of a table until it is altered.
#[derive(Debug)]
struct Shared {
    name: Arc<str>,
    definition: Arc<TableDefinition>,
    destination: Destination,
    codec: Arc<RowCodec>,
}

impl Shared {
    /// A writer on a node for chunks of the table.
    fn writer(&self, node: NodeId) -> ChunkWriter {
        let (name, schema) = (Arc::clone(&self.name), Arc::clone(self.codec.schema()));
        ChunkWriter::new(name, schema, self.destination.clone(), node, 0)
    }

    fn misfit(&self, problem: String) -> TableError {
        TableError::Misfit { table: self.name.to_string(), problem }
    }
}

impl TableVersion {
    /// An empty table. The name is for errors.
    ///
    /// # Errors
    /// [`TableError::Unsupported`] for a column of a type whose rows cannot be stored.
    pub fn new(
        name: Arc<str>,
        definition: Arc<TableDefinition>,
        destination: Destination,
    ) -> Result<Self> {
        let codec = Arc::new(definition.codec()?);
        let indexes = 0..definition.uniques.len();
        let indexes = indexes.map(|at| UniqueIndex::new(&definition.key_columns(at))).collect();
        let ordered = definition.indexes.iter().map(OrderedIndex::new).collect();
        Ok(Self {
            shared: Arc::new(Shared { name, definition, destination, codec }),
            entries: OrdMap::new(),
            tail: LooseRows::default(),
            indexes,
            ordered,
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

    /// The same rows under another definition. The index of an existing constraint, identified by its
    /// key, is kept; others are built. The caller checks that no row has NULL in new NOT NULL columns
    /// or violates a new CHECK.
    ///
    /// # Errors
    /// [`TableError::Duplicate`] for the first key of a new constraint that several rows have,
    /// [`TableError::Misfit`] if types of columns change and the table has rows: change those first, by
    /// a change that truncates it, and append them again afterwards.
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
            codec: Arc::new(definition.codec()?),
            destination: Destination {
                strategy: definition.placement,
                ..self.shared.destination.clone()
            },
            definition,
        };
        let mut changed = Self { shared: Arc::new(shared), view: OnceLock::new(), ..self.clone() };
        changed.indexes = Vec::new();
        for (at, unique) in changed.shared.definition.uniques.iter().enumerate() {
            let mut known = self.shared.definition.uniques.iter().zip(&self.indexes);
            let known = known.find(|(known, _)| known.has_key_of(unique));
            let columns = changed.shared.definition.key_columns(at);
            changed.indexes.push(match known {
                Some((_, known)) => known.with_columns(&columns),
                None => changed.build_index(unique, &columns)?,
            });
        }
        changed.ordered_for_definition(&self.ordered)?;
        Ok(changed)
    }

    /// Its definition.
    pub fn definition(&self) -> &Arc<TableDefinition> {
        &self.shared.definition
    }

    /// Its name in errors.
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// The placement of its chunks.
    pub fn destination(&self) -> &Destination {
        &self.shared.destination
    }

    /// Converts between batches and rows of the table.
    pub fn codec(&self) -> &Arc<RowCodec> {
        &self.shared.codec
    }

    /// Takes `count` consecutive ids, never used by another row of the table; returns the first.
    pub fn reserve(&self, count: usize) -> RowId {
        RowId::new(self.next_row_id.fetch_add(count as u64, Ordering::Relaxed))
    }

    /// The next id.
    pub fn next_row_id(&self) -> RowId {
        RowId::new(self.next_row_id.load(Ordering::Relaxed))
    }

    /// Never gives ids below this one again, as after a recovery.
    pub fn raise_next_row_id(&self, next: RowId) {
        self.next_row_id.fetch_max(next.get(), Ordering::Relaxed);
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of rows of its chunks that are deleted or have newer values.
    pub fn deleted_rows(&self) -> usize {
        self.entries.values().map(|entry| entry.deleted_rows()).sum()
    }

    /// Number of loose rows: newer values and the tail.
    pub fn delta_rows(&self) -> usize {
        let newer: usize = self.entries.values().map(|entry| entry.delta().count()).sum();
        newer + self.tail.len()
    }

    /// Approximate size of loose rows and of the masks of its chunks, in bytes.
    pub fn loose_bytes(&self) -> usize {
        let newer = self.entries.values().map(|entry| entry.loose_bytes());
        newer.sum::<usize>() + self.tail.row_bytes()
    }

    /// Approximate size of its indexes in memory, in bytes.
    pub fn index_bytes(&self) -> usize {
        let unique: usize = self.indexes.iter().map(UniqueIndex::memory_bytes).sum();
        unique + self.ordered.iter().map(OrderedIndex::memory_bytes).sum::<usize>()
    }

    /// Size of its chunks, rows and indexes in memory, in bytes; the latter two are approximate.
    pub fn memory_bytes(&self) -> usize {
        let entries: usize = self.entries.values().map(|entry| entry.memory_bytes()).sum();
        entries + self.tail.memory_bytes() + self.index_bytes()
    }

    /// Its chunks in the order of their rows.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Arc<ChunkEntry>> {
        self.entries.values()
    }

    /// The rows that are not in a chunk yet, in their order.
    pub fn tail(&self) -> impl ExactSizeIterator<Item = (RowId, &Row)> {
        self.tail.iter()
    }

    /// The current row with an id. Returns None if it does not exist.
    pub fn row(&self, id: RowId) -> Option<Row> {
        match self.in_chunk(id) {
            Some((entry, at)) => entry.row(&self.shared.codec, id, at),
            None => self.tail.get(id).cloned(),
        }
    }

    /// Some columns of current rows, in the order of the ids and of the projection: for the few rows
    /// that an index finds. A single row of a chunk is not copied.
    ///
    /// # Errors
    /// [`TableError::Misfit`] if a row with one of the ids does not exist.
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

    /// The entry whose chunk contains an id, and the row of the chunk.
    fn in_chunk(&self, id: RowId) -> Option<(&Arc<ChunkEntry>, usize)> {
        let (_, entry) = self.entries.get_prev(&id)?;
        Some((entry, entry.ids().position(id)?))
    }

    /// Whether the row with an id exists.
    pub fn has(&self, id: RowId) -> bool {
        match self.in_chunk(id) {
            Some((entry, at)) => entry.has(id, at),
            None => self.tail.get(id).is_some(),
        }
    }

    /// Whether the row with an id is the same in two versions of the table: in neither, or in both
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

    /// The columns of the keys of the constraint with this number in the definition, for [`key_of`](Self::key_of) and
    /// the codec.
    pub fn key_columns(&self, unique: usize) -> &[usize] {
        self.indexes[unique].columns()
    }

    /// The row with a key under the constraint of this number in the definition.
    pub fn find(&self, unique: usize, key: &Key) -> Option<RowId> {
        self.find_all(unique, key).next()
    }

    /// All rows with a key: several only where a check is deferred, or a change that violates the constraint was
    /// applied. A row may occur twice.
    pub fn find_all<'a>(&'a self, unique: usize, key: &'a Key) -> impl Iterator<Item = RowId> + 'a {
        let index = &self.indexes[unique];
        let has_key = |id: &RowId| self.key_of(*id, index.columns()).as_ref() == Some(key);
        index.candidates(key).filter(has_key)
    }

    /// The key of a row. Returns None if it contains a NULL, or if the row does not exist.
    pub fn key_of(&self, id: RowId, columns: &[usize]) -> Option<Key> {
        let codec = &self.shared.codec;
        match self.in_chunk(id) {
            Some((entry, at)) => entry.key(codec, id, at, columns),
            None => codec.key(self.tail.get(id)?, columns),
        }
    }
}
