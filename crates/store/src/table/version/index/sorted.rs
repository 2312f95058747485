//! Many rows sorted by the hash of their key for an index: each piece is divided into the ranges of hashes, then
//! each range is sorted separately, so that pieces and ranges can be processed in parallel.

use std::ops::Range;
use std::sync::Arc;

use super::{HashedRow, RANGES, range_of};
use crate::ids::RowId;

/// Rows by range, unsorted within it.
#[derive(Clone, Debug)]
pub(in crate::table::version) struct HashedRows {
    rows: Vec<HashedRow>,
    /// Where each range begins, and the end.
    begins: Vec<usize>,
}

impl HashedRows {
    /// Divides rows into their ranges.
    pub(in crate::table::version) fn from_rows(rows: Vec<HashedRow>) -> Self {
        let mut begins = vec![0; RANGES + 1];
        for (hash, _) in &rows {
            begins[range_of(*hash) + 1] += 1;
        }
        for range in 0..RANGES {
            begins[range + 1] += begins[range];
        }
        let mut next = begins.clone();
        let mut dealt = vec![(0, RowId::new(0)); rows.len()];
        for row in rows {
            let at = &mut next[range_of(row.0)];
            dealt[*at] = row;
            *at += 1;
        }
        Self { rows: dealt, begins }
    }

    fn range(&self, range: usize) -> &[HashedRow] {
        &self.rows[self.begins[range]..self.begins[range + 1]]
    }
}

/// Rows by range, sorted.
#[derive(Clone, Debug)]
pub(in crate::table::version) struct SortedKeys(Arc<[Arc<[HashedRow]>]>);

impl SortedKeys {
    /// All ranges, in their order.
    pub(in crate::table::version) fn of_ranges(ranges: Vec<Arc<[HashedRow]>>) -> Self {
        debug_assert_eq!(ranges.len(), RANGES, "all ranges are there");
        Self(ranges.into())
    }

    pub(in crate::table::version) fn ranges(&self) -> impl Iterator<Item = &Arc<[HashedRow]>> {
        self.0.iter()
    }

    pub(super) fn range(&self, range: usize) -> &[HashedRow] {
        &self.0[range]
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|range| range.len()).sum()
    }

    /// Groups of its rows whose keys have the same hash.
    pub(in crate::table::version) fn same_hash(&self) -> impl Iterator<Item = &[HashedRow]> {
        let groups = self.0.iter().flat_map(|rows| rows.chunk_by(|a, b| a.0 == b.0));
        groups.filter(|rows| rows.len() > 1)
    }
}

/// The rows of some ranges, of all pieces together, sorted.
pub(in crate::table::version) fn sorted_ranges<'a>(
    pieces: impl Iterator<Item = &'a HashedRows> + Clone,
    ranges: Range<usize>,
) -> Vec<Arc<[HashedRow]>> {
    let sorted = |range: usize| {
        let mut rows =
            Vec::with_capacity(pieces.clone().map(|piece| piece.range(range).len()).sum());
        pieces.clone().for_each(|piece| rows.extend_from_slice(piece.range(range)));
        rows.sort_unstable();
        rows.into()
    };
    ranges.map(sorted).collect()
}

/// The rows of all pieces, sorted.
pub(in crate::table::version) fn sorted<'a>(
    pieces: impl IntoIterator<Item = &'a HashedRows, IntoIter: Clone>,
) -> SortedKeys {
    SortedKeys::of_ranges(sorted_ranges(pieces.into_iter(), 0..RANGES))
}
