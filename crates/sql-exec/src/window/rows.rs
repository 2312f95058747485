//! The rows of an operator while it has them all: as they came, and in order.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::{concat, interleave};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;

use super::key::ordered_values;

/// Rows that follow each other as they came are copied at once where so many do on average.
const RUN_ROWS: usize = 32;

/// A batch of the input, with the values of the keys and of the functions' arguments.
#[derive(Clone, Debug)]
pub(super) struct KeptBatch {
    pub(super) batch: RecordBatch,
    pub(super) keys: Vec<ArrayRef>,
    pub(super) arguments: Vec<Option<ArrayRef>>,
}

impl KeptBatch {
    /// The argument of the function with this number.
    pub(super) fn argument(&self, number: usize) -> Option<&ArrayRef> {
        self.arguments[number].as_ref()
    }
}

/// All rows of the input.
#[derive(Debug)]
pub(super) struct KeptRows {
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<KeptBatch>,
}

/// The number of a row: that of its batch, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowNumber(u64);

impl RowNumber {
    /// No row.
    pub(super) const NONE: Self = Self(u64::MAX);

    pub(super) fn new(batch: usize, row: usize) -> Self {
        Self((batch as u64) << 32 | row as u64)
    }

    #[inline]
    pub(super) fn batch(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline]
    pub(super) fn row(self) -> usize {
        self.0 as u32 as usize
    }
}

impl KeptRows {
    /// These rows of a column that `of` returns for each batch; no row is a null of `none`.
    pub(super) fn gather<'a>(
        &'a self,
        of: impl Fn(&'a KeptBatch) -> &'a ArrayRef,
        none: Option<&ArrayRef>,
        rows: &[RowNumber],
    ) -> Result<ArrayRef> {
        if let Some(runs) = runs(rows) {
            let slice = |(first, len): &(RowNumber, usize)| {
                of(&self.batches[first.batch()]).slice(first.row(), *len)
            };
            if let [run] = runs[..] {
                return Ok(slice(&run));
            }
            let slices: Vec<ArrayRef> = runs.iter().map(slice).collect();
            let slices: Vec<&dyn Array> = slices.iter().map(AsRef::as_ref).collect();
            return Ok(concat(&slices)?);
        }
        let mut columns: Vec<&dyn Array> =
            self.batches.iter().map(|batch| of(batch).as_ref()).collect();
        let end = (columns.len(), 0);
        columns.extend(none.map(|none| none.as_ref()));
        let place = |row: &RowNumber| match *row {
            RowNumber::NONE => end,
            row => (row.batch(), row.row()),
        };
        let places: Vec<_> = rows.iter().map(place).collect();
        Ok(interleave(&columns, &places)?)
    }

    /// The values of a key for rows in its order; `None` if they are not ordered as whole numbers.
    pub(super) fn row_keys(
        &self,
        key: usize,
        is_descending: bool,
        rows: &[RowNumber],
    ) -> Option<RowKeys> {
        let columns = self.batches.iter().map(|kept| {
            let column = &kept.keys[key];
            Some((ordered_values(column)?, column.logical_nulls()))
        });
        let columns = columns.collect::<Option<Vec<_>>>()?;
        let value = |row: &RowNumber| match columns[row.batch()].0[row.row()] {
            value if is_descending => value.saturating_neg(),
            value => value,
        };
        let is_valid = |row: &RowNumber| {
            columns[row.batch()].1.as_ref().is_none_or(|nulls| nulls.is_valid(row.row()))
        };
        let has_nulls = columns.iter().any(|(_, nulls)| nulls.is_some());
        Some(RowKeys {
            values: rows.iter().map(value).collect(),
            valid: has_nulls.then(|| rows.iter().map(is_valid).collect()),
        })
    }

    /// These rows of the input.
    pub(super) fn batch(&self, rows: &[RowNumber]) -> Result<RecordBatch> {
        let column = |at: usize| self.gather(|kept| kept.batch.column(at), None, rows);
        let columns = (0..self.schema.fields().len()).map(column).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// The values of the key by which rows are ordered, which only grow in a partition.
pub(super) struct RowKeys {
    pub(super) values: Vec<i128>,
    /// `None` if all rows have one.
    valid: Option<Vec<bool>>,
}

impl RowKeys {
    /// The rows of a partition that have a key: others come first or last.
    pub(super) fn known(&self, partition: Range<usize>) -> Range<usize> {
        let Some(valid) = &self.valid else { return partition };
        let first = partition.clone().find(|row| valid[*row]).unwrap_or(partition.end);
        let end = (first..partition.end).find(|row| !valid[*row]).unwrap_or(partition.end);
        first..end
    }
}

/// The runs of rows that follow each other in a batch, each with its length; `None` if they are short on average, as in
/// rows that came in another order.
fn runs(rows: &[RowNumber]) -> Option<Vec<(RowNumber, usize)>> {
    let most = rows.len() / RUN_ROWS;
    let mut runs: Vec<(RowNumber, usize)> = Vec::new();
    for row in rows {
        let is_full = runs.len() > most || *row == RowNumber::NONE;
        match runs.last_mut() {
            Some((first, len)) if first.0.checked_add(*len as u64) == Some(row.0) => *len += 1,
            _ if is_full => return None,
            _ => runs.push((*row, 1)),
        }
    }
    (!runs.is_empty()).then_some(runs)
}

/// Rows in the order of partition keys and order.
#[derive(Debug, Default)]
pub(super) struct OrderedRows {
    pub(super) rows: Vec<RowNumber>,
    /// Whether a row has the keys of the row before it; false for the first row.
    pub(super) peers: Vec<bool>,
    /// The first rows of the partitions.
    pub(super) starts: Vec<u32>,
}

impl OrderedRows {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows of each partition.
    pub(super) fn partitions(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.starts.iter().skip(1).map(|start| *start as usize).chain([self.len()]);
        self.starts.iter().zip(ends).map(|(start, end)| *start as usize..end)
    }

    /// Rows that come after these, none of which is a peer of them; all rows of both are one partition
    /// unless a start says otherwise.
    pub(super) fn append(&mut self, more: Self, is_one_partition: bool) {
        let before = self.len() as u32;
        let goes_on = is_one_partition && before > 0;
        self.starts.extend(more.starts.iter().skip(usize::from(goes_on)).map(|at| at + before));
        self.rows.extend(more.rows);
        self.peers.extend(more.peers);
    }
}
