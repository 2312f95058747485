//! One input's rows on their way to a table or to records.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_select::coalesce::BatchCoalescer;
use atoll_topology::NodeId;

use super::{LOCAL_GROUPS_MAX, Stage};
use crate::aggregate::feed::Feed;
use crate::aggregate::keys::Encoder;
use crate::aggregate::lane::{Lane, Scratch};
use crate::aggregate::packing;
use crate::aggregate::plan::Plan;
use crate::aggregate::records::{Dealt, Records};
use crate::aggregate::table::Table;
use crate::{PrimitiveError, hash};

/// Rows that a collector looks at before it decides.
const LOOK_ROWS: usize = 1 << 15;
/// Batches of fewer rows are gathered first: what is done once for each batch would cost more than
/// its rows, and batches of two rows that wait hold a thousand times the memory of their values.
const SMALL_ROWS: usize = 512;
/// Rows that small batches are gathered to.
const GATHERED_ROWS: usize = 4096;

/// Takes one input's rows.
#[derive(Debug)]
pub struct Collector {
    stage: Arc<Stage>,
    home: Option<NodeId>,
    /// Where small batches are gathered, once there was one.
    small: Option<BatchCoalescer>,
    held: Vec<Rows>,
    held_rows: usize,
    sink: Option<Sink>,
    keys: packing::Scratch,
    lanes: Vec<Scratch>,
    digits: Vec<u32>,
}

/// A batch taken apart.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) rows: usize,
    keys: Vec<ArrayRef>,
    pub(super) key_lanes: Option<Vec<Lane>>,
    lanes: Vec<Lane>,
}

#[derive(Debug)]
enum Sink {
    Table(Box<Table>),
    Records(Box<Records>),
    Encoded(Box<Table>),
}

/// What one input came to.
#[derive(Debug)]
pub struct Collected(pub(super) Kept);

#[derive(Debug)]
pub(super) enum Kept {
    Nothing,
    Table(Box<Table>),
    Dealt(Box<Dealt>),
    Encoded(Box<Table>),
}

impl Collector {
    /// A collector whose memory lies on a node.
    pub fn new(stage: Arc<Stage>, home: Option<NodeId>) -> Self {
        Self {
            stage,
            home,
            small: None,
            held: Vec::new(),
            held_rows: 0,
            sink: None,
            keys: packing::Scratch::default(),
            lanes: Vec::new(),
            digits: Vec::new(),
        }
    }

    /// Takes a batch.
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

    /// Takes a batch, or holds it until enough rows are there to decide by.
    fn hold(&mut self, batch: &RecordBatch) -> Result<(), PrimitiveError> {
        let rows = Rows::new(&self.stage.plan, batch)?;
        if self.sink.is_some() {
            return self.take(&rows);
        }
        self.held_rows += rows.rows;
        self.held.push(rows);
        if self.held_rows >= LOOK_ROWS || self.stage.decision.get().is_some() {
            self.open(false)?;
        }
        Ok(())
    }

    /// What came of all batches.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(mut self) -> Result<Collected, PrimitiveError> {
        if let Some(small) = &mut self.small {
            small.finish_buffered_batch()?;
        }
        self.hold_gathered()?;
        if self.sink.is_none() && self.held_rows > 0 {
            self.open(true)?;
        }
        self.kept().map(Collected)
    }

    fn kept(&mut self) -> Result<Kept, PrimitiveError> {
        Ok(match self.sink.take() {
            None => Kept::Nothing,
            Some(Sink::Table(table)) => Kept::Table(table),
            Some(Sink::Records(records)) => Kept::Dealt(Box::new((*records).finish()?)),
            Some(Sink::Encoded(table)) => Kept::Encoded(table),
        })
    }

    /// Makes the sink that the first rows ask for, and gives it those.
    fn open(&mut self, all: bool) -> Result<(), PrimitiveError> {
        let stage = Arc::clone(&self.stage);
        let decision = stage.decision.get_or_init(|| stage.decide(&self.held, all));
        let (context, memory) = (&stage.context, (stage.context.arena(), self.home));
        self.sink = Some(match (&stage.packing, &stage.layout, decision.pieces) {
            (Some(_), Some(layout), Some(pieces)) => {
                let buffer = context.tuning().buffer_rows;
                let counted = stage.rows.filter(|_| stage.counted).unwrap_or(0);
                let rows = self.held_rows.max(counted / stage.outputs);
                let records = Records::new(layout, pieces, buffer, rows, memory)?;
                Sink::Records(Box::new(records))
            }
            (Some(_), ..) => {
                let groups = decision.groups.min(LOCAL_GROUPS_MAX);
                Sink::Table(Box::new(stage.table(self.home, groups)?))
            }
            (None, ..) => Sink::Encoded(Box::new(stage.encoded_table(self.home)?)),
        });
        for rows in std::mem::take(&mut self.held) {
            self.take(&rows)?;
        }
        Ok(())
    }

    fn take(&mut self, rows: &Rows) -> Result<(), PrimitiveError> {
        let block = self.stage.context.tuning().block_rows.max(1);
        for start in (0..rows.rows).step_by(block) {
            self.stage.check()?;
            let len = block.min(rows.rows - start);
            if !self.take_block(rows, start, len)? {
                self.encode()?;
                self.take_encoded(rows, start, len)?;
            }
        }
        Ok(())
    }

    /// Takes a block; false, and nothing taken, where a key does not fit its word.
    fn take_block(
        &mut self,
        rows: &Rows,
        start: usize,
        len: usize,
    ) -> Result<bool, PrimitiveError> {
        let stage = Arc::clone(&self.stage);
        let Some(sink) = &mut self.sink else { unreachable!("opened before") };
        if let Sink::Encoded(_) = sink {
            self.take_encoded(rows, start, len)?;
            return Ok(true);
        }
        let key_lanes = rows.key_lanes.as_deref().unwrap_or_default();
        let packing = stage.packing.as_ref();
        let words =
            packing.and_then(|packing| packing.pack(key_lanes, start, len, &mut self.keys).ok());
        let Some(words) = words else { return Ok(false) };
        let values = Feed::blocks(&mut self.lanes, &rows.lanes, start, len);
        match sink {
            Sink::Table(table) if stage.plan.key_types.is_empty() => {
                table.update_all(len, &values)?
            }
            Sink::Table(table) => {
                table.update_words(words, &values)?;
            }
            Sink::Records(records) => {
                let fan_out = records.fan_out();
                self.digits.clear();
                let digits = words.iter().map(|key| fan_out.digit(hash::word(*key)) as u32);
                self.digits.extend(digits);
                records.push(&self.digits, words, &values)?;
            }
            Sink::Encoded(_) => unreachable!("taken above"),
        }
        Ok(true)
    }

    fn take_encoded(
        &mut self,
        rows: &Rows,
        start: usize,
        len: usize,
    ) -> Result<(), PrimitiveError> {
        let Some(Sink::Encoded(table)) = &mut self.sink else { unreachable!("encoded before") };
        let keys: Vec<ArrayRef> = rows.keys.iter().map(|key| key.slice(start, len)).collect();
        let encoded = Encoder::new(&self.stage.plan.key_types)?.encode(&keys)?;
        let values = Feed::blocks(&mut self.lanes, &rows.lanes, start, len);
        Ok(table.update_encoded(&encoded, (0, len), &values)?)
    }

    /// From now on keys are encoded; what came before is, too.
    fn encode(&mut self) -> Result<(), PrimitiveError> {
        let kept = self.kept()?;
        let mut table = self.stage.encoded_table(self.home)?;
        self.stage.add_encoded(&mut table, &kept)?;
        self.sink = Some(Sink::Encoded(Box::new(table)));
        Ok(())
    }
}

impl Rows {
    fn new(plan: &Plan, batch: &RecordBatch) -> Result<Self, PrimitiveError> {
        let keys = plan.keys(batch);
        let key_lanes = keys.iter().map(|key| Lane::key(key)).collect();
        Ok(Self { rows: batch.num_rows(), keys, key_lanes, lanes: plan.lanes(batch)? })
    }
}

impl Collected {
    /// The records, where rows were dealt.
    pub(super) fn dealt(&self) -> Option<&Dealt> {
        match &self.0 {
            Kept::Dealt(dealt) => Some(dealt),
            _ => None,
        }
    }

    /// The table, and whether its keys are encoded.
    pub(super) fn table(&self) -> Option<(&Table, bool)> {
        match &self.0 {
            Kept::Table(table) => Some((table, false)),
            Kept::Encoded(table) => Some((table, true)),
            Kept::Nothing | Kept::Dealt(_) => None,
        }
    }

    /// Node that has it.
    pub(super) fn home(&self) -> Option<NodeId> {
        self.dealt().map_or_else(|| self.table()?.0.home(), |dealt| dealt.home)
    }
}
