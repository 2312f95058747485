//! Migration and copy (Li 2013, section 4.3): workers go to the rows, and first copy their tables into that node's
//! memory. Rows and tables are then local.

use atoll_topology::NodeId;

use super::migrating_worker::{MigratingWorker, Payload, PieceTable};
use crate::PrimitiveError;
use crate::aggregate::reader::Reader;
use crate::aggregate::stream::PiecePart;
use crate::aggregate::table::GroupTable;
use crate::shuffle::{Coordination, Moved, Order, Shuffle};

/// Its shuffle. It synchronizes steps, because threads that do not wait for each other form convoys (section 4.1.1).
pub(in crate::aggregate) const SHUFFLE: Shuffle =
    Shuffle { order: Order::Ring, moved: Moved::Threads, coordination: Coordination::Tight };

/// Tables move with the worker.
#[derive(Debug)]
struct AllTables;

impl Payload for AllTables {
    fn bytes(&self, tables: &[PieceTable]) -> Option<usize> {
        let tables = tables.iter().filter_map(|(_, table)| table.as_ref());
        Some(tables.map(GroupTable::memory_bytes).sum())
    }

    fn arrive(
        &self,
        tables: &mut [PieceTable],
        node: NodeId,
        check: &dyn Fn() -> Result<(), PrimitiveError>,
    ) -> Result<(), PrimitiveError> {
        for table in tables.iter_mut().filter_map(|(_, table)| table.as_mut()) {
            check()?;
            table.move_to(node)?;
        }
        Ok(())
    }
}

/// An output with its own pieces that reads the partitioned rows.
pub(in crate::aggregate) fn reader(
    output: usize,
    home: Option<NodeId>,
    pieces: Vec<PiecePart>,
) -> Box<dyn Reader> {
    Box::new(MigratingWorker::new(AllTables, output, home, pieces))
}
