//! The prepared input: parts with their lanes, cut into morsels that workers take by home.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_schema::Schema;
use atoll_topology::NodeId;

use super::lane;
use super::packing::KeyRange;
use super::plan::AggregatePlan;
use super::rows::BatchRows;
use crate::{Part, PrimitiveError};

/// Rows that a worker takes at once: enough to make taking cheap, few enough that all workers end together.
const MORSEL_ROWS: usize = 1 << 16;

/// A part with its columns as lanes.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) home: Option<NodeId>,
    pub(super) rows: BatchRows,
}

/// Rows of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Morsel {
    pub(super) part: usize,
    pub(super) start: usize,
    pub(super) len: usize,
}

/// All parts, and the assignment of rows to workers.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) parts: Vec<Ready>,
    /// Morsels by home, and how many are taken.
    queues: BTreeMap<Option<NodeId>, (AtomicUsize, Vec<Morsel>)>,
    pub(super) rows: usize,
    /// Bytes of a row's keys and values.
    pub(super) row_bytes: usize,
}

impl Ready {
    /// The lanes of a part's columns.
    ///
    /// # Errors
    /// [`PrimitiveError::Shape`] if its columns differ from those of the query.
    pub(super) fn new(plan: &AggregatePlan, part: &Part) -> Result<Self, PrimitiveError> {
        let columns = part.rows.num_columns();
        let last = plan.query.keys.iter().chain(plan.values.iter().map(|(at, _)| at)).max();
        if last.is_some_and(|last| *last >= columns) {
            return Err(PrimitiveError::Shape {
                what: "columns of a part".into(),
                found: columns.to_string(),
                expected: "those of the first part".into(),
            });
        }
        for (at, data_type) in plan.query.keys.iter().zip(&plan.key_types) {
            let found = part.rows.column(*at).data_type();
            if found != data_type {
                return Err(PrimitiveError::Shape {
                    what: "type of a key".into(),
                    found: found.to_string(),
                    expected: data_type.to_string(),
                });
            }
        }
        Ok(Self { home: part.home, rows: BatchRows::new(plan, &part.rows)? })
    }
}

impl Input {
    pub(super) fn new(
        plan: &AggregatePlan,
        schema: &Schema,
        parts: &[Part],
    ) -> Result<Self, PrimitiveError> {
        let parts: Result<Vec<Ready>, _> =
            parts.iter().map(|part| Ready::new(plan, part)).collect();
        let parts = parts?;
        let mut queues: BTreeMap<Option<NodeId>, (AtomicUsize, Vec<Morsel>)> = BTreeMap::new();
        for (at, part) in parts.iter().enumerate() {
            let queue = &mut queues.entry(part.home).or_default().1;
            for start in (0..part.rows.rows).step_by(MORSEL_ROWS) {
                let len = MORSEL_ROWS.min(part.rows.rows - start);
                queue.push(Morsel { part: at, start, len });
            }
        }
        let rows = parts.iter().map(|part| part.rows.rows).sum();
        let used = plan.query.keys.iter().chain(plan.values.iter().map(|(at, _)| at));
        let width = |at: &usize| schema.field(*at).data_type().primitive_width().unwrap_or(16);
        Ok(Self { parts, queues, rows, row_bytes: used.map(width).sum() })
    }

    /// The next rows for a worker on this node: its own node's first, then those without a home, then any.
    pub(super) fn take(&self, node: NodeId) -> Option<Morsel> {
        let own = [Some(node), None].into_iter();
        let others = self.queues.keys().copied();
        own.chain(others).find_map(|home| {
            let (taken, queue) = self.queues.get(&home)?;
            if taken.load(Ordering::Relaxed) >= queue.len() {
                return None;
            }
            queue.get(taken.fetch_add(1, Ordering::Relaxed)).copied()
        })
    }

    /// Starts over with all rows.
    pub(super) fn rewind(&self) {
        for (taken, _) in self.queues.values() {
            taken.store(0, Ordering::Relaxed);
        }
    }

    /// Whether all keys of all parts are numbers.
    pub(super) fn has_numbers(&self, plan: &AggregatePlan) -> bool {
        plan.key_types.iter().all(lane::is_fixed)
    }

    /// For each key, whether it has any nulls, and its range.
    pub(super) fn keys(&self, ranges: &[Option<KeyRange>]) -> Vec<(bool, Option<KeyRange>)> {
        let has_nulls = |key| self.parts.iter().any(|part| part.rows.has_nulls(key));
        ranges.iter().enumerate().map(|(key, range)| (has_nulls(key), *range)).collect()
    }
}
