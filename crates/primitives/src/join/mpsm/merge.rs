//! Merges two sorted runs.

use crate::PrimitiveError;
use crate::join::Matches;

/// Pairs handed over at a time.
const PAIRS: usize = 1024;
/// Rows of the left run between two cancellation checks.
const CHECK_ROWS: usize = 8192;

/// Buffered pairs for a consumer.
pub(super) struct PairBlock {
    left: Vec<u64>,
    right: Vec<u64>,
    count: usize,
}

impl PairBlock {
    pub(super) fn new() -> Self {
        Self { left: vec![0; PAIRS], right: vec![0; PAIRS], count: 0 }
    }

    #[inline(always)]
    fn push(
        &mut self,
        left: u64,
        right: u64,
        consumer: &mut impl Matches,
    ) -> Result<(), PrimitiveError> {
        (self.left[self.count], self.right[self.count]) = (left, right);
        self.count += 1;
        if self.count == PAIRS { self.flush(consumer) } else { Ok(()) }
    }

    pub(super) fn flush(&mut self, consumer: &mut impl Matches) -> Result<(), PrimitiveError> {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return Ok(());
        }
        consumer.pairs(&self.left[..count], &self.right[..count])
    }
}

/// Passes all pairs of rows with equal keys to the consumer. Both sides are sorted by key.
pub(super) fn merge(
    left: &[[u64; 2]],
    right: &[[u64; 2]],
    pairs: &mut PairBlock,
    consumer: &mut impl Matches,
    mut check: impl FnMut() -> Result<(), PrimitiveError>,
) -> Result<(), PrimitiveError> {
    let mut equal = 0..0;
    let mut looked = 0;
    for (row, [key, payload]) in left.iter().enumerate() {
        if row >= looked {
            check()?;
            looked = row + CHECK_ROWS;
        }
        if equal.is_empty() || right[equal.start][0] != *key {
            let mut start = equal.end;
            while start < right.len() && right[start][0] < *key {
                start += 1;
            }
            let mut end = start;
            while end < right.len() && right[end][0] == *key {
                end += 1;
            }
            equal = start..end;
            if equal.is_empty() && start == right.len() {
                return Ok(());
            }
        }
        for (at, other) in right[equal.clone()].iter().enumerate() {
            if at % CHECK_ROWS == CHECK_ROWS - 1 {
                check()?;
            }
            pairs.push(*payload, other[1], consumer)?;
        }
    }
    Ok(())
}
