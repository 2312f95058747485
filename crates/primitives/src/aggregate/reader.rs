//! How an output gets its groups.

use std::fmt::Debug;

use atoll_topology::NodeId;

use super::report::Spent;
use super::stream::Gathered;
use super::table::GroupTable;
use crate::PrimitiveError;

/// A way to read the collected rows: one of Li et al. 2013, section 4.3, or the merging of tables. Each has a file:
/// [`local`](super::variants::local), [`naive`](super::variants::naive), [`ring`](super::variants::ring),
/// [`migrate`](super::variants::migrate), [`migrate_copy`](super::variants::migrate_copy).
///
/// 1. [`next`](Self::next) and [`due`](Self::due) return the input to read. Both return the same one until it is read.
/// 2. [`visit`](Self::visit) reads it, on a thread at the node that has the rows if the visit asks for that.
/// 3. Groups whose rows have all been read are returned in a table of their own; no other table has them.
/// 4. No output waits for another: the last reader completes what outputs share.
pub(super) trait Reader: Debug + Send {
    /// The input to read before more groups are complete.
    fn due(&mut self, gathered: &Gathered) -> Option<Visit>;

    /// The next step.
    fn next(&mut self, gathered: &Gathered) -> Result<ReadStep, PrimitiveError>;

    /// Reads the input that is [`due`](Self::due).
    fn visit(&mut self, gathered: &Gathered) -> Result<(), PrimitiveError>;

    /// Takes back a table whose groups are out, for reuse.
    fn reuse(&mut self, _: GroupTable) {}

    /// Time spent in visits.
    fn spent(&self) -> Spent;
}

/// The next step of an output.
#[derive(Debug)]
pub(super) enum ReadStep {
    Visit(Visit),
    Groups(Groups),
    End,
}

/// Rows or groups of one input to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The input.
    pub input: usize,
    /// Home of its rows.
    pub home: Option<NodeId>,
    /// Its bytes.
    pub bytes: usize,
    /// Whether the thread moves there.
    pub travels: bool,
    /// Bytes of tables that move along, and their previous home.
    pub copied: Option<(NodeId, usize)>,
}

/// Complete groups.
#[derive(Debug)]
pub(super) enum Groups {
    Own(Box<GroupTable>),
    /// The groups of an input's table.
    Input(usize),
}
