//! The ids of the rows of a chunk.

use std::sync::Arc;

use crate::ids::RowId;

/// The ids of the rows of a chunk, in rising order, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowIds {
    /// Without gaps.
    Dense {
        /// Id of the first row.
        first: RowId,
        /// Number of rows.
        rows: usize,
    },
    /// A list of ids.
    Sparse(Arc<[RowId]>),
}

impl RowIds {
    /// These ids, in rising order. Returns None if they are not, or if there are none.
    pub fn new(ids: Vec<RowId>) -> Option<Self> {
        let (first, last) = (*ids.first()?, *ids.last()?);
        let rises = ids.is_sorted_by(|a, b| a < b);
        let is_dense = last.get() - first.get().min(last.get()) == ids.len() as u64 - 1;
        rises.then(|| match is_dense {
            true => Self::Dense { first, rows: ids.len() },
            false => Self::Sparse(ids.into()),
        })
    }

    /// Whether there are any, in rising order: a damaged file may contain others.
    pub(super) fn are_sound(&self) -> bool {
        match self {
            Self::Dense { first, rows } => {
                *rows > 0 && first.get().checked_add(*rows as u64).is_some()
            }
            Self::Sparse(ids) => !ids.is_empty() && ids.is_sorted_by(|a, b| a < b),
        }
    }

    /// Number of ids.
    pub fn count(&self) -> usize {
        match self {
            Self::Dense { rows, .. } => *rows,
            Self::Sparse(ids) => ids.len(),
        }
    }

    /// The smallest id.
    pub fn first(&self) -> RowId {
        self.at(0)
    }

    /// The largest id.
    pub fn last(&self) -> RowId {
        self.at(self.count() - 1)
    }

    /// The id of a row of the chunk.
    pub fn at(&self, row: usize) -> RowId {
        match self {
            Self::Dense { first, .. } => RowId::new(first.get() + row as u64),
            Self::Sparse(ids) => ids[row],
        }
    }

    /// The row that has an id.
    pub fn position(&self, id: RowId) -> Option<usize> {
        match self {
            Self::Dense { first, rows } => {
                let row = usize::try_from(id.get().checked_sub(first.get())?).ok()?;
                (row < *rows).then_some(row)
            }
            Self::Sparse(ids) => ids.binary_search(&id).ok(),
        }
    }

    /// Number of ids below this one.
    pub fn below(&self, id: RowId) -> usize {
        match self {
            Self::Dense { first, rows } => {
                let below = id.get().saturating_sub(first.get());
                usize::try_from(below).unwrap_or(usize::MAX).min(*rows)
            }
            Self::Sparse(ids) => ids.partition_point(|own| *own < id),
        }
    }

    /// All ids, in rising order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RowId> {
        (0..self.count()).map(|row| self.at(row))
    }

    /// Size in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Dense { .. } => 0,
            Self::Sparse(ids) => size_of_val(&**ids),
        }
    }
}
