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
//! collector encode all keys from then on. What is told of the input before it comes may be wrong: it
//! decides sizes and variants, never a result.

mod collector;
mod outputs;

use std::sync::{Arc, OnceLock};

use arrow_array::{Array, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use atoll_topology::NodeId;

pub use collector::{Collected, Collector};
pub use outputs::{Next, Outputs};

use super::estimate::{self, Keys};
use super::keys::Encoder;
use super::packing::{self, Packing, Range};
use super::plan::Plan;
use super::records::{Columns, Layout};
use super::table::{Shape, Table};
use super::{Query, Variant};
use crate::partition::FanOut;
use crate::{Context, PrimitiveError};
use collector::{Kept, Rows};

/// Pieces for each output, at least: outputs end together although pieces differ.
const PIECES_PER_OUTPUT: usize = 16;
/// Groups of a piece, about: its table stays in the second-level cache.
const PIECE_GROUPS: usize = 1 << 13;
/// Tables of up to so many groups are merged sooner than rows are dealt.
const LOCAL_GROUPS_MAX: usize = 1 << 15;

/// What all collectors and outputs of an aggregation share.
#[derive(Debug)]
pub struct Stage {
    context: Context,
    input: SchemaRef,
    plan: Plan,
    packing: Option<Packing>,
    layout: Option<Layout>,
    outputs: usize,
    rows: Option<usize>,
    counted: bool,
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
    /// Whether so many rows come, and not about so many: their memory is then asked for at once.
    pub counted: bool,
    /// Whether each key may be null, and its range.
    pub keys: Vec<(bool, Option<Range>)>,
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
            input: Arc::new(schema.clone()),
            plan,
            packing,
            layout,
            outputs: outputs.max(1),
            rows: expected.rows,
            counted: expected.counted,
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
        let likely = self.rows.unwrap_or(rows.saturating_mul(self.outputs));
        let total = if all { rows } else { likely.max(rows) };
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

    /// A table of words for about so many groups; of one group where there are no keys.
    fn table(&self, home: Option<NodeId>, expected: usize) -> Result<Table, PrimitiveError> {
        let shape = match self.plan.key_types.is_empty() {
            true => Shape::One,
            false => Shape::Hashed { expected },
        };
        self.table_of(home, &shape)
    }

    fn encoded_table(&self, home: Option<NodeId>) -> Result<Table, PrimitiveError> {
        let shape = match self.plan.key_types.is_empty() {
            true => Shape::One,
            false => Shape::Encoded(Encoder::new(&self.plan.key_types)?),
        };
        self.table_of(home, &shape)
    }

    fn table_of(&self, home: Option<NodeId>, shape: &Shape) -> Result<Table, PrimitiveError> {
        let prefetch = self.context.tuning().prefetch_rows;
        Ok(Table::new(&self.plan, shape, prefetch, self.context.arena(), home)?)
    }

    /// Adds what was collected to a table of encoded keys.
    fn add_encoded(&self, to: &mut Table, kept: &Kept) -> Result<(), PrimitiveError> {
        let check = || self.check();
        match (kept, &self.packing) {
            (Kept::Nothing, _) => Ok(()),
            (Kept::Encoded(table), _) => to.merge(table, &check),
            (Kept::Table(table), Some(packing)) => to.merge_packed(table, packing, &check),
            (Kept::Dealt(dealt), Some(packing)) => {
                let encoder = Encoder::new(&self.plan.key_types)?;
                let mut columns = Columns::default();
                let block = self.context.tuning().block_rows;
                for piece in 0..dealt.pieces() {
                    dealt.read(piece, block, (0, 1), &mut columns, |columns| {
                        check()?;
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

    fn check(&self) -> Result<(), PrimitiveError> {
        Ok(self.context.cancel().check()?)
    }

    /// Asserts that a batch's columns are those that the query was made ready for.
    fn check_types(&self, batch: &RecordBatch) -> Result<(), PrimitiveError> {
        let shape = |what: &str, found: String, expected: String| PrimitiveError::Shape {
            what: what.into(),
            found,
            expected,
        };
        if batch.num_columns() != self.input.fields().len() {
            let (found, expected) = (batch.num_columns(), self.input.fields().len());
            return Err(shape("columns of a batch", found.to_string(), expected.to_string()));
        }
        let columns = batch.columns().iter().zip(self.input.fields());
        let other =
            columns.into_iter().find(|(column, field)| column.data_type() != field.data_type());
        other.map_or(Ok(()), |(column, field)| {
            let what = format!("type of column {}", field.name());
            Err(shape(&what, column.data_type().to_string(), field.data_type().to_string()))
        })
    }
}
