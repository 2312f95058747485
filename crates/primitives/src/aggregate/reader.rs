//! What an output does to get its groups.

use std::fmt::Debug;

use atoll_topology::NodeId;

use super::report::Spent;
use super::stream::Gathered;
use super::table::GroupTable;
use crate::PrimitiveError;

/// A way to read what the inputs have collected: one of those of Li et al. 2013, section 4.3, or the
/// merging of tables. Each has a file: [`local`](super::local), [`naive`](super::naive),
/// [`ring`](super::ring), [`migrate`](super::migrate), [`migrate_copy`](super::migrate_copy).
///
/// 1. [`next`](Self::next) tells which input is to be read, as [`due`](Self::due) does. Both tell the same
///    until that is done.
/// 2. [`visit`](Self::visit) reads it, by a thread on the node that has the rows where the visit says so.
/// 3. Groups of which all rows have been read come as a table of their own, and no other table of any
///    output has them.
/// 4. No output waits for another: what outputs share is finished by the one that comes last.
pub(super) trait Reader: Debug + Send {
    /// The input that is to be read before any more groups are complete.
    fn due(&mut self, gathered: &Gathered) -> Option<Visit>;

    /// What is to be done next.
    fn next(&mut self, gathered: &Gathered) -> Result<ReadStep, PrimitiveError>;

    /// Reads the input that is [`due`](Self::due).
    fn visit(&mut self, gathered: &Gathered) -> Result<(), PrimitiveError>;

    /// Takes back a table whose groups are out.
    fn reuse(&mut self, _: GroupTable) {}

    /// What the visits took.
    fn spent(&self) -> Spent;
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum ReadStep {
    Visit(Visit),
    Groups(Groups),
    End,
}

/// Rows or groups of one input are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The input.
    pub input: usize,
    /// Home of what is read.
    pub home: Option<NodeId>,
    /// Its bytes.
    pub bytes: usize,
    /// Whether the thread goes to it.
    pub travels: bool,
    /// Bytes of tables that come along, and where they lie before.
    pub copied: Option<(NodeId, usize)>,
}

/// Groups that are complete.
#[derive(Debug)]
pub(super) enum Groups {
    Own(Box<GroupTable>),
    /// Those of an input's table.
    Input(usize),
}
