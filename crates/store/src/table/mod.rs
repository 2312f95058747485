//! Tables in placed memory: chunks of columns, each with a home node.
//!
//! A table is a list of immutable chunks ([`TableSnapshot`]); a [`ChunkWriter`] makes new ones out of
//! record batches, on the workers whose nodes keep them. A column keeps its type and is stored narrower where
//! the values of the chunk allow ([`StoredColumn`]). A [`TableVersion`] consists of chunks, their changes row
//! by row ([`Row`]), and indexes; a [`TableChange`] makes the next version, and a scan reads its view.

mod bounds;
mod chains;
mod change;
mod chunk;
mod column;
mod compact;
mod definition;
mod deleted;
mod encode;
mod error;
mod exact_cast;
mod float;
mod lab;
mod place;
mod row;
mod row_ids;
mod snapshot;
mod stats;
mod version;
mod writer;

pub use bounds::Bounds;
pub use chains::RisingColumn;
pub use change::{AppendedChunk, ReplacedChunk, TableChange};
pub use chunk::{
    BLOCK_ROWS, CHUNK_ROWS, Chunk, ChunkCopy, ColumnStats, Zone, first_at_least, is_whole_number,
    whole_number_at, whole_numbers, zone,
};
pub use column::{Mask, Selection, StoredColumn, is_text};
pub use compact::{compact_array, compact_batch};
pub use definition::{
    CatalogIndex, CatalogKey, CatalogKeyOf, Check, Deferral, ForeignKey, Identity, IdentityKind,
    Index, IndexCondition, IndexKey, KeyExpression, KeyOrder, OnCommit, ReferencedKey,
    ReferentialAction, TableDefinition, Unique,
};
pub use deleted::DeletedRows;
pub use encode::{declared_schema, stored_schema};
pub use error::TableError;
pub(crate) use float::canonical_float64;
pub use float::{canonical, has_floats};
pub use lab::lab_region;
pub(crate) use place::stored_data;
pub use row::{
    CONDITION_DEPTH_MAX, ComparisonOperator, Key, KeyBuilder, KeyFunction, Row, RowBuilder,
    RowCodec, RowCondition, TextFunction, is_comparable,
};
pub use row_ids::RowIds;
pub use snapshot::TableSnapshot;
pub use version::{
    ChangedKeys, ChunkEntry, ChunkKeys, FoldPolicy, FoldTask, Folded, KeyTask, NewKeys, OrderWords,
    RestoredEntry, RewriteTask, SortKeysTask, SortedRanges, TableVersion, is_indexable,
    order_words,
};
pub use writer::{ChunkWriter, Destination};
