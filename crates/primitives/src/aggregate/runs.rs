//! Rows whose equal keys are adjacent, as in sorted rows. A group ends where its key ends, so nothing is hashed, and
//! groups go out while rows come in.
//!
//! Ranges of keys are expectations: from the first key outside of them on, keys are encoded and hashed.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use atoll_topology::NodeId;

use super::Query;
use super::keys::{Encoder, KeyBlock};
use super::lane::{self, Lane, LaneScratch};
use super::packing::{self, KeyRange, Packing};
use super::plan::AggregatePlan;
use super::table::{GroupTable, TableShape};
use crate::{Context, PrimitiveError};

/// Approximate number of groups that go out together.
const BATCH_GROUPS: usize = 1 << 13;

/// Aggregates grouped rows.
#[derive(Debug)]
pub struct SortedGroups {
    context: Context,
    plan: AggregatePlan,
    packing: Packing,
    /// Set once a key does not fit its packing.
    encoder: Option<Encoder>,
    table: GroupTable,
    /// The key of the open run.
    last: Option<u64>,
    keys: packing::PackScratch,
    block: KeyBlock,
    lanes: Vec<LaneScratch>,
}

impl SortedGroups {
    /// An aggregation of grouped rows of this schema; None if its keys are not expected to fit 64 bits. `keys` has for
    /// each key whether it may be null, and its likely range.
    ///
    /// # Errors
    /// As [`aggregate`](super::aggregate).
    pub fn new(
        context: Context,
        query: &Query,
        schema: &arrow_schema::Schema,
        keys: &[(bool, Option<KeyRange>)],
        home: Option<NodeId>,
    ) -> Result<Option<Self>, PrimitiveError> {
        let plan = AggregatePlan::new(query, schema)?;
        let Some(packing) = packing(&plan.key_types, keys) else { return Ok(None) };
        let table = GroupTable::new(&plan, &TableShape::Runs, 0, context.arena(), home)?;
        Ok(Some(Self {
            context,
            plan,
            packing,
            encoder: None,
            table,
            last: None,
            keys: packing::PackScratch::default(),
            block: KeyBlock::default(),
            lanes: Vec::new(),
        }))
    }

    /// Whether keys of these types and ranges are expected to fit 64 bits.
    pub fn fits(types: &[DataType], keys: &[(bool, Option<KeyRange>)]) -> bool {
        packing(types, keys).is_some()
    }

    /// Columns of the result: keys, then aggregates.
    pub fn schema(&self) -> &SchemaRef {
        self.plan.schema()
    }

    /// Adds a batch whose first rows may continue the last key; returns complete groups once there are enough.
    ///
    /// # Errors
    /// [`PrimitiveError::Memory`], [`PrimitiveError::Overflow`], [`PrimitiveError::Cancelled`].
    pub fn push(&mut self, batch: &RecordBatch) -> Result<Option<RecordBatch>, PrimitiveError> {
        let keys = self.plan.keys(batch);
        let key_lanes: Option<Vec<Lane>> = keys.iter().map(|key| Lane::key(key)).collect();
        let key_lanes = key_lanes.unwrap_or_default();
        let lanes = self.plan.lanes(batch)?;
        let mut out = None;
        let rows = batch.num_rows();
        let block = self.context.tuning().block_rows.max(1);
        for start in (0..rows).step_by(block) {
            self.context.cancel().check()?;
            let len = block.min(rows - start);
            let words = match self.encoder {
                None => self.packing.pack(&key_lanes, start, len, &mut self.keys).ok(),
                Some(_) => None,
            };
            let full = self.table.groups() > BATCH_GROUPS && out.is_none();
            let Some(words) = words else {
                if full && self.encoder.is_some() {
                    out = Some(self.ended()?);
                }
                self.take_encoded(&keys, &lanes, (start, len))?;
                continue;
            };
            let ended = if full { first_end(self.last, words) } else { None };
            if let Some(ended) = ended {
                let values = lane::blocks(&mut self.lanes, &lanes, start, ended);
                self.table.update_runs(&words[..ended], &values)?;
                let all = self.table.chosen();
                out = Some(self.table.batch(&self.plan, Some(&self.packing), &all)?);
                self.table.restart(0)?;
            }
            let from = ended.unwrap_or(0);
            let values = lane::blocks(&mut self.lanes, &lanes, start + from, len - from);
            self.table.update_runs(&words[from..], &values)?;
            self.last = words.last().copied().or(self.last);
        }
        Ok(out)
    }

    /// Returns the remaining groups.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(self) -> Result<Option<RecordBatch>, PrimitiveError> {
        if self.table.groups() == 0 {
            return Ok(None);
        }
        let all = self.table.chosen();
        self.table.batch(&self.plan, Some(&self.packing), &all).map(Some)
    }

    /// Adds a block by its encoded keys, after encoding those of the groups so far.
    fn take_encoded(
        &mut self,
        keys: &[ArrayRef],
        lanes: &[Lane],
        (start, len): (usize, usize),
    ) -> Result<(), PrimitiveError> {
        let encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => {
                let encoder = Encoder::new(&self.plan.key_types)?;
                let mut table = self.encoded_table(&encoder)?;
                let check = || self.context.cancel().check().map_err(PrimitiveError::from);
                table.merge_packed(&self.table, &self.packing, &check)?;
                self.table = table;
                encoder
            }
        };
        let columns = encoder.columns(keys)?;
        let keys = encoder.encode(&columns, (start, len), &mut self.block);
        let values = lane::blocks(&mut self.lanes, lanes, start, len);
        self.table.update_encoded(&keys, &values)?;
        self.encoder = Some(encoder);
        Ok(())
    }

    /// All groups of encoded keys except the last, which may continue.
    fn ended(&mut self) -> Result<RecordBatch, PrimitiveError> {
        let Some(encoder) = &self.encoder else { unreachable!("asked of encoded keys") };
        let last = self.table.groups() - 1;
        let groups: Vec<u32> = (0..last as u32).collect();
        let ended = self.table.batch(&self.plan, None, &groups)?;
        let mut rest = self.encoded_table(encoder)?;
        rest.merge_groups(&self.table, &[last as u32], &|| Ok(()))?;
        self.table = rest;
        Ok(ended)
    }

    fn encoded_table(&self, encoder: &Encoder) -> Result<GroupTable, PrimitiveError> {
        let shape = TableShape::Encoded(encoder.clone());
        Ok(GroupTable::new(&self.plan, &shape, 0, self.context.arena(), self.table.home())?)
    }
}

fn packing(types: &[DataType], keys: &[(bool, Option<KeyRange>)]) -> Option<Packing> {
    let described = types.iter().zip(keys);
    let described: Vec<_> =
        described.map(|(data_type, (null, range))| (data_type.clone(), *null, *range)).collect();
    Packing::new(&described).filter(|_| described.len() == types.len())
}

/// Number of first rows in the block that continue the previous key; None if all do.
fn first_end(last: Option<u64>, words: &[u64]) -> Option<usize> {
    let last = last?;
    words.iter().position(|word| *word != last)
}
