//! Threads go to the rows: each output has its own pieces, with a table for each, and visits every input to aggregate
//! its rows there.

use std::fmt::Debug;

use atoll_topology::NodeId;

use crate::PrimitiveError;
use crate::aggregate::reader::{Groups, ReadStep, Reader, Visit};
use crate::aggregate::records::RecordColumns;
use crate::aggregate::report::{Spent, Watch};
use crate::aggregate::stream::{Gathered, Kept, PiecePart};
use crate::aggregate::table::GroupTable;

/// A piece with its table; None before its first row.
pub(in crate::aggregate) type PieceTable = (PiecePart, Option<GroupTable>);

/// What happens to the tables of a worker that moves between nodes; this is where the two migrations differ.
pub(in crate::aggregate) trait Payload: Debug + Send {
    /// Bytes that move along; None if the tables stay.
    fn bytes(&self, tables: &[PieceTable]) -> Option<usize>;

    /// Prepares the tables at a node before its rows are read.
    fn arrive(
        &self,
        tables: &mut [PieceTable],
        node: NodeId,
        check: &dyn Fn() -> Result<(), PrimitiveError>,
    ) -> Result<(), PrimitiveError>;
}

/// An output whose worker goes to the rows.
#[derive(Debug)]
pub(in crate::aggregate) struct MigratingWorker<P> {
    payload: P,
    output: usize,
    /// Home of its tables.
    home: Option<NodeId>,
    tables: Vec<PieceTable>,
    /// Inputs that have been visited.
    turn: usize,
    columns: RecordColumns,
    spent: Spent,
}

impl<P: Payload> MigratingWorker<P> {
    /// An output with these pieces.
    pub(in crate::aggregate) fn new(
        payload: P,
        output: usize,
        home: Option<NodeId>,
        pieces: Vec<PiecePart>,
    ) -> Self {
        let tables = pieces.into_iter().map(|piece| (piece, None)).collect();
        let (columns, spent) = (RecordColumns::default(), Spent::default());
        Self { payload, output, home, tables, turn: 0, columns, spent }
    }

    /// Bytes of its tables, and their home, if they move to a node.
    fn copied(&self, to: Option<NodeId>) -> Option<(NodeId, usize)> {
        let from = self.home.filter(|home| to.is_some_and(|to| to != *home))?;
        Some((from, self.payload.bytes(&self.tables)?))
    }

    /// Moves its tables to a node.
    fn arrive(&mut self, node: NodeId, gathered: &Gathered) -> Result<(), PrimitiveError> {
        let mut watch = Watch::start();
        self.payload.arrive(&mut self.tables, node, &|| gathered.stage().check())?;
        self.home = Some(node);
        self.spent.copy += watch.lap();
        Ok(())
    }
}

impl<P: Payload> Reader for MigratingWorker<P> {
    fn due(&mut self, gathered: &Gathered) -> Option<Visit> {
        while self.turn < gathered.inputs().len() {
            let input = gathered.source_of(self.output, self.turn, |output, turn| output + turn);
            let from = &gathered.inputs()[input];
            let bytes = match from.kept() {
                Kept::Dealt(dealt) => self.tables.iter().map(|(at, _)| dealt.bytes(at.piece)).sum(),
                _ => 0,
            };
            if bytes > 0 {
                let (home, travels, copied) = (from.home(), true, self.copied(from.home()));
                return Some(Visit { input, home, bytes, travels, copied });
            }
            self.turn += 1;
        }
        None
    }

    fn next(&mut self, gathered: &Gathered) -> Result<ReadStep, PrimitiveError> {
        if let Some(visit) = self.due(gathered) {
            return Ok(ReadStep::Visit(visit));
        }
        // Drops a table as soon as its groups are out.
        while let Some((_, table)) = self.tables.pop() {
            if let Some(table) = table {
                return Ok(ReadStep::Groups(Groups::Own(Box::new(table))));
            }
        }
        Ok(ReadStep::End)
    }

    fn visit(&mut self, gathered: &Gathered) -> Result<(), PrimitiveError> {
        let Some(visit) = self.due(gathered) else { return Ok(()) };
        if let (Some(_), Some(node)) = (visit.copied, visit.home) {
            self.arrive(node, gathered)?;
        }
        let Kept::Dealt(dealt) = gathered.inputs()[visit.input].kept() else { return Ok(()) };
        let rows = gathered.stage().context().tuning().block_rows;
        let check = || gathered.stage().check();
        for (part, table) in &mut self.tables {
            if dealt.rows(part.piece) == 0 {
                continue;
            }
            let table = match table {
                Some(table) => table,
                none => none.insert(gathered.table(*part, self.home, None)?),
            };
            let piece = (part.piece, 0, 1);
            self.spent += dealt.update(table, piece, rows, &check, &mut self.columns)?;
        }
        self.turn += 1;
        Ok(())
    }

    fn spent(&self) -> Spent {
        self.spent
    }
}
