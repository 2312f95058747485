//! Migration (Li 2013, sections 3.2 and 4.3): workers go where the rows are and take nothing along.
//! Rows are read from local memory; the table that they go to stays where its worker began.

use atoll_topology::NodeId;

use super::migrating_worker::{MigratingWorker, Payload, PieceTable};
use super::reader::Reader;
use super::stream::PiecePart;
use crate::PrimitiveError;
use crate::shuffle::{Coordination, Moved, Order, Shuffle};

/// The shuffle that it is. In step: threads that do not wait for one another end up in convoys (section
/// 4.1.1).
pub(super) const SHUFFLE: Shuffle =
    Shuffle { order: Order::Ring, moved: Moved::Threads, coordination: Coordination::Tight };

/// Nothing comes along.
#[derive(Debug)]
struct NoTables;

impl Payload for NoTables {
    fn bytes(&self, _: &[PieceTable]) -> Option<usize> {
        None
    }

    fn arrive(
        &self,
        _: &mut [PieceTable],
        _: NodeId,
        _: &dyn Fn() -> Result<(), PrimitiveError>,
    ) -> Result<(), PrimitiveError> {
        Ok(())
    }
}

/// An output with pieces of its own that reads what was dealt.
pub(super) fn reader(
    output: usize,
    home: Option<NodeId>,
    pieces: Vec<PiecePart>,
) -> Box<dyn Reader> {
    Box::new(MigratingWorker::new(NoTables, output, home, pieces))
}
