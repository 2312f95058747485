//! Threads go where the rows are: each output has pieces of its own, with a table for each, and visits
//! every input to aggregate what lies there for it.

use atoll_topology::NodeId;

use super::reader::{Groups, ReadStep, Reader, Visit};
use super::records::RecordColumns;
use super::report::{Spent, Watch};
use super::stream::{Gathered, Kept, PiecePart};
use super::table::GroupTable;
use crate::PrimitiveError;

/// What a thread takes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Luggage {
    Nothing,
    /// Its tables.
    Tables,
}

/// An output whose thread travels.
#[derive(Debug)]
pub(super) struct Travel {
    luggage: Luggage,
    output: usize,
    /// Where its tables lie.
    home: Option<NodeId>,
    /// Pieces with their tables; none before the first row.
    tables: Vec<(PiecePart, Option<GroupTable>)>,
    /// Inputs that have been visited.
    turn: usize,
    columns: RecordColumns,
    spent: Spent,
}

impl Travel {
    /// An output with these pieces.
    pub(super) fn new(
        luggage: Luggage,
        output: usize,
        home: Option<NodeId>,
        pieces: Vec<PiecePart>,
    ) -> Self {
        let tables = pieces.into_iter().map(|piece| (piece, None)).collect();
        let (columns, spent) = (RecordColumns::default(), Spent::default());
        Self { luggage, output, home, tables, turn: 0, columns, spent }
    }

    /// Bytes of its tables, and where they lie, if they come along to a node.
    fn copied(&self, to: Option<NodeId>) -> Option<(NodeId, usize)> {
        let from = self.home.filter(|home| to.is_some_and(|to| to != *home))?;
        let tables = self.tables.iter().filter_map(|(_, table)| table.as_ref());
        let bytes = tables.map(GroupTable::memory_bytes).sum();
        (self.luggage == Luggage::Tables).then_some((from, bytes))
    }

    /// Copies its tables into a node's memory.
    fn unpack_at(&mut self, node: NodeId, gathered: &Gathered) -> Result<(), PrimitiveError> {
        let mut watch = Watch::start();
        for table in self.tables.iter_mut().filter_map(|(_, table)| table.as_mut()) {
            gathered.stage().check()?;
            table.move_to(node)?;
        }
        self.home = Some(node);
        self.spent.copy += watch.lap();
        Ok(())
    }
}

impl Reader for Travel {
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
        // A table is dropped as soon as its groups are out.
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
            self.unpack_at(node, gathered)?;
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
