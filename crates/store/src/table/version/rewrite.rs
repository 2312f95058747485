//! Mass UPDATE: an entry's rows rewritten as a chunk of their own, instead of row by row.

use std::sync::Arc;

use arrow_array::RecordBatch;
use atoll_topology::NodeId;
use roaring::RoaringTreemap;

use super::super::change::ReplacedChunk;
use super::entry::ChunkEntry;
use super::merge::Merge;
use super::{Result, Shared, TableVersion};
use crate::ids::RowId;

/// An entry whose rows are to be rewritten.
#[derive(Debug)]
pub struct RewriteTask {
    shared: Arc<Shared>,
    entry: Arc<ChunkEntry>,
    updated: Vec<(Vec<RowId>, RecordBatch)>,
    updated_ids: RoaringTreemap,
    node: NodeId,
}

impl TableVersion {
    /// For each row the entry that contains it, by a number that is unique in this version; `None` if the row is in no
    /// chunk, or does not exist.
    pub fn entries_of(&self, ids: &[RowId]) -> Vec<Option<RowId>> {
        // Neighbours are mostly in the same entry.
        let mut last: Option<(RowId, &Arc<ChunkEntry>)> = None;
        let entry_of = |id: &RowId| {
            if last.is_none_or(|(_, entry)| entry.ids().position(*id).is_none()) {
                last = self.entries.get_prev(id).map(|(key, entry)| (*key, entry));
            }
            let (key, entry) = last?;
            let at = entry.ids().position(*id)?;
            entry.has(*id, at).then_some(key)
        };
        ids.iter().map(entry_of).collect()
    }

    /// A new chunk to replace the entry returned by [`entries_of`](Self::entries_of): with these new values of
    /// its rows, each once, and all its other rows unchanged.
    ///
    /// # Errors
    /// [`TableError::Misfit`](super::TableError::Misfit) if updated rows are not in the entry.
    pub fn rewrite(
        &self,
        entry: RowId,
        updated: Vec<(Vec<RowId>, RecordBatch)>,
    ) -> Result<RewriteTask> {
        let found = self.entries.get(&entry).map(Arc::clone);
        let entry =
            found.ok_or_else(|| self.shared.misfit(format!("it has no chunk at {entry}")))?;
        let mut updated_ids = RoaringTreemap::new();
        for id in updated.iter().flat_map(|(ids, _)| ids) {
            let is_there = entry.ids().position(*id).is_some_and(|at| entry.has(*id, at));
            if !is_there || !updated_ids.insert(id.get()) {
                let problem = format!("row {id} is updated twice, or is not in its chunk");
                return Err(self.shared.misfit(problem));
            }
        }
        let node = entry.home().node.unwrap_or_else(|| self.any_node());
        Ok(RewriteTask { shared: Arc::clone(&self.shared), entry, updated, updated_ids, node })
    }
}

impl RewriteTask {
    /// The node whose workers should run it.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Makes the chunks.
    ///
    /// # Errors
    /// [`TableError::Memory`](super::TableError::Memory) if there is no memory for them,
    /// [`TableError::Null`](super::TableError::Null), and
    /// [`TableError::Values`](super::TableError::Values) for values that cannot be cast to the columns' types.
    pub fn run(self) -> Result<Vec<ReplacedChunk>> {
        let mut merge = Merge::new(&self.shared);
        merge.take_entry(&self.entry, |id| self.updated_ids.contains(id.get()))?;
        for (ids, batch) in &self.updated {
            merge.take_batch(ids, batch)?;
        }
        let writer = self.shared.writer(self.node).with_home(self.entry.home().memory);
        let chunks = merge.finish(writer)?;
        Ok(chunks.map(|(ids, chunk)| ReplacedChunk { ids, chunk, file: None }).collect())
    }
}
