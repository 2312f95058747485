//! Aggregation of rows that arrive batch by batch, for an engine's operator.
//!
//! ```text
//! input 0 ─▶ Collector ─┐                    ┌─▶ output 0
//! input 1 ─▶ Collector ─┤  Ended ─▶ Gathered ├─▶ output 1       the exchange is the reading
//!    …                  └────────────────────┘      …           of what was collected
//! ```
//!
//! 1. A [`Collector`] takes an input's rows on its node. The first that has seen enough of them decides for all
//!    (`decision`): a table for each input if it expects few groups, records by piece if many. Keys are packed into words
//!    as long as they fit; after the first that does not fit, all inputs encode their keys.
//! 2. When all inputs have ended, [`Stage::settle`] decides if there is no decision yet, and each [`Ended`] input is
//!    finished on its node.
//! 3. Each of the [`Outputs`] reads the [`Gathered`] rows in the order of its variant.
//!
//! Expectations about the input may be wrong: they affect sizes and variants, never a result.

mod collector;
mod decision;
mod gathered;
mod outputs;
mod tables;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use atoll_topology::NodeId;

pub use collector::{Collector, Ended};
pub use gathered::{Collected, Gathered};
pub(super) use gathered::{Kept, MergedBy, PiecePart};
pub use outputs::{Next, Outputs};

use super::estimate::KeySample;
use super::keys::{Encoder, KeyBlock};
use super::packing::{KeyRange, Packing};
use super::plan::AggregatePlan;
use super::records::{DealtRecords, RecordColumns, RecordLayout};
use super::table::{GroupTable, TableShape};
use super::{Query, Variant};
use crate::{Context, PrimitiveError};
use decision::{Collecting, Decision, Held};

/// One output merges tables with fewer groups in total than this.
const SHARED_GROUPS_MIN: usize = 1 << 14;
/// Part of a range that is merged separately, log2 of its words.
const PART_BITS_MIN: u32 = 10;
/// Parts of a range for each output.
const PARTS_PER_OUTPUT: usize = 4;

/// State that all collectors and outputs of an aggregation share.
#[derive(Debug)]
pub struct Stage {
    context: Context,
    input: SchemaRef,
    plan: AggregatePlan,
    packing: Option<Packing>,
    encoder: Encoder,
    layout: Option<RecordLayout>,
    outputs: usize,
    rows: Option<usize>,
    counted: bool,
    variant: Variant,
    decision: OnceLock<Decision>,
    /// Set once a key fits no word: then all keys are encoded.
    is_wide: AtomicBool,
    /// Whether tables are merged piece by piece; set when all inputs have ended.
    merging: OnceLock<Merging>,
}

/// How the groups of several tables are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merging {
    /// By one output.
    AtOnce,
    /// In this many parts of the range of words that all tables share.
    Range(usize),
    /// In pieces by hash.
    Pieces,
}

/// Expectations about an input.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// Number of rows, if known.
    pub rows: Option<usize>,
    /// Whether the number is exact rather than approximate: memory for all rows is then allocated at once.
    pub counted: bool,
    /// Whether each key may be null, and its range.
    pub keys: Vec<(bool, Option<KeyRange>)>,
}

impl Stage {
    /// Creates an aggregation of rows of this schema into `outputs` outputs.
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
        let plan = AggregatePlan::new(query, schema)?;
        let known = |at: usize| expected.keys.get(at).copied().unwrap_or((true, None));
        let keys = plan.key_types.iter().enumerate();
        let keys: Vec<_> =
            keys.map(|(at, data_type)| (data_type.clone(), known(at).0, known(at).1)).collect();
        let packing = Packing::expecting(&keys);
        let layout = RecordLayout::new(&plan);
        let encoder = Encoder::new(&plan.key_types)?;
        Ok(Self {
            context,
            input: Arc::new(schema.clone()),
            plan,
            packing,
            encoder,
            layout,
            outputs: outputs.max(1),
            rows: expected.rows,
            counted: expected.counted,
            variant,
            decision: OnceLock::new(),
            is_wide: AtomicBool::new(false),
            merging: OnceLock::new(),
        })
    }

    /// Columns of the result: keys, then aggregates.
    pub fn schema(&self) -> &SchemaRef {
        self.plan.schema()
    }

    /// The chosen variant and the reason; None before the first rows.
    pub fn chosen(&self) -> Option<(Variant, &str)> {
        self.decision.get().map(|decision| (decision.variant, &*decision.reason))
    }

    /// Decides before any rows arrive, by an estimate for `rows` rows whose keys fit words.
    pub(super) fn decide_by(&self, keys: &KeySample, packing: &Packing, rows: usize) {
        self.decision.get_or_init(|| self.choose(keys, packing, rows));
    }

    /// How keys are packed, if they are expected to fit words.
    pub(super) fn packing(&self) -> Option<&Packing> {
        self.packing.as_ref()
    }

    /// Makes the remaining decisions once all inputs have ended. Call it once, before any input is finished.
    ///
    /// # Errors
    /// [`PrimitiveError::Arrow`] for keys that Arrow cannot encode.
    pub fn settle(&self, ended: &[Ended]) -> Result<(), PrimitiveError> {
        if self.decision.get().is_none() {
            let held = ended.iter().flat_map(Ended::held);
            let held: Vec<Held<'_>> = held.map(|rows| (rows, (0, rows.rows))).collect();
            if !held.is_empty() {
                let decision = self.decide(&held, true)?;
                self.decision.get_or_init(|| decision);
            }
        }
        if !self.is_wide() && ended.iter().any(|ended| ended.has_wide_keys()) {
            self.widen();
        }
        let merging = self.merging_of(ended);
        self.merging.get_or_init(|| merging);
        Ok(())
    }

    fn merging_of(&self, ended: &[Ended]) -> Merging {
        let most = self.decision.get().map_or(0, |decision| decision.groups);
        let groups: usize = ended.iter().map(|ended| ended.groups(most)).sum();
        let with_groups = ended.iter().filter(|ended| ended.groups(most) > 0).count();
        let has_records = self.is_wide() && ended.iter().any(Ended::has_records);
        if has_records || ended.iter().any(Ended::has_pieces) {
            return Merging::Pieces;
        }
        if groups < SHARED_GROUPS_MIN || with_groups < 2 || self.outputs < 2 {
            return Merging::AtOnce;
        }
        match self.range_parts().filter(|_| ended.iter().all(Ended::is_in_range)) {
            Some(parts) if !self.is_wide() => Merging::Range(parts),
            _ => Merging::Pieces,
        }
    }

    /// Parts of the tables' range of words, to be merged separately; None if they have no range.
    fn range_parts(&self) -> Option<usize> {
        match self.decision.get()?.collecting {
            Collecting::Table(TableShape::Dense { bits, .. }) => {
                let parts = (self.outputs * PARTS_PER_OUTPUT).next_power_of_two();
                // The range has room on both sides, so some parts have no groups.
                Some(parts.min(1 << bits.saturating_sub(PART_BITS_MIN)))
            }
            _ => None,
        }
    }

    /// Makes all inputs encode their keys from now on.
    fn widen(&self) {
        self.is_wide.store(true, Ordering::Relaxed);
    }

    fn is_wide(&self) -> bool {
        self.is_wide.load(Ordering::Relaxed)
    }

    fn encoded_table(&self, home: Option<NodeId>) -> Result<GroupTable, PrimitiveError> {
        self.table(home, &TableShape::Encoded(self.encoder.clone()))
    }

    pub(super) fn table(
        &self,
        home: Option<NodeId>,
        shape: &TableShape,
    ) -> Result<GroupTable, PrimitiveError> {
        let prefetch = self.context.tuning().prefetch_rows;
        Ok(GroupTable::new(&self.plan, shape, prefetch, self.context.arena(), home)?)
    }

    /// Adds records to a table of encoded keys.
    fn add_encoded(&self, to: &mut GroupTable, dealt: &DealtRecords) -> Result<(), PrimitiveError> {
        let Some(packing) = &self.packing else { unreachable!("words come of a packing") };
        let (mut columns, mut block) = (RecordColumns::default(), KeyBlock::default());
        let rows = self.context.tuning().block_rows;
        for piece in 0..dealt.pieces() {
            dealt.read(piece, rows, (0, 1), &mut columns, |columns| {
                self.check()?;
                let keys = self.encoder.columns(&packing.unpack(&columns.words)?)?;
                let keys = self.encoder.encode(&keys, (0, columns.words.len()), &mut block);
                Ok::<(), PrimitiveError>(to.update_encoded(&keys, &columns.blocks())?)
            })?;
        }
        Ok(())
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn check(&self) -> Result<(), PrimitiveError> {
        Ok(self.context.cancel().check()?)
    }

    /// Checks that a batch's columns are those of the query.
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
