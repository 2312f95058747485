//! Returns groups from the gathered rows.

use std::sync::Arc;

use arrow_array::RecordBatch;
use atoll_topology::NodeId;

use super::Gathered;
use crate::PrimitiveError;
use crate::aggregate::Spent;
use crate::aggregate::reader::{Groups, ReadStep, Reader, Visit};
use crate::aggregate::table::GroupTable;

/// One output: it reads related rows from all inputs, one input per step, and returns their groups in batches of a size
/// that its caller chooses.
#[derive(Debug)]
pub struct Outputs {
    gathered: Arc<Gathered>,
    reader: Box<dyn Reader>,
    /// Maximum number of groups in a batch.
    batch_rows: usize,
    open: Option<OpenOutput>,
}

/// The open table of complete groups.
#[derive(Debug)]
struct OpenOutput {
    groups: Groups,
    /// Its groups that have rows.
    chosen: Vec<u32>,
    sent: usize,
}

/// The next step of an output.
#[derive(Debug)]
pub enum Next {
    /// Read rows or groups of one input with [`Outputs::visit`], on the node that has them if the thread is to move
    /// instead of the rows.
    Visit(Visit),
    /// Groups.
    Batch(RecordBatch),
    /// There are no more batches.
    End,
}

impl Outputs {
    /// Creates one output with memory on a node and batches of at most `batch_rows` groups.
    pub fn new(
        gathered: Arc<Gathered>,
        output: usize,
        home: Option<NodeId>,
        batch_rows: usize,
    ) -> Self {
        let reader = gathered.reader(output, home);
        Self { gathered, reader, batch_rows: batch_rows.max(1), open: None }
    }

    /// The next step; a visit is returned again until it is made.
    ///
    /// # Errors
    /// [`PrimitiveError::Memory`], [`PrimitiveError::Overflow`], [`PrimitiveError::Cancelled`].
    pub fn advance(&mut self) -> Result<Next, PrimitiveError> {
        self.gathered.stage().check()?;
        loop {
            if let Some(batch) = self.next_groups()? {
                return Ok(Next::Batch(batch));
            }
            match self.reader.next(&self.gathered)? {
                ReadStep::Visit(visit) => return Ok(Next::Visit(visit)),
                ReadStep::Groups(groups) => {
                    let chosen = self.table(&groups).map(GroupTable::chosen).unwrap_or_default();
                    self.open = Some(OpenOutput { groups, chosen, sent: 0 });
                }
                ReadStep::End => return Ok(Next::End),
            }
        }
    }

    /// Makes the visit that [`advance`](Self::advance) returned.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn visit(&mut self) -> Result<(), PrimitiveError> {
        self.reader.visit(&self.gathered)
    }

    /// The visit to make before anything else.
    pub(in crate::aggregate) fn due(&mut self) -> Option<Visit> {
        self.reader.due(&self.gathered)
    }

    /// Time spent in visits.
    pub(in crate::aggregate) fn spent(&self) -> Spent {
        self.reader.spent()
    }

    fn table<'a>(&'a self, groups: &'a Groups) -> Option<&'a GroupTable> {
        match groups {
            Groups::Own(table) => Some(table),
            Groups::Input(at) => self.gathered.table_of(*at),
        }
    }

    /// The next batch of the open groups.
    fn next_groups(&mut self) -> Result<Option<RecordBatch>, PrimitiveError> {
        let Some(mut open) = self.open.take() else { return Ok(None) };
        let end = open.chosen.len().min(open.sent.saturating_add(self.batch_rows));
        if open.sent == end {
            if let Groups::Own(table) = open.groups {
                self.reader.reuse(*table);
            }
            return Ok(None);
        }
        let stage = self.gathered.stage();
        let chosen = &open.chosen[open.sent..end];
        let batch = self
            .table(&open.groups)
            .map(|table| table.batch(&stage.plan, stage.packing(), chosen))
            .transpose()?;
        open.sent = end;
        self.open = Some(open);
        Ok(batch)
    }
}
