//! Mass UPDATE: an entry's rows with other values as a chunk of their own, instead of row by row.

use std::sync::Arc;

use arrow_array::RecordBatch;
use atoll_topology::NodeId;
use roaring::RoaringTreemap;

use super::super::change::ReplacedChunk;
use super::entry::ChunkEntry;
use super::merge::Merge;
use super::{Result, Shared, TableVersion};
use crate::ids::RowId;

/// An entry whose rows are to become chunks with other values.
#[derive(Debug)]
pub struct RewriteTask {
    shared: Arc<Shared>,
    entry: Arc<ChunkEntry>,
    updated: Vec<(Vec<RowId>, RecordBatch)>,
    updated_ids: RoaringTreemap,
    node: NodeId,
}

impl TableVersion {
    /// Of each row the entry that has it, by a number that is its own in this version; none where the row is in no
    /// chunk, or not there.
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

    /// A new chunk in the place of the entry that [`entries_of`](Self::entries_of) named: with these new values of
    /// rows that it has, each once, and all its other rows as they are.
    ///
    /// # Errors
    /// [`TableError::Misfit`](super::TableError::Misfit) where rows are updated that the entry does not have.
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
    /// The node on one of whose workers it is to run.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Makes the chunks.
    ///
    /// # Errors
    /// [`TableError::Memory`](super::TableError::Memory) where there is no memory for them,
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
