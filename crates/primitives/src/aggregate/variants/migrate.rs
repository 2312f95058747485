//! Migration (Li 2013, sections 3.2 and 4.3): workers go to the rows and take nothing along. They read rows from local
//! memory; their tables stay where they began.

use atoll_topology::NodeId;

use super::migrating_worker::{MigratingWorker, Payload, PieceTable};
use crate::PrimitiveError;
use crate::aggregate::reader::Reader;
use crate::aggregate::stream::PiecePart;
use crate::shuffle::{Coordination, Moved, Order, Shuffle};

/// Its shuffle. It synchronizes steps, because threads that do not wait for each other form convoys (section 4.1.1).
pub(in crate::aggregate) const SHUFFLE: Shuffle =
    Shuffle { order: Order::Ring, moved: Moved::Threads, coordination: Coordination::Tight };

/// No tables move.
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

/// An output with its own pieces that reads the partitioned rows.
pub(in crate::aggregate) fn reader(
    output: usize,
    home: Option<NodeId>,
    pieces: Vec<PiecePart>,
) -> Box<dyn Reader> {
    Box::new(MigratingWorker::new(NoTables, output, home, pieces))
}
