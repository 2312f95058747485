//! Finds the ranges of keys that may fit 64 bits although their types do not say so. It takes one pass over the keys
//! and saves encoding every row.

use std::sync::Arc;

use atoll_runtime::TaskContext;
use atoll_topology::Bytes;

use super::input::{Input, Morsel};
use super::lane::{LaneScratch, LaneValues, ValueBlock};
use super::packing::KeyRange;
use super::report::Phase;
use crate::{Context, PrimitiveError};

/// Ranges by key; None for a key that is a float or has no values.
type Ranges = Vec<Option<KeyRange>>;

/// The range of each key of the input.
pub(super) async fn find(
    context: &Context,
    input: &Arc<Input>,
    keys: usize,
) -> Result<(Ranges, Phase), PrimitiveError> {
    let (shared, block_rows) = (Arc::clone(input), context.tuning().block_rows.max(1));
    let task = move |_, task: &TaskContext| {
        let mut ranges: Ranges = vec![None; keys];
        let mut scratch = LaneScratch::default();
        while let Some(morsel) = shared.take(task.node()) {
            task.check()?;
            extend(&shared, morsel, block_rows, &mut scratch, &mut ranges);
            let bytes = Bytes((morsel.len * keys * 8) as u64);
            task.count_read(shared.parts[morsel.part].home.unwrap_or(task.node()), bytes);
        }
        Ok(ranges)
    };
    let (found, report) = context.on_workers("ranges of keys", task).await?;
    input.rewind();
    let mut all: Ranges = vec![None; keys];
    for ranges in found {
        for (all, range) in all.iter_mut().zip(ranges) {
            *all = both(*all, range);
        }
    }
    Ok((all, Phase::from_report(&report)))
}

fn both(a: Option<KeyRange>, b: Option<KeyRange>) -> Option<KeyRange> {
    match (a, b) {
        (Some(a), Some(b)) => Some(KeyRange { min: a.min.min(b.min), max: a.max.max(b.max) }),
        (a, b) => a.or(b),
    }
}

fn extend(
    input: &Input,
    morsel: Morsel,
    block_rows: usize,
    scratch: &mut LaneScratch,
    ranges: &mut [Option<KeyRange>],
) {
    let lanes = input.parts[morsel.part].rows.key_lanes();
    let end = morsel.start + morsel.len;
    for (lane, range) in lanes.iter().zip(ranges) {
        for start in (morsel.start..end).step_by(block_rows) {
            let block = lane.block(start, block_rows.min(end - start), scratch);
            *range = both(*range, range_of_block(block));
        }
    }
}

fn range_of_block(block: ValueBlock<'_>) -> Option<KeyRange> {
    match block.values {
        LaneValues::Int(values) => range(values, block.valid, i64::MAX, i64::MIN),
        LaneValues::Wide(values) => range(values, block.valid, i128::MAX, i128::MIN),
        LaneValues::Float(_) => None,
    }
}

fn range<T: Copy + Ord + Into<i128>>(
    values: &[T],
    valid: Option<&[u8]>,
    most: T,
    least: T,
) -> Option<KeyRange> {
    let (mut min, mut max) = (most, least);
    match valid {
        None => values.iter().for_each(|value| (min, max) = (min.min(*value), max.max(*value))),
        Some(valid) => {
            for (value, _) in values.iter().zip(valid).filter(|(_, valid)| **valid == 1) {
                (min, max) = (min.min(*value), max.max(*value));
            }
        }
    }
    (min <= max).then(|| KeyRange { min: min.into(), max: max.into() })
}
