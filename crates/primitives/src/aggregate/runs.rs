//! Rows that come grouped: all rows of a key one after another, as sorted rows do. A group ends where
//! its key ends, so nothing is hashed, and groups go out while rows come in.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use atoll_topology::NodeId;

use super::feed::Feed;
use super::lane::{Lane, Scratch};
use super::packing::{self, Packing, Range};
use super::plan::Plan;
use super::table::{Shape, Table};
use super::{Query, feed};
use crate::{Context, PrimitiveError};

/// Groups that go out together, about.
const BATCH_GROUPS: usize = 1 << 13;

/// Aggregates grouped rows.
#[derive(Debug)]
pub struct Runs {
    context: Context,
    plan: Plan,
    packing: Packing,
    table: Table,
    /// The key whose run is open.
    last: Option<u64>,
    keys: packing::Scratch,
    lanes: Vec<Scratch>,
}

impl Runs {
    /// An aggregation of grouped rows of this schema; none where its keys do not surely fit 64 bits.
    /// `keys` tells for each key whether it may be null, and its range.
    ///
    /// # Errors
    /// As [`aggregate`](super::aggregate).
    pub fn new(
        context: Context,
        query: &Query,
        schema: &arrow_schema::Schema,
        keys: &[(bool, Option<Range>)],
        home: Option<NodeId>,
    ) -> Result<Option<Self>, PrimitiveError> {
        let plan = Plan::new(query, schema)?;
        let types = plan.key_types.iter().zip(keys);
        let types: Vec<_> =
            types.map(|(data_type, (null, range))| (data_type.clone(), *null, *range)).collect();
        let Some(packing) = Packing::new(&types).filter(|_| types.len() == plan.key_types.len())
        else {
            return Ok(None);
        };
        let table = Table::new(&plan, &Shape::Runs, 0, context.arena(), home)?;
        let (keys, lanes) = (packing::Scratch::default(), Vec::new());
        Ok(Some(Self { context, plan, packing, table, last: None, keys, lanes }))
    }

    /// Columns of the result: keys, then aggregates.
    pub fn schema(&self) -> &SchemaRef {
        self.plan.schema()
    }

    /// Takes a batch whose first rows may go on with the last key; groups that are complete and many
    /// enough go out.
    ///
    /// # Errors
    /// [`PrimitiveError::Memory`], [`PrimitiveError::Overflow`], [`PrimitiveError::Cancelled`].
    pub fn push(&mut self, batch: &RecordBatch) -> Result<Option<RecordBatch>, PrimitiveError> {
        self.context.cancel().check()?;
        let keys = self.plan.keys(batch);
        let key_lanes: Option<Vec<Lane>> = keys.iter().map(|key| Lane::new(key)).collect();
        let key_lanes = key_lanes.unwrap_or_default();
        let lanes = self.plan.lanes(batch)?;
        let mut out = None;
        let rows = batch.num_rows();
        let block = self.context.tuning().block_rows.max(1);
        for start in (0..rows).step_by(block) {
            let len = block.min(rows - start);
            let words = self.packing.pack(&key_lanes, start, len, &mut self.keys);
            let words = words.map_err(|_| feed::outside())?;
            let full = self.table.groups() >= BATCH_GROUPS && out.is_none();
            let ended = if full { first_end(self.last, words) } else { None };
            if let Some(ended) = ended {
                let values = Feed::blocks(&mut self.lanes, &lanes, start, ended);
                self.table.update_runs(&words[..ended], &values)?;
                out = Some(self.table.batch(&self.plan, Some(&self.packing))?);
                self.table.restart(0)?;
            }
            let from = ended.unwrap_or(0);
            let values = Feed::blocks(&mut self.lanes, &lanes, start + from, len - from);
            self.table.update_runs(&words[from..], &values)?;
            self.last = words.last().copied().or(self.last);
        }
        Ok(out)
    }

    /// The groups that are left.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(self) -> Result<Option<RecordBatch>, PrimitiveError> {
        if self.table.groups() == 0 {
            return Ok(None);
        }
        self.table.batch(&self.plan, Some(&self.packing)).map(Some)
    }
}

/// Rows of the block that still belong to the key before it; none where the block holds no other.
fn first_end(last: Option<u64>, words: &[u64]) -> Option<usize> {
    let last = last?;
    words.iter().position(|word| *word != last)
}
