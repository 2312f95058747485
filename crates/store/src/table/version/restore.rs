//! A version of a table restored from its parts in a checkpoint.

use std::sync::Arc;

use super::super::chunk::Chunk;
use super::super::definition::TableDefinition;
use super::super::row::Row;
use super::super::row_ids::RowIds;
use super::super::writer::Destination;
use super::entry::ChunkEntry;
use super::{Result, TableVersion};
use crate::ids::{ChunkFileId, RowId};
use crate::workers::Workers;

/// A [`ChunkEntry`] in its parts.
#[derive(Clone, Debug)]
pub struct RestoredEntry {
    /// The chunk.
    pub chunk: Arc<Chunk>,
    /// Ids of all its rows.
    pub ids: RowIds,
    /// Numbers of the rows of the chunk that are deleted or have newer values, in rising order.
    pub masked: Vec<u32>,
    /// The newer values, in the order of ids.
    pub delta: Vec<(RowId, Row)>,
    /// The file that holds the chunk.
    pub file: Option<ChunkFileId>,
}

impl TableVersion {
    /// A table of these entries, in the order of their rows, and these loose rows, all of whose ids
    /// are below `next_row_id`. The name is for errors.
    ///
    /// # Errors
    /// [`TableError::Misfit`](super::TableError::Misfit) if the parts do not match: they are
    /// damaged. Only the keys of rows are checked.
    pub fn restored(
        name: Arc<str>,
        definition: Arc<TableDefinition>,
        destination: Destination,
        entries: Vec<RestoredEntry>,
        tail: Vec<(RowId, Row)>,
        next_row_id: RowId,
        workers: &dyn Workers,
    ) -> Result<Self> {
        let mut version = Self::new(name, definition, destination)?;
        for entry in entries {
            version.restore(entry)?;
        }
        let entries: Vec<_> = version.entries.values().cloned().collect();
        version.index_keys(&version.keys_of_entries(&entries, workers)?);
        version.insert_rows(&tail.into_iter().collect())?;
        version.build_all_ordered(workers)?;
        if version.next_row_id() > next_row_id {
            let problem = format!("it has rows above {next_row_id}, the next id");
            return Err(version.shared.misfit(problem));
        }
        version.raise_next_row_id(next_row_id);
        Ok(version)
    }

    fn restore(&mut self, from: RestoredEntry) -> Result<()> {
        let RestoredEntry { chunk, ids, masked, delta, file } = from;
        let entry = ChunkEntry::new(chunk, ids.clone(), file);
        self.check_chunk(&entry)?;
        let rows = ids.count();
        let is_mask = masked.is_sorted_by(|a, b| a < b)
            && masked.last().is_none_or(|last| (*last as usize) < rows);
        if !is_mask {
            let problem =
                format!("rows of the chunk from row {} on are masked wrongly", ids.first());
            return Err(self.shared.misfit(problem));
        }
        let mut newer = super::LooseRows::default();
        for (id, row) in delta {
            let at = ids.position(id).and_then(|at| u32::try_from(at).ok());
            if at.is_none_or(|at| masked.binary_search(&at).is_err()) {
                let problem = format!("row {id} has newer values and is not masked in its chunk");
                return Err(self.shared.misfit(problem));
            }
            newer.insert(id, row);
        }
        let entry = entry.with(&masked, newer);
        self.raise_next_row_id(entry.ids().last().next());
        self.rows += entry.rows();
        self.place(Arc::new(entry))
    }
}
