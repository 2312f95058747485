//! Groups out of what all inputs came to.

use std::sync::Arc;

use arrow_array::RecordBatch;
use atoll_topology::NodeId;

use super::collector::{Collected, Kept};
use super::{Decision, Stage};
use crate::PrimitiveError;
use crate::aggregate::Variant;
use crate::aggregate::records::Columns;
use crate::aggregate::table::{Cut, Shape, Table};

/// Tables with fewer groups than this, added up, are merged by one output.
const SHARED_GROUPS_MIN: usize = 1 << 14;

/// One output: pieces one after another, each read from all inputs in steps of one input, and its
/// groups handed out in batches of a size that the reader chooses.
///
/// Where inputs have records, pieces are those to which they were dealt. Where they have tables, a
/// piece is a share of the groups of all tables, for each output one; few groups, and tables whose keys
/// are not found in the same way, are a single piece, which is the first output's.
#[derive(Debug)]
pub struct Outputs {
    stage: Arc<Stage>,
    output: usize,
    home: Option<NodeId>,
    collected: Arc<Vec<Collected>>,
    source: Source,
    /// Most groups of a batch.
    batch_rows: usize,
    pieces: usize,
    piece: usize,
    /// Inputs of the piece that are read.
    read: usize,
    table: Option<Table>,
    /// Groups of the last piece that went out; none while one is read.
    sent: Option<usize>,
    columns: Columns,
}

/// What pieces are read from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Records, of which a piece has about so many groups.
    Records { groups: usize },
    /// Tables, the largest of which has so many groups; all keys are words, or not.
    Tables { groups: usize, words: bool },
    /// The only table there is, as it is.
    OneTable(usize),
}

/// What comes next of an output.
#[derive(Debug)]
pub enum Next {
    /// Rows or groups of one input are to be read: [`Outputs::visit`], on the node that has them where
    /// the thread is to travel and not the rows.
    Visit {
        /// Home of the rows.
        home: Option<NodeId>,
        /// Their bytes.
        bytes: usize,
    },
    /// Groups.
    Batch(RecordBatch),
    /// The last batch is out.
    End,
}

impl Outputs {
    /// One output, whose memory lies on a node, in batches of at most `batch_rows` groups. `collected`
    /// is of all inputs.
    pub fn new(
        stage: Arc<Stage>,
        output: usize,
        home: Option<NodeId>,
        collected: Arc<Vec<Collected>>,
        batch_rows: usize,
    ) -> Self {
        let (source, pieces) = source(&stage, output, &collected);
        let is_done = matches!(source, Source::OneTable(_)) && output == 0;
        let pieces = if is_done { 0 } else { pieces };
        Self {
            stage,
            output,
            home,
            collected,
            source,
            batch_rows: batch_rows.max(1),
            pieces,
            piece: output,
            read: 0,
            table: None,
            sent: is_done.then_some(0),
            columns: Columns::default(),
        }
    }

    /// What comes next; a visit comes again until it is made.
    ///
    /// # Errors
    /// [`PrimitiveError::Memory`], [`PrimitiveError::Overflow`], [`PrimitiveError::Cancelled`].
    pub fn advance(&mut self) -> Result<Next, PrimitiveError> {
        self.stage.check()?;
        loop {
            if let Some(batch) = self.next_groups()? {
                return Ok(Next::Batch(batch));
            }
            if self.piece >= self.pieces {
                return Ok(Next::End);
            }
            let Some(collected) = self.input() else {
                self.end_piece();
                continue;
            };
            match self.bytes(collected) {
                0 => self.read += 1,
                bytes => return Ok(Next::Visit { home: collected.home(), bytes }),
            }
        }
    }

    /// The input whose turn it is: each output begins with another one, so that they do not meet.
    fn input(&self) -> Option<&Collected> {
        let inputs = self.collected.len();
        let at = match self.stage.variant {
            Variant::Naive => self.read,
            _ => (self.output + self.read) % inputs.max(1),
        };
        (self.read < inputs).then(|| &self.collected[at])
    }

    /// Bytes that are read of an input for the piece.
    fn bytes(&self, of: &Collected) -> usize {
        match &of.0 {
            Kept::Nothing => 0,
            Kept::Table(table) | Kept::Encoded(table) => table.memory_bytes() / self.pieces + 1,
            Kept::Dealt(dealt) if matches!(self.source, Source::Records { .. }) => {
                dealt.bytes(self.piece)
            }
            Kept::Dealt(dealt) => (0..dealt.pieces()).map(|piece| dealt.bytes(piece)).sum(),
        }
    }

    /// Reads what [`advance`](Self::advance) told of.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn visit(&mut self) -> Result<(), PrimitiveError> {
        let stage = Arc::clone(&self.stage);
        let mut table = match self.table.take() {
            Some(table) => table,
            None => self.piece_table()?,
        };
        let mut columns = std::mem::take(&mut self.columns);
        if let Some(collected) = self.input() {
            match (self.source, &collected.0) {
                (Source::Records { .. }, Kept::Dealt(dealt)) => {
                    let block = stage.context.tuning().block_rows;
                    dealt.read(self.piece, block, (0, 1), &mut columns, |columns| {
                        stage.check()?;
                        table.update_words(&columns.words, &columns.blocks())?;
                        Ok::<(), PrimitiveError>(())
                    })?;
                }
                (_, kept) => self.merge(&mut table, kept)?,
            }
        }
        self.read += 1;
        (self.table, self.columns) = (Some(table), columns);
        Ok(())
    }

    /// Adds the piece's share of what one input has.
    fn merge(&self, table: &mut Table, kept: &Kept) -> Result<(), PrimitiveError> {
        let check = || self.stage.check();
        match kept {
            Kept::Table(more) | Kept::Encoded(more) if self.pieces > 1 => {
                let groups = more.part(Cut::Hash, self.piece, self.pieces);
                table.merge_groups(more, &groups, &check)
            }
            Kept::Table(more) if table.is_like(more) => table.merge(more, &check),
            kept => self.stage.add_encoded(table, kept),
        }
    }

    /// A table for the piece.
    fn piece_table(&self) -> Result<Table, PrimitiveError> {
        match self.source {
            Source::Records { groups } => {
                self.stage.table_of(self.home, &Shape::Hashed { expected: groups })
            }
            Source::Tables { groups, words: true } => {
                self.stage.table(self.home, groups / self.pieces / 2)
            }
            Source::Tables { .. } | Source::OneTable(_) => self.stage.encoded_table(self.home),
        }
    }

    /// The piece is read: on to its groups and to the next one.
    fn end_piece(&mut self) {
        self.piece += self.stage.outputs;
        self.read = 0;
        self.sent = self.table.is_some().then_some(0);
    }

    /// The next groups of the piece that was read.
    fn next_groups(&mut self) -> Result<Option<RecordBatch>, PrimitiveError> {
        let Some(start) = self.sent else { return Ok(None) };
        let table = match self.source {
            Source::OneTable(at) => self.collected[at].table().map(|(table, _)| table),
            _ => self.table.as_ref(),
        };
        let groups = table.map_or(0, Table::groups);
        if let Some(table) = table.filter(|_| start < groups) {
            let end = groups.min(start + self.batch_rows);
            let packing = self.stage.packing.as_ref();
            let batch = table.batch_of(&self.stage.plan, packing, start..end)?;
            self.sent = Some(end);
            return Ok(Some(batch));
        }
        self.sent = None;
        match &mut self.table {
            Some(table) if self.piece < self.pieces => table.restart(0)?,
            // Memory goes back before the reader is done with the last batch.
            table => *table = None,
        }
        Ok(None)
    }
}

/// What an output's pieces are read from, and how many there are of all outputs.
fn source(stage: &Stage, output: usize, collected: &[Collected]) -> (Source, usize) {
    let tables = || collected.iter().filter_map(Collected::table);
    let all_tables = collected.iter().all(|collected| collected.dealt().is_none());
    let mut found = collected.iter().enumerate().filter(|(_, it)| it.table().is_some());
    match (found.next(), found.next()) {
        (None, _) => {
            let Some(Decision { pieces: Some(pieces), groups, .. }) = stage.decision.get() else {
                return (Source::Records { groups: 0 }, 0);
            };
            let pieces = pieces.partitions();
            let own = (output..pieces).step_by(stage.outputs);
            let dealt = || collected.iter().filter_map(Collected::dealt);
            let rows = |piece| dealt().map(|dealt| dealt.rows(piece)).sum::<usize>();
            // A wrong estimate costs no more than the rows that are there.
            let groups = (groups / pieces).min(own.map(rows).max().unwrap_or(0));
            (Source::Records { groups }, pieces)
        }
        (Some((at, _)), None) if all_tables => (Source::OneTable(at), 1),
        _ => {
            let words = all_tables && tables().all(|(_, encoded)| !encoded);
            let alike = words || all_tables && tables().all(|(_, encoded)| encoded);
            let sum: usize = tables().map(|(table, _)| table.groups()).sum();
            let groups = tables().map(|(table, _)| table.groups()).max().unwrap_or(0);
            let shared = alike && sum >= SHARED_GROUPS_MIN;
            (Source::Tables { groups, words }, if shared { stage.outputs } else { 1 })
        }
    }
}
