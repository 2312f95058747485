//! The keys of an entry's rows, and the new entries of a change.

use std::sync::Arc;

use super::super::change::{AppendedChunk, ReplacedChunk, TableChange};
use super::super::chunk::BLOCK_ROWS;
use super::super::row::{RowCodec, hash_of};
use super::index::HashedRow;
use super::{ChunkEntry, Result};
use crate::ids::RowId;

/// The rows of an entry with the hashes of their keys.
pub(super) fn hash_entry(
    codec: &RowCodec,
    entry: &ChunkEntry,
    columns: &[usize],
    into: &mut Vec<HashedRow>,
) -> Result<()> {
    each_key(codec, entry, columns, &mut |id, key| into.push((hash_of(key), id)))
}

/// Calls `take` with the rows of an entry that have a key, and with the key.
pub(super) fn each_key(
    codec: &RowCodec,
    entry: &ChunkEntry,
    columns: &[usize],
    take: &mut impl FnMut(RowId, &[u8]),
) -> Result<()> {
    let blocks = entry.chunk().copies.first().map_or(&[][..], |copy| &copy.blocks);
    for (number, block) in blocks.iter().enumerate() {
        let first = number * BLOCK_ROWS;
        let rows = BLOCK_ROWS.min(entry.chunk().rows - first);
        codec.each_key_stored(block, rows, columns, |row, key| {
            if !entry.is_masked(first + row) {
                take(entry.ids().at(first + row), key);
            }
        })?;
    }
    for (id, row) in entry.delta() {
        if let Some(key) = codec.key(row, columns) {
            take(id, key.as_bytes());
        }
    }
    Ok(())
}

/// A replaced chunk as an entry.
pub(super) fn replaced_entry(replaced: &ReplacedChunk) -> ChunkEntry {
    ChunkEntry::new(Arc::clone(&replaced.chunk), replaced.ids.clone(), replaced.file)
}

/// The new chunks of a change as entries.
pub(super) fn appended_entries(change: &TableChange) -> Vec<Arc<ChunkEntry>> {
    let appended = change.appended.iter();
    let entry = |new: &AppendedChunk| ChunkEntry::new(Arc::clone(&new.chunk), new.ids(), new.file);
    appended.map(|new| Arc::new(entry(new))).collect()
}
