//! Folding: changed rows are written into chunks again, in the order of their ids, encoded like all others.
//!
//! ```text
//! version ─folds()─▶ FoldTask ─run(), on a worker of its node─▶ Folded ─with_folded()─▶ newest version
//! ```
//!
//! Changes between the two versions are kept: a row that was changed meanwhile is masked in
//! the new chunk and its values are in the new delta. Ids and indexes do not change. If the entries
//! themselves have changed (the table was truncated, chunks were inserted), the fold is given up.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use atoll_placement::ChunkHome;
use atoll_topology::NodeId;

use super::super::chunk::CHUNK_ROWS;
use super::super::row::Row;
use super::entry::ChunkEntry;
use super::loose::LooseRows;
use super::merge::Merge;
use super::{Result, Shared, TableVersion};
use crate::ids::RowId;

/// Entries are folded together while the earlier ones have at most this many times as many rows as the later
/// ones: so each row is rewritten only a few times until its chunk is full.
const MERGE_FACTOR: usize = 4;

/// When changed rows are folded into chunks.
#[derive(Clone, Copy, Debug)]
pub struct FoldPolicy {
    /// Maximum number of rows of a chunk.
    pub chunk_rows: usize,
    /// A chunk is folded when more than one in this many of its rows changed: a checkpoint of fewer changes
    /// writes them row by row instead of the whole chunk.
    pub changed_share: usize,
    /// This many new rows after a chunk become one.
    pub tail_rows: usize,
}

impl Default for FoldPolicy {
    fn default() -> Self {
        Self { chunk_rows: CHUNK_ROWS, changed_share: 8, tail_rows: 4096 }
    }
}

impl FoldPolicy {
    /// While commits are frequent, folded chunks would soon be folded again, so new rows wait until they fill a
    /// chunk, and chunks until half of their rows changed.
    pub fn busy() -> Self {
        Self { changed_share: 2, tail_rows: CHUNK_ROWS, ..Self::default() }
    }
}

/// Entries and rows to be written as chunks.
#[derive(Debug)]
pub struct FoldTask {
    shared: Arc<Shared>,
    sources: Vec<(RowId, Arc<ChunkEntry>)>,
    /// Rows in no chunk.
    tail: Vec<(RowId, Row)>,
    node: NodeId,
    home: ChunkHome,
    chunk_rows: usize,
}

/// The result of a [`FoldTask`].
#[derive(Debug)]
pub struct Folded {
    sources: Vec<(RowId, Arc<ChunkEntry>)>,
    tail: Vec<(RowId, Row)>,
    entries: Vec<ChunkEntry>,
}

/// An entry, the loose rows among its ids, and those after it.
#[derive(Debug)]
struct Stretch {
    key: RowId,
    entry: Arc<ChunkEntry>,
    within: Vec<(RowId, Row)>,
    behind: Vec<(RowId, Row)>,
}

impl Stretch {
    fn rows(&self) -> usize {
        self.entry.rows() + self.within.len() + self.behind.len()
    }
}

impl FoldTask {
    /// The node whose workers should run it.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Number of rows to be written.
    pub fn rows(&self) -> usize {
        self.sources.iter().map(|(_, entry)| entry.rows()).sum::<usize>() + self.tail.len()
    }

    /// Makes the chunks.
    ///
    /// # Errors
    /// [`TableError::Memory`](super::TableError::Memory) if there is no memory for them.
    pub fn run(self) -> Result<Folded> {
        let mut merge = Merge::new(&self.shared);
        for (_, entry) in &self.sources {
            merge.take_entry(entry, |_| false)?;
        }
        merge.take_rows(self.tail.iter().cloned())?;
        let writer = self.shared.writer(self.node).with_home(self.home);
        let chunks = merge.finish(writer.with_chunk_rows(self.chunk_rows))?;
        let entries = chunks.map(|(ids, chunk)| ChunkEntry::new(chunk, ids, None)).collect();
        Ok(Folded { sources: self.sources, tail: self.tail, entries })
    }
}

impl TableVersion {
    /// The folds that are worthwhile now; tasks may run in parallel and in any order. Looks at every entry
    /// and at the tail: call it some times a second, not after every commit.
    pub fn folds(&self, policy: &FoldPolicy) -> Vec<FoldTask> {
        let is_crowded = self.tail.len() >= 8 * policy.tail_rows;
        let enough = if is_crowded { policy.tail_rows / 8 } else { policy.tail_rows };
        let enough = enough.max(1);
        let within = if self.is_tail_behind() { 0 } else { self.tail.len() };
        let may_be_changed = |entry: &Arc<ChunkEntry>| {
            (entry.deleted_rows() + within) * policy.changed_share > entry.chunk().rows
        };
        if self.tail.len() < enough && !self.entries.values().any(may_be_changed) {
            return Vec::new();
        }
        let (ahead, mut stretches) = self.stretches();
        let mut tasks = Vec::new();
        while let Some(last) = stretches.pop() {
            let changed = last.entry.deleted_rows() + last.within.len();
            let is_changed = changed * policy.changed_share > last.entry.chunk().rows;
            let is_joined = last.rows() <= policy.chunk_rows
                && (is_changed || last.entry.rows() <= MERGE_FACTOR * last.behind.len());
            let has_behind = last.behind.len() >= enough;
            if !is_changed && !has_behind {
                continue;
            }
            let mut group = last;
            if !is_joined {
                let behind = std::mem::take(&mut group.behind);
                self.fold_rows(behind, enough, policy, &mut tasks);
            }
            if is_changed || is_joined {
                tasks.push(self.fold_group(group, &mut stretches, policy));
            }
        }
        self.fold_rows(ahead, enough, policy, &mut tasks);
        tasks
    }

    /// Whether all loose rows come after all chunks, as new rows do.
    fn is_tail_behind(&self) -> bool {
        let first = self.tail.iter().next().map(|(id, _)| id);
        let last = self.entries.get_max().map(|(_, entry)| entry.ids().last());
        first > last
    }

    /// Loose rows before the first entry, and each entry with those that follow.
    fn stretches(&self) -> (Vec<(RowId, Row)>, Vec<Stretch>) {
        let mut tail = self.tail.iter().map(|(id, row)| (id, row.clone())).peekable();
        let mut until = |end: Option<RowId>| -> Vec<(RowId, Row)> {
            let is_before = |(id, _): &(RowId, Row)| end.is_none_or(|end| *id < end);
            std::iter::from_fn(|| tail.next_if(is_before)).collect()
        };
        let mut entries = self.entries.iter().peekable();
        let ahead = until(entries.peek().map(|(key, _)| **key));
        let mut stretches = Vec::with_capacity(self.entries.len());
        while let Some((key, entry)) = entries.next() {
            let next = entries.peek().map(|(next, _)| **next);
            let mut behind = until(next);
            let last = entry.ids().last();
            let within = behind.partition_point(|(id, _)| *id < last);
            let within = behind.drain(..within).collect();
            stretches.push(Stretch { key: *key, entry: Arc::clone(entry), within, behind });
        }
        (ahead, stretches)
    }

    /// Folds loose rows into chunks of their own, if there are enough.
    fn fold_rows(
        &self,
        rows: Vec<(RowId, Row)>,
        enough: usize,
        policy: &FoldPolicy,
        tasks: &mut Vec<FoldTask>,
    ) {
        for rows in rows.chunks(policy.chunk_rows).filter(|rows| rows.len() >= enough) {
            // Without a home the fold waits: INSERT reports the error.
            let Ok((node, home)) = self.tail_home() else { return };
            tasks.push(self.task(Vec::new(), rows.to_vec(), (node, home.memory), policy));
        }
    }

    /// Folds an entry with its loose rows, and with small entries before it.
    fn fold_group(
        &self,
        last: Stretch,
        before: &mut Vec<Stretch>,
        policy: &FoldPolicy,
    ) -> FoldTask {
        let home = last.entry.home();
        let mut rows = last.rows();
        let mut group = vec![last];
        let fits = |next: &Stretch, rows: usize| {
            let is_small = next.rows() <= MERGE_FACTOR * rows;
            is_small && next.rows() + rows <= policy.chunk_rows && next.entry.home() == home
        };
        while let Some(next) = before.pop_if(|next| fits(next, rows)) {
            rows += next.rows();
            group.push(next);
        }
        let (mut sources, mut tail) = (Vec::new(), Vec::new());
        for stretch in group.into_iter().rev() {
            sources.push((stretch.key, stretch.entry));
            tail.extend(stretch.within.into_iter().chain(stretch.behind));
        }
        let node = home.node.unwrap_or_else(|| self.any_node());
        self.task(sources, tail, (node, home.memory), policy)
    }

    fn task(
        &self,
        sources: Vec<(RowId, Arc<ChunkEntry>)>,
        tail: Vec<(RowId, Row)>,
        (node, home): (NodeId, ChunkHome),
        policy: &FoldPolicy,
    ) -> FoldTask {
        let (shared, chunk_rows) = (Arc::clone(&self.shared), policy.chunk_rows);
        FoldTask { shared, sources, tail, node, home, chunk_rows }
    }

    /// The table with the folded chunks. Returns None if the fold must be given up because its entries have
    /// changed. The rows are the same either way.
    pub fn with_folded(&self, folded: &Folded) -> Option<Self> {
        let mut after = Self { view: OnceLock::new(), ..self.clone() };
        let mut changed = BTreeMap::new();
        for (key, before) in &folded.sources {
            let now = after.entries.remove(key)?;
            changed.extend(now.changed_since(before)?);
        }
        changed.extend(after.tail.take_out(&folded.tail));
        for entry in &folded.entries {
            let between = entry.ids().first()..=entry.ids().last();
            if after.entries.range(between).next().is_some() {
                return None;
            }
        }
        for entry in &folded.entries {
            after.place(Arc::new(entry.changed_by(&changed))).ok()?;
        }
        Some(after)
    }
}

impl ChunkEntry {
    /// Rows changed since an earlier version of the same entry, with their values, if any.
    /// Returns None if it is another entry.
    fn changed_since(&self, before: &Self) -> Option<BTreeMap<RowId, Option<Row>>> {
        if !Arc::ptr_eq(self.chunk(), before.chunk()) {
            return None;
        }
        let masked = self.masked().into_iter().flat_map(|masked| masked.rows());
        let masked = masked.map(|at| at as usize).filter(|at| !before.is_masked(*at));
        let ids = masked.map(|at| self.ids().at(at)).chain(self.loose().differing(before.loose()));
        Some(ids.map(|id| (id, self.delta_row(id).cloned())).collect())
    }

    /// The same with these changes of rows, some of which may belong to other entries.
    fn changed_by(&self, changed: &BTreeMap<RowId, Option<Row>>) -> Self {
        let (mut masked, mut delta) = (Vec::new(), LooseRows::default());
        for (id, row) in changed.range(self.ids().first()..=self.ids().last()) {
            let Some(at) = self.ids().position(*id) else { continue };
            masked.push(at as u32);
            if let Some(row) = row {
                delta.insert(*id, row.clone());
            }
        }
        self.with(&masked, delta)
    }
}
