//! An input's tables of encoded keys.
//!
//! A table that is about to outgrow the caches is put aside, its groups piece by piece, and another one
//! begun, unless it brings many rows together: then it is worth its size. So rows of many groups are
//! written once and in order, and come together where their piece is read, in a table that is small
//! again.

use atoll_topology::NodeId;

use super::Stage;
use super::decision::Decision;
use crate::PrimitiveError;
use crate::aggregate::keys::KeyBlock;
use crate::aggregate::lane::ValueBlock;
use crate::aggregate::table::{GroupTable, Pieced};

/// Groups of a table before it is asked whether it is worth its size.
const GROUPS_MIN: usize = 1 << 16;
/// Groups that one table is expected to hold well, however few rows they have.
const GROUPS_EXPECTED_MAX: usize = 1 << 20;
/// Bytes of keys that one table holds, at most; twice as many have no place in it.
const KEY_BYTES_MAX: usize = 1 << 34;
/// Rows for each group with which a table is worth its size.
const ROWS_PER_GROUP: usize = 2;

/// Tables of encoded keys.
#[derive(Debug)]
pub(super) struct EncodedTables {
    open: GroupTable,
    /// Rows that the open table has taken.
    rows: usize,
    /// Groups with which it is asked again.
    limit: usize,
    full: Vec<Pieced>,
    home: Option<NodeId>,
}

impl EncodedTables {
    pub(super) fn new(
        stage: &Stage,
        decision: &Decision,
        home: Option<NodeId>,
    ) -> Result<Self, PrimitiveError> {
        let expected = decision.groups.saturating_mul(2);
        let rows = stage.rows.unwrap_or(0) / stage.outputs;
        let is_worth_it = decision.groups.saturating_mul(ROWS_PER_GROUP) <= rows;
        let limit = match expected <= GROUPS_EXPECTED_MAX || is_worth_it {
            true => expected,
            false => GROUPS_MIN,
        };
        let (open, limit) = (stage.encoded_table(home)?, limit.max(GROUPS_MIN));
        Ok(Self { open, rows: 0, limit, full: Vec::new(), home })
    }

    /// Takes a block.
    pub(super) fn update(
        &mut self,
        stage: &Stage,
        keys: &KeyBlock,
        values: &[ValueBlock<'_>],
    ) -> Result<(), PrimitiveError> {
        self.open.update_encoded(keys, values)?;
        self.rows += keys.len();
        if self.open.groups() >= self.limit || self.open.key_bytes() > KEY_BYTES_MAX {
            self.ask(stage)?;
        }
        Ok(())
    }

    fn ask(&mut self, stage: &Stage) -> Result<(), PrimitiveError> {
        let is_worth_it = self.rows >= self.open.groups() * ROWS_PER_GROUP;
        if is_worth_it && self.open.key_bytes() <= KEY_BYTES_MAX {
            self.limit *= 2;
            return Ok(());
        }
        let Some(decision) = stage.decision.get() else { unreachable!("rows came after it") };
        let fresh = stage.encoded_table(self.home)?;
        let full = std::mem::replace(&mut self.open, fresh);
        self.full.push(full.into_pieces(&stage.plan, decision.fan_out)?);
        (self.rows, self.limit) = (0, GROUPS_MIN);
        Ok(())
    }

    /// The open table, to be filled otherwise.
    pub(super) fn table(&mut self) -> &mut GroupTable {
        &mut self.open
    }

    /// Groups of all tables.
    pub(super) fn groups(&self) -> usize {
        let full = self.full.iter().map(|full| full.table.groups());
        self.open.groups() + full.sum::<usize>()
    }

    /// Whether there is one table only.
    pub(super) fn is_one(&self) -> bool {
        self.full.is_empty()
    }

    /// The table, where there is but one, and the others.
    pub(super) fn into_parts(self) -> (GroupTable, Vec<Pieced>) {
        (self.open, self.full)
    }
}
