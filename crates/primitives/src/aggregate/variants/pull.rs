//! Pieces move to the outputs: each takes a piece, reads it from all inputs in some order, and continues with the next.
//! Only partitioning copies rows.
//!
//! A piece's table stays in the second-level cache while the piece is read, so an output reads all inputs for each
//! piece. All outputs take pieces from one list, the largest first, so that they end together; a piece that is far too
//! large is read in parts, and the last reader merges them.

use std::fmt::Debug;

use atoll_topology::NodeId;

use super::local;
use crate::PrimitiveError;
use crate::aggregate::key_records::KeyColumns;
use crate::aggregate::reader::{Groups, ReadStep, Reader, Visit};
use crate::aggregate::records::{DealtRecords, RecordColumns};
use crate::aggregate::report::{Spent, Watch};
use crate::aggregate::stream::{Gathered, Kept, PiecePart};
use crate::aggregate::table::GroupTable;

/// The order in which outputs read the inputs: this is where the shuffles differ.
pub(in crate::aggregate) trait PullOrder: Debug + Send {
    /// The input that an output reads in a step of a piece. Both count from 0; after the last input comes the first.
    fn input_at(&self, step: usize, output: usize) -> usize;
}

/// An output that reads piece by piece.
#[derive(Debug)]
pub(in crate::aggregate) struct Pull<O> {
    order: O,
    output: usize,
    home: Option<NodeId>,
    open: Option<OpenPiece>,
    spare: Option<GroupTable>,
    columns: RecordColumns,
    keys: KeyColumns,
    spent: Spent,
}

/// The current part.
#[derive(Debug)]
struct OpenPiece {
    part: PiecePart,
    /// Inputs that have been read.
    turn: usize,
    table: Option<GroupTable>,
}

impl<O: PullOrder> Pull<O> {
    /// Creates an output that reads the inputs in this order.
    pub(in crate::aggregate) fn new(order: O, output: usize, home: Option<NodeId>) -> Self {
        let (columns, keys) = (RecordColumns::default(), KeyColumns::default());
        let spent = Spent::default();
        Self { order, output, home, open: None, spare: None, columns, keys, spent }
    }

    fn input(&self, gathered: &Gathered, turn: usize) -> usize {
        gathered.source_of(self.output, turn, |output, turn| self.order.input_at(turn, output))
    }
}

impl<O: PullOrder> Reader for Pull<O> {
    fn due(&mut self, gathered: &Gathered) -> Option<Visit> {
        loop {
            let OpenPiece { part, turn, .. } = *self.open.as_ref()?;
            if turn >= gathered.inputs().len() {
                return None;
            }
            let input = self.input(gathered, turn);
            let from = &gathered.inputs()[input];
            match bytes(from.kept(), part) {
                0 => self.open.as_mut()?.turn += 1,
                bytes => {
                    let (home, travels, copied) = (from.home(), false, None);
                    return Some(Visit { input, home, bytes, travels, copied });
                }
            }
        }
    }

    fn next(&mut self, gathered: &Gathered) -> Result<ReadStep, PrimitiveError> {
        loop {
            if let Some(visit) = self.due(gathered) {
                return Ok(ReadStep::Visit(visit));
            }
            if let Some(OpenPiece { part, table: Some(table), .. }) = self.open.take()
                && let Some(table) = gathered.join_parts(part, table)?
            {
                return Ok(ReadStep::Groups(Groups::Own(Box::new(table))));
            }
            let Some(part) = gathered.take_part() else {
                self.spare = None;
                return Ok(ReadStep::End);
            };
            if let Some(groups) = gathered.only_table() {
                return Ok(ReadStep::Groups(groups));
            }
            self.open = Some(OpenPiece { part, turn: 0, table: None });
        }
    }

    fn visit(&mut self, gathered: &Gathered) -> Result<(), PrimitiveError> {
        let Some(Visit { input, .. }) = self.due(gathered) else { return Ok(()) };
        let Some(open) = &mut self.open else { return Ok(()) };
        let table = match &mut open.table {
            Some(table) => table,
            none => none.insert(gathered.table(open.part, self.home, self.spare.take())?),
        };
        let check = || gathered.stage().check();
        match gathered.inputs()[input].kept() {
            Kept::Dealt(dealt) => {
                let rows = gathered.stage().context().tuning().block_rows;
                let part = (open.part.piece, open.part.part, open.part.parts);
                self.spent += dealt.update(table, part, rows, &check, &mut self.columns)?;
            }
            kept => {
                let mut watch = Watch::start();
                let merging = gathered.merging();
                local::merge(table, kept, open.part, merging, &mut self.keys, &check)?;
                self.spent.update += watch.lap();
            }
        }
        open.turn += 1;
        Ok(())
    }

    fn reuse(&mut self, table: GroupTable) {
        self.spare = Some(table);
    }

    fn spent(&self) -> Spent {
        self.spent
    }
}

/// Bytes that an input has for a part.
fn bytes(kept: &Kept, of: PiecePart) -> usize {
    match kept {
        Kept::Nothing => 0,
        Kept::Table(table) => table.memory_bytes() / of.pieces + 1,
        Kept::Pieced { tables, rows } => {
            let all = tables.iter().map(|full| full.table.memory_bytes());
            let dealt = rows.as_ref().map_or(0, |rows| rows.bytes(of.piece));
            all.sum::<usize>() / of.pieces + dealt + 1
        }
        Kept::Dealt(dealt) => dealt.bytes(of.piece).div_ceil(of.parts),
    }
}

impl DealtRecords {
    /// Aggregates a part of a piece into a table; returns the time spent.
    pub(in crate::aggregate) fn update(
        &self,
        table: &mut GroupTable,
        (piece, part, parts): (usize, usize, usize),
        block_rows: usize,
        check: &dyn Fn() -> Result<(), PrimitiveError>,
        columns: &mut RecordColumns,
    ) -> Result<Spent, PrimitiveError> {
        let mut spent = Spent::default();
        let mut watch = Watch::start();
        self.read(piece, block_rows, (part, parts), columns, |columns| {
            spent.read += watch.lap();
            check()?;
            let is_inside = table.update_words(&columns.words, &columns.blocks())?;
            assert!(is_inside, "a piece has the words of its range");
            spent.update += watch.lap();
            Ok::<(), PrimitiveError>(())
        })?;
        Ok(spent)
    }
}
