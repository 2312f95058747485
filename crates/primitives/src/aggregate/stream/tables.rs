//! Collects an input's encoded keys.
//!
//! A table is used as long as it combines many rows or stays in the caches. One that is about to outgrow them without
//! doing so is set aside, its groups piece by piece, and later rows are partitioned into the same pieces: they are
//! written once, sequentially, and combined when their piece is read, in a table that is small again. Rows too long to
//! be partitioned go to one small table after another instead.

use atoll_topology::NodeId;

use super::Stage;
use super::decision::{Collecting, DEALT_GROUPS_MIN, Decision};
use crate::PrimitiveError;
use crate::aggregate::estimate;
use crate::aggregate::key_records::KeyRecords;
use crate::aggregate::keys::RowKeys;
use crate::aggregate::lane::ValueBlock;
use crate::aggregate::table::{GroupTable, Pieced};

/// Groups of a table before its usefulness is checked.
const GROUPS_MIN: usize = 1 << 16;
/// Groups that one table is expected to hold well, whatever the number of rows.
const GROUPS_EXPECTED_MAX: usize = 1 << 20;
/// Maximum bytes of keys in one table; twice as many do not fit it.
const KEY_BYTES_MAX: usize = 1 << 34;
/// Rows per group that justify a table's size, unless few groups are expected in the end.
const ROWS_PER_GROUP: usize = 2;

/// Tables of encoded keys.
#[derive(Debug)]
pub(super) struct EncodedTables {
    open: GroupTable,
    /// Rows that the open table has taken.
    rows: usize,
    /// Number of groups for the next check.
    limit: usize,
    full: Vec<Pieced>,
    /// Partitioned rows, once tables are not worth it.
    dealt: Option<Box<KeyRecords>>,
    home: Option<NodeId>,
}

impl EncodedTables {
    pub(super) fn new(
        stage: &Stage,
        decision: &Decision,
        home: Option<NodeId>,
    ) -> Result<Self, PrimitiveError> {
        let expected = decision.groups.saturating_mul(2);
        let limit = if expected <= GROUPS_EXPECTED_MAX { expected } else { GROUPS_MIN };
        let is_dealt = matches!(decision.collecting, Collecting::Encoded { is_dealt: true });
        let (open, limit) = (stage.encoded_table(home)?, limit.max(GROUPS_MIN));
        let dealt = is_dealt.then(|| dealt(stage, decision, home)).flatten();
        Ok(Self { open, rows: 0, limit, full: Vec::new(), dealt, home })
    }

    /// Adds a block of rows.
    pub(super) fn update(
        &mut self,
        stage: &Stage,
        keys: &RowKeys<'_>,
        rows: usize,
        values: &[ValueBlock<'_>],
    ) -> Result<(), PrimitiveError> {
        if let Some(dealt) = &mut self.dealt {
            return Ok(dealt.push(keys, rows, values)?);
        }
        self.open.update_encoded(keys, values)?;
        self.rows += rows;
        if self.open.groups() >= self.limit || self.open.key_bytes() > KEY_BYTES_MAX {
            self.ask(stage)?;
        }
        Ok(())
    }

    fn ask(&mut self, stage: &Stage) -> Result<(), PrimitiveError> {
        let is_worth_it = self.rows >= self.open.groups() * ROWS_PER_GROUP
            || estimate::even_groups(self.rows, self.open.groups()) < DEALT_GROUPS_MIN;
        if is_worth_it && self.open.key_bytes() <= KEY_BYTES_MAX {
            self.limit *= 2;
            return Ok(());
        }
        let Some(decision) = stage.decision.get() else { unreachable!("rows came after it") };
        let fresh = stage.encoded_table(self.home)?;
        let full = std::mem::replace(&mut self.open, fresh);
        self.full.push(full.into_pieces(&stage.plan, decision.fan_out)?);
        (self.rows, self.limit) = (0, GROUPS_MIN);
        if !is_worth_it {
            self.dealt = dealt(stage, decision, self.home);
        }
        Ok(())
    }

    /// The open table, for callers that fill it differently.
    pub(super) fn table(&mut self) -> &mut GroupTable {
        &mut self.open
    }

    /// Number of groups of all tables, and of partitioned rows.
    pub(super) fn groups(&self) -> usize {
        let full = self.full.iter().map(|full| full.table.groups());
        let dealt = self.dealt.as_ref().map_or(0, |dealt| dealt.rows());
        self.open.groups() + full.sum::<usize>() + dealt
    }

    /// Whether there is only one table.
    pub(super) fn is_one(&self) -> bool {
        self.full.is_empty() && self.dealt.is_none()
    }

    /// The open table, the tables set aside, and the partitioned rows.
    pub(super) fn into_parts(self) -> (GroupTable, Vec<Pieced>, Option<Box<KeyRecords>>) {
        (self.open, self.full, self.dealt)
    }
}

/// Creates the partitioning of rows; None if they are too long.
fn dealt(stage: &Stage, decision: &Decision, home: Option<NodeId>) -> Option<Box<KeyRecords>> {
    let (layout, arena) = (stage.layout.as_ref()?, stage.context.arena());
    Some(Box::new(KeyRecords::new(layout, decision.fan_out, arena, home)))
}
