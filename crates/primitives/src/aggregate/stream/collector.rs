//! Collects one input's rows into a table or into records.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::coalesce::BatchCoalescer;
use atoll_topology::NodeId;

use super::decision::{Collecting, Dealing, Decision, Held};
use super::gathered::{Collected, Kept};
use super::tables::EncodedTables;
use super::{Merging, Stage};
use crate::PrimitiveError;
use crate::aggregate::keys::KeyBlock;
use crate::aggregate::lane::{self, LaneScratch};
use crate::aggregate::packing;
use crate::aggregate::records::InputRecords;
use crate::aggregate::rows::BatchRows;
use crate::aggregate::table::GroupTable;

/// Rows that a collector looks at before it decides.
const LOOK_ROWS: usize = 1 << 15;
/// Smaller batches are gathered first: the cost per batch would exceed that of its rows, and waiting batches of two
/// rows hold a thousand times the memory of their values.
const SMALL_ROWS: usize = 512;
/// Rows to which small batches are gathered.
const GATHERED_ROWS: usize = 4096;

/// Collects one input's rows.
#[derive(Debug)]
pub struct Collector {
    stage: Arc<Stage>,
    home: Option<NodeId>,
    /// Gathers small batches, once there was one.
    small: Option<BatchCoalescer>,
    held: Vec<BatchRows>,
    held_rows: usize,
    sink: Option<CollectorSink>,
    words: packing::PackScratch,
    keys: KeyBlock,
    lanes: Vec<LaneScratch>,
    digits: Vec<u32>,
}

#[derive(Debug)]
enum CollectorSink {
    Table(Box<GroupTable>),
    Records(Box<InputRecords>, Dealing),
    Encoded(Box<EncodedTables>),
}

/// An input that has ended. It may still hold its rows, if it ended before the decision.
#[derive(Debug)]
pub struct Ended(Collector);

impl Collector {
    /// A collector whose memory is on a node.
    pub fn new(stage: Arc<Stage>, home: Option<NodeId>) -> Self {
        Self {
            stage,
            home,
            small: None,
            held: Vec::new(),
            held_rows: 0,
            sink: None,
            words: packing::PackScratch::default(),
            keys: KeyBlock::default(),
            lanes: Vec::new(),
            digits: Vec::new(),
        }
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// [`PrimitiveError::Memory`], [`PrimitiveError::Shape`], [`PrimitiveError::Cancelled`].
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), PrimitiveError> {
        self.stage.check_types(batch)?;
        if self.small.is_none() && batch.num_rows() >= SMALL_ROWS {
            return self.hold(batch);
        }
        let input = &self.stage.input;
        let small = self.small.get_or_insert_with(|| {
            BatchCoalescer::new(Arc::clone(input), GATHERED_ROWS)
                .with_biggest_coalesce_batch_size(Some(SMALL_ROWS))
        });
        small.push_batch(batch.clone())?;
        self.hold_gathered()
    }

    fn hold_gathered(&mut self) -> Result<(), PrimitiveError> {
        while let Some(batch) = self.small.as_mut().and_then(BatchCoalescer::next_completed_batch) {
            self.hold(&batch)?;
        }
        Ok(())
    }

    /// Adds a batch, or holds it until there are enough rows for the decision.
    fn hold(&mut self, batch: &RecordBatch) -> Result<(), PrimitiveError> {
        let rows = BatchRows::new(&self.stage.plan, batch)?;
        if self.sink.is_some() {
            return self.take(&rows, (0, rows.rows));
        }
        self.held_rows += rows.rows;
        self.held.push(rows);
        if self.held_rows >= LOOK_ROWS || self.stage.decision.get().is_some() {
            self.take_held()?;
        }
        Ok(())
    }

    /// Adds some rows of a part whose columns are already lanes.
    pub(in crate::aggregate) fn push_rows(
        &mut self,
        rows: &BatchRows,
        range: (usize, usize),
    ) -> Result<(), PrimitiveError> {
        if self.sink.is_none() {
            self.open(&[(rows, (range.0, range.1.min(LOOK_ROWS)))])?;
        }
        self.take(rows, range)
    }

    /// Ends the input after the last batch.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn end(mut self) -> Result<Ended, PrimitiveError> {
        if let Some(small) = &mut self.small {
            small.finish_buffered_batch()?;
        }
        self.hold_gathered()?;
        Ok(Ended(self))
    }

    /// Adds the rows that it held.
    fn take_held(&mut self) -> Result<(), PrimitiveError> {
        let held = std::mem::take(&mut self.held);
        self.open(&held.iter().map(|rows| (rows, (0, rows.rows))).collect::<Vec<_>>())?;
        self.held_rows = 0;
        held.iter().try_for_each(|rows| self.take(rows, (0, rows.rows)))
    }

    /// Creates the sink of the decision; if there is no decision yet, these rows make it.
    fn open(&mut self, first: &[Held<'_>]) -> Result<(), PrimitiveError> {
        let stage = Arc::clone(&self.stage);
        let decision = match stage.decision.get() {
            Some(decision) => decision,
            None => {
                let decided = stage.decide(first, false)?;
                stage.decision.get_or_init(|| decided)
            }
        };
        self.sink = Some(self.sink_of(decision)?);
        Ok(())
    }

    fn sink_of(&self, decision: &Decision) -> Result<CollectorSink, PrimitiveError> {
        let (stage, home) = (&self.stage, self.home);
        let (tuning, arena) = (stage.context.tuning(), stage.context.arena());
        Ok(match (&decision.collecting, &stage.layout) {
            (Collecting::Records(dealing), Some(layout)) if !stage.is_wide() => {
                let counted = stage.rows.filter(|_| stage.counted).unwrap_or(0);
                let rows = self.held_rows.max(counted / stage.outputs);
                let fan_out = dealing.fan_out();
                let records =
                    InputRecords::new(layout, fan_out, tuning.buffer_rows, rows, (arena, home))?;
                CollectorSink::Records(Box::new(records), *dealing)
            }
            (Collecting::Table(shape), _) if !stage.is_wide() => {
                CollectorSink::Table(Box::new(stage.table(home, shape)?))
            }
            _ => {
                stage.widen();
                CollectorSink::Encoded(Box::new(EncodedTables::new(stage, decision, home)?))
            }
        })
    }

    fn take(
        &mut self,
        rows: &BatchRows,
        (start, len): (usize, usize),
    ) -> Result<(), PrimitiveError> {
        let (block, end) = (self.stage.context.tuning().block_rows.max(1), start + len);
        for start in (start..end).step_by(block) {
            self.stage.check()?;
            let len = block.min(end - start);
            if self.stage.is_wide() || !self.take_block(rows, (start, len))? {
                self.stage.widen();
                self.take_encoded(rows, (start, len))?;
            }
        }
        Ok(())
    }

    /// Adds a block by the words of its keys; adds nothing and returns false if a key does not fit.
    fn take_block(
        &mut self,
        rows: &BatchRows,
        (start, len): (usize, usize),
    ) -> Result<bool, PrimitiveError> {
        let stage = Arc::clone(&self.stage);
        let packing = stage.packing.as_ref();
        let words = packing
            .and_then(|packing| packing.pack(rows.key_lanes(), start, len, &mut self.words).ok());
        let Some(words) = words else { return Ok(false) };
        let values = lane::blocks(&mut self.lanes, &rows.lanes, start, len);
        match &mut self.sink {
            Some(CollectorSink::Table(table)) if stage.plan.key_types.is_empty() => {
                table.update_all(len, &values)?;
            }
            Some(CollectorSink::Table(table)) => {
                if !table.update_words(words, &values)? {
                    // A key outside of the expected range.
                    let ranged = std::mem::replace(
                        table.as_mut(),
                        stage.table(self.home, &super::TableShape::Hashed { expected: 0 })?,
                    );
                    **table = ranged.into_hashed(&stage.plan)?;
                    table.update_words(words, &values)?;
                }
            }
            Some(CollectorSink::Records(records, dealing)) => {
                dealing.digits(words, &mut self.digits);
                records.push(&self.digits, words, &values)?;
            }
            Some(CollectorSink::Encoded(_)) | None => unreachable!("keys are not encoded yet"),
        }
        Ok(true)
    }

    fn take_encoded(
        &mut self,
        rows: &BatchRows,
        (start, len): (usize, usize),
    ) -> Result<(), PrimitiveError> {
        self.encode()?;
        let stage = &self.stage;
        let Some(CollectorSink::Encoded(tables)) = &mut self.sink else {
            unreachable!("encoded above")
        };
        let columns = rows.key_columns(&stage.encoder)?;
        let keys = stage.encoder.encode_once(columns, (start, len), &mut self.keys);
        let values = lane::blocks(&mut self.lanes, &rows.lanes, start, len);
        tables.update(stage, &keys, len, &values)
    }

    /// Encodes the rows collected as words so far.
    fn encode(&mut self) -> Result<(), PrimitiveError> {
        let stage = Arc::clone(&self.stage);
        let Some(decision) = stage.decision.get() else { unreachable!("a sink came of it") };
        let before = match self.sink.take() {
            Some(CollectorSink::Encoded(tables)) => {
                self.sink = Some(CollectorSink::Encoded(tables));
                return Ok(());
            }
            before => before,
        };
        let mut tables = EncodedTables::new(&stage, decision, self.home)?;
        match (before, &stage.packing) {
            (Some(CollectorSink::Table(table)), Some(packing)) => {
                tables.table().merge_packed(&table, packing, &|| stage.check())?;
            }
            (Some(CollectorSink::Records(records, _)), _) => {
                stage.add_encoded(tables.table(), &(*records).finish()?)?;
            }
            _ => {}
        }
        self.sink = Some(CollectorSink::Encoded(Box::new(tables)));
        Ok(())
    }
}

impl Ended {
    /// Whether all work before reading its rows is done.
    pub fn is_finished(&self) -> bool {
        let stage = &self.0.stage;
        let is_merged_at_once = stage.merging.get() != Some(&Merging::Pieces);
        match &self.0.sink {
            None => self.0.held.is_empty(),
            Some(CollectorSink::Encoded(tables)) => is_merged_at_once && tables.is_one(),
            Some(CollectorSink::Table(_)) => is_merged_at_once && !stage.is_wide(),
            Some(CollectorSink::Records(..)) => false,
        }
    }

    /// Finishes the input. All inputs must have ended, and the stage must be settled.
    ///
    /// # Errors
    /// As [`Collector::push`].
    pub fn finish(mut self) -> Result<Collected, PrimitiveError> {
        let own = &mut self.0;
        if own.sink.is_none() && own.held_rows > 0 {
            own.take_held()?;
        }
        if own.sink.is_some() && own.stage.is_wide() {
            own.encode()?;
        }
        let (stage, sink) = (Arc::clone(&own.stage), own.sink.take());
        let pieces = stage.merging.get() == Some(&Merging::Pieces);
        let into_pieces = |table: GroupTable| match stage.decision.get() {
            Some(decision) => table.into_pieces(&stage.plan, decision.fan_out),
            None => unreachable!("a table came of it"),
        };
        Ok(Collected(match sink {
            None => Kept::Nothing,
            Some(CollectorSink::Records(records, _)) => Kept::Dealt(Box::new((*records).finish()?)),
            Some(CollectorSink::Table(table)) if pieces => {
                Kept::Pieced { tables: vec![into_pieces(*table)?], rows: None }
            }
            Some(CollectorSink::Table(table)) => Kept::Table(table),
            Some(CollectorSink::Encoded(tables)) => {
                let is_one = tables.is_one();
                let (open, mut full, rows) = (*tables).into_parts();
                if is_one && !pieces {
                    return Ok(Collected(Kept::Table(Box::new(open))));
                }
                full.push(into_pieces(open)?);
                Kept::Pieced { tables: full, rows }
            }
        }))
    }

    /// Rows that wait for a decision.
    pub(super) fn held(&self) -> &[BatchRows] {
        &self.0.held
    }

    /// Whether a key of the waiting rows fits no word.
    pub(super) fn has_wide_keys(&self) -> bool {
        let mut scratch = packing::PackScratch::default();
        let packing = self.0.stage.packing.as_ref();
        let mut fits = |rows: &BatchRows| {
            packing.is_some_and(|packing| {
                packing.pack(rows.key_lanes(), 0, rows.rows, &mut scratch).is_ok()
            })
        };
        !self.0.held.iter().all(&mut fits)
    }

    /// Groups of its table, or the maximum for the waiting rows, of which `most` are expected. None if it has records.
    pub(super) fn groups(&self, most: usize) -> usize {
        match &self.0.sink {
            None => self.0.held_rows.min(most),
            Some(CollectorSink::Table(table)) => table.groups(),
            Some(CollectorSink::Encoded(tables)) => tables.groups(),
            Some(CollectorSink::Records(..)) => 0,
        }
    }

    /// Whether its groups are, or will be, the words of the decided range.
    pub(super) fn is_in_range(&self) -> bool {
        match &self.0.sink {
            None => true,
            Some(CollectorSink::Table(table)) => table.is_dense(),
            _ => false,
        }
    }

    /// Whether it set tables aside, or partitioned rows, piece by piece.
    pub(super) fn has_pieces(&self) -> bool {
        matches!(&self.0.sink, Some(CollectorSink::Encoded(tables)) if !tables.is_one())
    }

    /// Whether it has records.
    pub(super) fn has_records(&self) -> bool {
        matches!(&self.0.sink, Some(CollectorSink::Records(..)))
    }
}
