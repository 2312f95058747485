//! Partitioning, sums by key, and the join, over tables of key and value.

use std::sync::Arc;

use anyhow::Result;
use atoll_primitives::aggregate::{Aggregate, Function, Outcome, Query, Variant, aggregate};
use atoll_primitives::join::{JoinInput, JoinKind, Joined, Matches, hash_join};
use atoll_primitives::partition::{FanOut, Partitioner, Pieces};
use atoll_primitives::{PrimitiveError, hash};

use super::{ColumnTable, Rig, values};

/// Sums of a table's values by key.
///
/// # Errors
/// When memory is out.
pub fn sums(rig: &Rig, table: &ColumnTable, variant: Variant) -> Result<Outcome> {
    let sum = Aggregate { function: Function::Sum, column: 1 };
    let query = Query { keys: vec![0], aggregates: vec![sum] };
    let schema = table.parts[0].rows.schema();
    rig.wait(aggregate(&rig.context, &query, &schema, &table.parts, variant))
}

/// What one worker finds in a join: matches, and the sums of both payloads.
#[derive(Clone, Copy, Debug, Default)]
pub struct JoinSums {
    /// Pairs of rows with the same key.
    pub matches: u64,
    /// Sum of the smaller table's values.
    pub build: u64,
    /// Sum of the larger table's values.
    pub probe: u64,
}

impl Matches for JoinSums {
    fn pairs(&mut self, left: &[u64], right: &[u64]) -> Result<(), PrimitiveError> {
        let sum = |words: &[u64]| words.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
        self.matches += left.len() as u64;
        self.build = self.build.wrapping_add(sum(left));
        self.probe = self.probe.wrapping_add(sum(right));
        Ok(())
    }
}

/// Joins two tables by hash, summing the payloads of what matches.
///
/// # Errors
/// When memory is out.
pub fn join_sums(rig: &Rig, build: &ColumnTable, probe: &ColumnTable) -> Result<Joined<JoinSums>> {
    let (build, probe) = (join_input(build), join_input(probe));
    rig.wait(hash_join(&rig.context, &build, &probe, JoinKind::Inner, |_| JoinSums::default()))
}

/// A table as a join takes it: its key, and its value as the payload.
pub fn join_input(table: &ColumnTable) -> JoinInput {
    JoinInput::new(table.parts.clone(), [0]).with_payload(1)
}

/// Each worker partitions the rows that it made.
///
/// # Errors
/// When memory is out.
pub fn partition(rig: &Rig, table: &ColumnTable, fan_out: FanOut) -> Result<Vec<Pieces<2>>> {
    let shares = Arc::new(table.shares(rig.threads));
    let context = rig.context.clone();
    let step = rig.context.on_workers("partition", move |worker, task| {
        let share = &shares[worker.index()];
        let rows = share.iter().map(|part| part.rows.num_rows()).sum();
        let mut partitioner = Partitioner::<2>::new(&context, Some(task.node()), fan_out, rows)?;
        for part in share {
            let (keys, payloads) = (values(&part.rows, 0), values(&part.rows, 1));
            let block = context.tuning().block_rows.max(1);
            for (keys, payloads) in keys.chunks(block).zip(payloads.chunks(block)) {
                task.check().map_err(PrimitiveError::from)?;
                partitioner.extend(keys.len(), |row| {
                    let key = keys[row] as u64;
                    (fan_out.digit(hash::word(key)), [key, payloads[row] as u64])
                })?;
            }
        }
        partitioner.finish()
    });
    Ok(rig.wait(step)?.0)
}
