//! Groups out of what was gathered.

use std::sync::Arc;

use arrow_array::RecordBatch;
use atoll_topology::NodeId;

use super::Gathered;
use crate::PrimitiveError;
use crate::aggregate::Spent;
use crate::aggregate::reader::{Groups, ReadStep, Reader, Visit};
use crate::aggregate::table::GroupTable;

/// One output: what belongs together is read from all inputs in steps of one input, and its groups are
/// handed out in batches of a size that the reader of the output chooses.
#[derive(Debug)]
pub struct Outputs {
    gathered: Arc<Gathered>,
    reader: Box<dyn Reader>,
    /// Most groups of a batch.
    batch_rows: usize,
    open: Option<OpenOutput>,
}

/// Groups that go out.
#[derive(Debug)]
struct OpenOutput {
    groups: Groups,
    /// Those that have rows.
    chosen: Vec<u32>,
    sent: usize,
}

/// What comes next of an output.
#[derive(Debug)]
pub enum Next {
    /// Rows or groups of one input are to be read: [`Outputs::visit`], on the node that has them where
    /// the thread is to travel and not the rows.
    Visit(Visit),
    /// Groups.
    Batch(RecordBatch),
    /// The last batch is out.
    End,
}

impl Outputs {
    /// One output, whose memory lies on a node, in batches of at most `batch_rows` groups.
    pub fn new(
        gathered: Arc<Gathered>,
        output: usize,
        home: Option<NodeId>,
        batch_rows: usize,
    ) -> Self {
        let reader = gathered.reader(output, home);
        Self { gathered, reader, batch_rows: batch_rows.max(1), open: None }
    }

    /// What comes next; a visit comes again until it is made.
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

    /// Reads what [`advance`](Self::advance) told of.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn visit(&mut self) -> Result<(), PrimitiveError> {
        self.reader.visit(&self.gathered)
    }

    /// The visit that is to be made before anything else.
    pub(in crate::aggregate) fn due(&mut self) -> Option<Visit> {
        self.reader.due(&self.gathered)
    }

    /// What the visits took.
    pub(in crate::aggregate) fn spent(&self) -> Spent {
        self.reader.spent()
    }

    fn table<'a>(&'a self, groups: &'a Groups) -> Option<&'a GroupTable> {
        match groups {
            Groups::Own(table) => Some(table),
            Groups::Input(at) => self.gathered.table_of(*at),
        }
    }

    /// The next of the open groups.
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
