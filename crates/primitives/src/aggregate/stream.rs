//! Aggregation of rows that come batch by batch, as an engine's operator has it.
//!
//! ```text
//! input 0 ─▶ Collector ─┐            ┌─▶ output 0
//! input 1 ─▶ Collector ─┤  Collected ├─▶ output 1       the exchange is the reading
//!    …                  └────────────┘      …           of what was collected
//! ```
//!
//! The first rows decide for all: a table for each input where few groups are expected, records by
//! piece where many are. Keys are packed into words as long as they fit; one that does not makes its
//! collector encode all keys from then on.

use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use atoll_topology::NodeId;

use super::estimate::{self, Keys};
use super::feed::Feed;
use super::keys::Encoder;
use super::lane::{Lane, Scratch};
use super::packing::{self, Packing, Range};
use super::plan::Plan;
use super::records::{Columns, Dealt, Layout, Records};
use super::table::{Shape, Table};
use super::{Query, Variant};
use crate::partition::FanOut;
use crate::{Context, PrimitiveError, hash};

/// Rows that a collector looks at before it decides.
const LOOK_ROWS: usize = 1 << 15;
/// Pieces for each output, at least: outputs end together although pieces differ.
const PIECES_PER_OUTPUT: usize = 16;
/// Groups of a piece, about: its table stays in the second-level cache.
const PIECE_GROUPS: usize = 1 << 13;
/// Tables of up to so many groups are merged by one worker sooner than dealt to all.
const LOCAL_GROUPS_MAX: usize = 1 << 15;

/// What all collectors and outputs of an aggregation share.
#[derive(Debug)]
pub struct Stage {
    context: Context,
    plan: Plan,
    packing: Option<Packing>,
    layout: Option<Layout>,
    outputs: usize,
    rows: Option<usize>,
    variant: Variant,
    decision: OnceLock<Decision>,
}

/// How rows are collected.
#[derive(Clone, Debug)]
struct Decision {
    /// None: a table for each input.
    pieces: Option<FanOut>,
    groups: usize,
    reason: String,
}

/// What is told of an input before it comes.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// Rows in all, where somebody knows.
    pub rows: Option<usize>,
    /// Whether each key may be null, and its range.
    pub keys: Vec<(bool, Option<Range>)>,
}

/// Takes one input's rows.
#[derive(Debug)]
pub struct Collector {
    stage: Arc<Stage>,
    home: Option<NodeId>,
    held: Vec<Rows>,
    held_rows: usize,
    sink: Option<Sink>,
    keys: packing::Scratch,
    lanes: Vec<Scratch>,
    digits: Vec<u32>,
}

/// A batch taken apart.
#[derive(Debug)]
struct Rows {
    rows: usize,
    keys: Vec<ArrayRef>,
    key_lanes: Option<Vec<Lane>>,
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
pub struct Collected(Kept);

#[derive(Debug)]
enum Kept {
    Nothing,
    Table(Box<Table>),
    Dealt(Box<Dealt>),
    Encoded(Box<Table>),
}

impl Stage {
    /// An aggregation of rows of this schema into `outputs` outputs.
    ///
    /// # Errors
    /// As [`aggregate`](super::aggregate).
    pub fn new(
        context: Context,
        query: &Query,
        schema: &Schema,
        outputs: usize,
        expected: &Expected,
        variant: Variant,
    ) -> Result<Self, PrimitiveError> {
        let plan = Plan::new(query, schema)?;
        let known = |at: usize| expected.keys.get(at).copied().unwrap_or((true, None));
        let keys = plan.key_types.iter().enumerate();
        let keys: Vec<_> =
            keys.map(|(at, data_type)| (data_type.clone(), known(at).0, known(at).1)).collect();
        let packing = Packing::expecting(&keys);
        let layout = Layout::new(&plan);
        Ok(Self {
            context,
            plan,
            packing,
            layout,
            outputs: outputs.max(1),
            rows: expected.rows,
            variant,
            decision: OnceLock::new(),
        })
    }

    /// Whether keys are packed into words, as long as they fit: otherwise every key is hashed byte by
    /// byte.
    pub fn is_packed(&self) -> bool {
        self.packing.is_some()
    }

    /// Columns of the result: keys, then aggregates.
    pub fn schema(&self) -> &SchemaRef {
        self.plan.schema()
    }

    /// The variant that was chosen and why; none before the first rows.
    pub fn chosen(&self) -> Option<(Variant, &str)> {
        let decision = self.decision.get()?;
        let partitioned = match self.variant {
            Variant::Auto | Variant::Local => Variant::Ring,
            other => other,
        };
        let variant = if decision.pieces.is_some() { partitioned } else { Variant::Local };
        Some((variant, &decision.reason))
    }

    fn decide(&self, held: &[Rows], all: bool) -> Decision {
        let rows: usize = held.iter().map(|rows| rows.rows).sum();
        let Some(packing) = self.packing.as_ref().filter(|_| self.layout.is_some()) else {
            let reason = "keys or values do not fit a record".into();
            return Decision { pieces: None, groups: rows, reason };
        };
        let total = if all { rows } else { self.rows.unwrap_or(rows * self.outputs).max(rows) };
        let groups = self.look(held, packing, total).groups;
        let many = match self.variant {
            Variant::Auto => groups > LOCAL_GROUPS_MAX,
            Variant::Local => false,
            _ => true,
        };
        let reason = format!("{groups} groups of {total} rows expected");
        let pieces = (groups / PIECE_GROUPS).max(self.outputs * PIECES_PER_OUTPUT);
        let bits = self.context.tuning().fan_out_bits_max;
        let pieces = FanOut::of_bits(FanOut::at_least(pieces).bits().min(bits));
        Decision { pieces: many.then_some(pieces), groups, reason }
    }

    /// Estimates from the first rows.
    fn look(&self, held: &[Rows], packing: &Packing, total: usize) -> Keys {
        let mut scratch = packing::Scratch::default();
        let mut words: Vec<u64> = Vec::new();
        for rows in held {
            let lanes = rows.key_lanes.as_deref().unwrap_or_default();
            if let Ok(packed) = packing.pack(lanes, 0, rows.rows, &mut scratch) {
                words.extend_from_slice(packed);
            }
        }
        estimate::Keys::of_first(&words, total)
    }
}

impl Collector {
    /// A collector whose memory lies on a node.
    pub fn new(stage: Arc<Stage>, home: Option<NodeId>) -> Self {
        Self {
            stage,
            home,
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
        if self.sink.is_none() && self.held_rows > 0 {
            self.open(true)?;
        }
        Ok(Collected(match self.sink {
            None => Kept::Nothing,
            Some(Sink::Table(table)) => Kept::Table(table),
            Some(Sink::Records(records)) => Kept::Dealt(Box::new((*records).finish()?)),
            Some(Sink::Encoded(table)) => Kept::Encoded(table),
        }))
    }

    /// Makes the sink that the first rows ask for, and gives it those.
    fn open(&mut self, all: bool) -> Result<(), PrimitiveError> {
        let stage = Arc::clone(&self.stage);
        let decision = stage.decision.get_or_init(|| stage.decide(&self.held, all));
        let (context, memory) = (&stage.context, (stage.context.arena(), self.home));
        self.sink = Some(match (&stage.packing, &stage.layout, decision.pieces) {
            (Some(_), Some(layout), Some(pieces)) => {
                let rows = stage.rows.unwrap_or(0) / stage.outputs;
                let buffer = context.tuning().buffer_rows;
                let records = Records::new(layout, pieces, buffer, rows, memory)?;
                Sink::Records(Box::new(records))
            }
            (Some(_), ..) => Sink::Table(Box::new(self.table(&stage, decision.groups)?)),
            (None, ..) => Sink::Encoded(Box::new(stage.encoded_table(self.home)?)),
        });
        for rows in std::mem::take(&mut self.held) {
            self.take(&rows)?;
        }
        Ok(())
    }

    fn table(&self, stage: &Stage, groups: usize) -> Result<Table, PrimitiveError> {
        let shape = match stage.plan.key_types.is_empty() {
            true => Shape::One,
            false => Shape::Hashed { expected: groups.min(LOCAL_GROUPS_MAX) },
        };
        let prefetch = stage.context.tuning().prefetch_rows;
        Ok(Table::new(&stage.plan, &shape, prefetch, stage.context.arena(), self.home)?)
    }

    fn take(&mut self, rows: &Rows) -> Result<(), PrimitiveError> {
        let block = self.stage.context.tuning().block_rows.max(1);
        for start in (0..rows.rows).step_by(block) {
            self.stage.context.cancel().check()?;
            let len = block.min(rows.rows - start);
            if !self.take_block(rows, start, len)? {
                self.encode()?;
                self.take_encoded(rows, start, rows.rows - start)?;
                return Ok(());
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
        let kept = match self.sink.take() {
            Some(Sink::Table(table)) => Kept::Table(table),
            Some(Sink::Records(records)) => Kept::Dealt(Box::new((*records).finish()?)),
            Some(Sink::Encoded(table)) => Kept::Encoded(table),
            None => Kept::Nothing,
        };
        let mut table = self.stage.encoded_table(self.home)?;
        self.stage.add_encoded(&mut table, &kept)?;
        self.sink = Some(Sink::Encoded(Box::new(table)));
        Ok(())
    }
}

impl Stage {
    fn encoded_table(&self, home: Option<NodeId>) -> Result<Table, PrimitiveError> {
        let shape = match self.plan.key_types.is_empty() {
            true => Shape::One,
            false => Shape::Encoded(Encoder::new(&self.plan.key_types)?),
        };
        let prefetch = self.context.tuning().prefetch_rows;
        Ok(Table::new(&self.plan, &shape, prefetch, self.context.arena(), home)?)
    }

    /// Adds what was collected to a table of encoded keys.
    fn add_encoded(&self, to: &mut Table, kept: &Kept) -> Result<(), PrimitiveError> {
        match (kept, &self.packing) {
            (Kept::Nothing, _) => Ok(()),
            (Kept::Encoded(table), _) => to.merge(table),
            (Kept::Table(table), Some(packing)) => to.merge_packed(table, packing),
            (Kept::Dealt(dealt), Some(packing)) => {
                let encoder = Encoder::new(&self.plan.key_types)?;
                let mut columns = Columns::default();
                let block = self.context.tuning().block_rows;
                for piece in 0..dealt.pieces() {
                    dealt.read(piece, block, (0, 1), &mut columns, |columns| {
                        self.context.cancel().check()?;
                        let keys = encoder.encode(&packing.unpack(&columns.words)?)?;
                        let len = columns.words.len();
                        Ok::<(), PrimitiveError>(to.update_encoded(
                            &keys,
                            (0, len),
                            &columns.blocks(),
                        )?)
                    })?;
                }
                Ok(())
            }
            (_, None) => unreachable!("words come of a packing"),
        }
    }

    /// A table for one piece after another.
    fn piece_table(&self, home: Option<NodeId>) -> Result<Table, PrimitiveError> {
        let decision = self.decision.get();
        let groups = decision.map_or(0, |decision| decision.groups);
        let pieces = decision.and_then(|decision| decision.pieces).map_or(1, FanOut::partitions);
        let shape = Shape::Hashed { expected: groups / pieces };
        let prefetch = self.context.tuning().prefetch_rows;
        Ok(Table::new(&self.plan, &shape, prefetch, self.context.arena(), home)?)
    }

    /// All groups in one batch.
    fn merged(
        &self,
        home: Option<NodeId>,
        collected: &[Collected],
    ) -> Result<RecordBatch, PrimitiveError> {
        let words = |collected: &Collected| matches!(collected.0, Kept::Table(_) | Kept::Nothing);
        let mut table = match collected.iter().all(words) && !self.plan.key_types.is_empty() {
            true => {
                let (shape, prefetch) = (Shape::Hashed { expected: 0 }, 0);
                Table::new(&self.plan, &shape, prefetch, self.context.arena(), home)?
            }
            false => self.encoded_table(home)?,
        };
        for collected in collected {
            self.context.cancel().check()?;
            match &collected.0 {
                Kept::Table(more) if table.is_like(more) => table.merge(more)?,
                kept => self.add_encoded(&mut table, kept)?,
            }
        }
        table.batch(&self.plan, self.packing.as_ref())
    }
}

/// One output out of what all inputs came to: its pieces one after another, each read from all
/// inputs. Where inputs have tables, the first output merges them and the others are empty.
#[derive(Debug)]
pub struct Outputs {
    stage: Arc<Stage>,
    output: usize,
    home: Option<NodeId>,
    collected: Arc<Vec<Collected>>,
    pieces: usize,
    piece: usize,
    /// Inputs of the piece that are read.
    read: usize,
    table: Option<Table>,
    columns: Columns,
}

/// What comes next of an output.
#[derive(Debug)]
pub enum Next {
    /// Rows of one input are to be read: [`Outputs::visit`], on the node that has them where the
    /// thread is to travel and not the rows.
    Visit {
        /// Home of the rows.
        home: Option<NodeId>,
        /// Their bytes.
        bytes: usize,
    },
    /// Groups.
    Batch(RecordBatch),
    /// There is no more.
    End,
}

impl Outputs {
    /// One output, whose memory lies on a node. `collected` is of all inputs.
    pub fn new(
        stage: Arc<Stage>,
        output: usize,
        home: Option<NodeId>,
        collected: Arc<Vec<Collected>>,
    ) -> Self {
        let tables = collected.iter().any(Collected::is_table);
        let pieces = stage.decision.get().and_then(|decision| decision.pieces);
        let pieces = match (tables, pieces) {
            (true, _) => usize::from(output == 0),
            (false, pieces) => pieces.map_or(0, FanOut::partitions),
        };
        let (piece, read, table, columns) = (output, 0, None, Columns::default());
        Self { stage, output, home, collected, pieces, piece, read, table, columns }
    }

    /// What comes next; a visit comes again until it is made.
    ///
    /// # Errors
    /// [`PrimitiveError::Memory`], [`PrimitiveError::Overflow`], [`PrimitiveError::Cancelled`].
    pub fn advance(&mut self) -> Result<Next, PrimitiveError> {
        self.stage.context.cancel().check()?;
        loop {
            if self.piece >= self.pieces {
                return Ok(Next::End);
            }
            if self.collected.iter().any(Collected::is_table) {
                self.piece = self.pieces;
                return Ok(Next::Batch(self.stage.merged(self.home, &self.collected)?));
            }
            if let Some(dealt) = self.source() {
                let bytes = dealt.bytes(self.piece);
                if bytes > 0 {
                    return Ok(Next::Visit { home: dealt.home, bytes });
                }
                self.read += 1;
                continue;
            }
            if self.read < self.collected.len() {
                self.read += 1;
                continue;
            }
            if let Some(batch) = self.end_piece()? {
                return Ok(Next::Batch(batch));
            }
        }
    }

    /// The input whose turn it is: each output begins with another one, so that they do not meet.
    fn source(&self) -> Option<&Dealt> {
        let inputs = self.collected.len();
        let source = match self.stage.variant {
            Variant::Naive => self.read,
            _ => (self.output + self.read) % inputs.max(1),
        };
        (self.read < inputs).then(|| self.collected[source].dealt()).flatten()
    }

    /// Reads what [`advance`](Self::advance) told of.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn visit(&mut self) -> Result<(), PrimitiveError> {
        let mut table = match self.table.take() {
            Some(table) => table,
            None => self.stage.piece_table(self.home)?,
        };
        let mut columns = std::mem::take(&mut self.columns);
        let stage = Arc::clone(&self.stage);
        if let Some(dealt) = self.source() {
            let block = stage.context.tuning().block_rows;
            dealt.read(self.piece, block, (0, 1), &mut columns, |columns| {
                stage.context.cancel().check()?;
                table.update_words(&columns.words, &columns.blocks())?;
                Ok::<(), PrimitiveError>(())
            })?;
        }
        self.read += 1;
        (self.table, self.columns) = (Some(table), columns);
        Ok(())
    }

    /// Groups of the piece that is read, and on to the next one.
    fn end_piece(&mut self) -> Result<Option<RecordBatch>, PrimitiveError> {
        self.piece += self.stage.outputs;
        self.read = 0;
        let Some(table) = self.table.as_mut().filter(|table| table.groups() > 0) else {
            return Ok(None);
        };
        let batch = table.batch(&self.stage.plan, self.stage.packing.as_ref())?;
        table.restart(0)?;
        Ok(Some(batch))
    }
}

impl Collected {
    fn dealt(&self) -> Option<&Dealt> {
        match &self.0 {
            Kept::Dealt(dealt) => Some(dealt),
            _ => None,
        }
    }

    fn is_table(&self) -> bool {
        matches!(self.0, Kept::Table(_) | Kept::Encoded(_))
    }
}

impl Rows {
    fn new(plan: &Plan, batch: &RecordBatch) -> Result<Self, PrimitiveError> {
        let keys = plan.keys(batch);
        for (key, data_type) in keys.iter().zip(&plan.key_types) {
            if key.data_type() != data_type {
                return Err(PrimitiveError::Shape {
                    what: "type of a key".into(),
                    found: key.data_type().to_string(),
                    expected: data_type.to_string(),
                });
            }
        }
        let key_lanes = keys.iter().map(|key| Lane::key(key)).collect();
        Ok(Self { rows: batch.num_rows(), keys, key_lanes, lanes: plan.lanes(batch)? })
    }
}
