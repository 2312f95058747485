//! The rows of each group side by side, from which results are computed.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, Float64Array, ListArray, UInt32Array, UInt32Builder,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{SortOptions, cast, take};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::row::Rows;
use datafusion::common::{Result, ScalarValue};

use super::rows::Arranged;
use crate::scalar::GroupedForm;
use crate::temporal::measured_rows;

/// The rows of all groups, and the aggregate's other arguments.
pub(super) struct Groups<'a> {
    pub(super) columns: Vec<ArrayRef>,
    offsets: Vec<i32>,
    pub(super) result: &'a DataType,
    /// The constant arguments after the collected ones.
    pub(super) constants: &'a [ScalarValue],
    /// Whether the values are in descending order.
    pub(super) descending: bool,
    /// How values are written as JSON.
    pub(super) json: GroupedForm,
    keys: OnceCell<Rows>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(
        arranged: Arranged,
        result: &'a DataType,
        constants: &'a [ScalarValue],
        descending: bool,
        json: GroupedForm,
    ) -> Self {
        let Arranged { columns, offsets } = arranged;
        Self { columns, offsets, result, constants, descending, json, keys: OnceCell::new() }
    }

    /// The start of each group, and the end of the last one.
    pub(super) fn offsets(&self) -> &[i32] {
        &self.offsets
    }

    /// The rows of each group.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.offsets.windows(2).map(|pair| pair[0] as usize..pair[1] as usize)
    }

    /// Converts the last column to keys that compare like SQL values.
    pub(super) fn keys(&self) -> Result<&Rows> {
        if let Some(keys) = self.keys.get() {
            return Ok(keys);
        }
        let options = SortOptions { descending: self.descending, nulls_first: false };
        let keys = measured_rows(&self.columns[self.columns.len() - 1], options)?;
        Ok(self.keys.get_or_init(|| keys))
    }

    /// Returns the rows of a group ordered by key; stable.
    pub(super) fn sorted(&self, range: Range<usize>) -> Result<Vec<usize>> {
        let keys = self.keys()?;
        let mut rows: Vec<usize> = range.collect();
        rows.sort_by(|left, right| keys.row(*left).cmp(&keys.row(*right)));
        Ok(rows)
    }

    /// Returns the row at an index as if the group were [`sorted`](Self::sorted); reorders the rows.
    pub(super) fn row_at(&self, rows: &mut [usize], place: usize) -> Result<usize> {
        let keys = self.keys()?;
        let order = |left: &usize, right: &usize| {
            keys.row(*left).cmp(&keys.row(*right)).then(left.cmp(right))
        };
        Ok(*rows.select_nth_unstable_by(place, order).1)
    }

    /// Builds one value of the first column per group.
    pub(super) fn pick(
        &self,
        of: impl Fn(Range<usize>) -> Result<Option<usize>>,
    ) -> Result<ArrayRef> {
        let mut picked = UInt32Builder::new();
        for range in self.ranges() {
            picked.append_option(of(range)?.map(|row| row as u32));
        }
        Ok(cast(&take(&self.columns[0], &picked.finish(), None)?, self.result)?)
    }

    /// Builds a list of values of the first column per group.
    pub(super) fn pick_lists(
        &self,
        of: impl Fn(Range<usize>) -> Result<Option<Vec<usize>>>,
    ) -> Result<ArrayRef> {
        let (mut picked, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
        for range in self.ranges() {
            let rows = of(range)?;
            valid.push(rows.is_some());
            let rows = rows.unwrap_or_default();
            lengths.push(rows.len());
            picked.extend(rows.into_iter().map(|row| row as u32));
        }
        let values = take(&self.columns[0], &UInt32Array::from(picked), None)?;
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths(lengths);
        let lists = ListArray::try_new(field, offsets, values, Some(NullBuffer::from(valid)))?;
        Ok(cast(&lists, self.result)?)
    }

    /// Builds one number per group.
    pub(super) fn figures(
        &self,
        of: impl Fn(Range<usize>) -> Result<Option<f64>>,
    ) -> Result<ArrayRef> {
        let figures: Result<Float64Array> = self.ranges().map(of).collect();
        Ok(cast(&figures?, self.result)?)
    }

    /// Counts each value of a group, with the first row that has it, in value order.
    pub(super) fn counted(&self, range: Range<usize>) -> Result<Vec<(usize, usize)>> {
        let keys = self.keys()?;
        let mut counted: Vec<(usize, usize)> = Vec::new();
        for row in self.sorted(range)? {
            match counted.last_mut() {
                Some((first, count)) if keys.row(*first) == keys.row(row) => *count += 1,
                _ => counted.push((row, 1)),
            }
        }
        Ok(counted)
    }
}

impl<'a> Groups<'a> {
    /// The same groups with duplicates removed.
    pub(super) fn distinct(&self, result: &'a DataType) -> Result<Self> {
        let (mut rows, mut offsets) = (Vec::new(), vec![0]);
        for range in self.ranges() {
            rows.extend(self.counted(range)?.into_iter().map(|(first, _)| first as u32));
            offsets.push(rows.len() as i32);
        }
        let rows = UInt32Array::from(rows);
        let columns: Result<Vec<ArrayRef>> =
            self.columns.iter().map(|column| Ok(take(column, &rows, None)?)).collect();
        let arranged = Arranged { columns: columns?, offsets };
        Ok(Self::new(arranged, result, self.constants, self.descending, self.json))
    }
}
