//! The aggregates of many groups at once.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int64Array, PrimitiveArray, UInt64Array,
};
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use crate::exact_sum::finish::Finish;
use crate::exact_sum::groups::GroupTotals;
use crate::exact_sum::headroom::Headroom;
use crate::exact_sum::summand::Summand;
use crate::masked::masked;

/// One total for each group.
#[derive(Debug)]
pub(crate) struct GroupedTotals<T: ArrowPrimitiveType<Native: Summand>, F> {
    finish: F,
    /// Whether the state has a column for the wraps.
    carries: bool,
    totals: GroupTotals<T>,
    /// The number of values in each total; empty if the aggregate needs no counts.
    counts: Vec<u64>,
}

impl<T: ArrowPrimitiveType<Native: Summand> + Send, F: Finish<T>> GroupedTotals<T, F> {
    /// Starts without groups. If the headroom is ample, the state has no column for the wraps.
    pub(crate) fn new(finish: F, headroom: Headroom) -> Self {
        let carries = !headroom.is_ample();
        Self { finish, carries, totals: GroupTotals::new(headroom), counts: vec![] }
    }

    fn emit_counts(&mut self, emit_to: EmitTo) -> Vec<u64> {
        if F::COUNTS { emit_to.take_needed(&mut self.counts) } else { vec![] }
    }

    /// Returns the columns of a state.
    fn columns(
        &self,
        counts: UInt64Array,
        lows: PrimitiveArray<T>,
        wraps: Int64Array,
    ) -> Vec<ArrayRef> {
        let mut columns: Vec<ArrayRef> = vec![];
        if F::COUNTS {
            columns.push(Arc::new(counts));
        }
        columns.push(Arc::new(lows));
        if self.carries {
            columns.push(Arc::new(wraps));
        }
        columns
    }
}

impl<T, F> GroupsAccumulator for GroupedTotals<T, F>
where
    T: ArrowPrimitiveType<Native: Summand> + Send,
    F: Finish<T>,
{
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        if F::COUNTS {
            let nulls = masked(values, opt_filter);
            self.counts.resize(total_num_groups, 0);
            for (row, &group) in group_indices.iter().enumerate() {
                let counted = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                self.counts[group] += u64::from(counted);
            }
        }
        self.totals.add(values, group_indices, opt_filter, total_num_groups);
        Ok(())
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        let (counts, totals) = values.split_at(usize::from(F::COUNTS));
        if let Some(counts) = counts.first() {
            self.counts.resize(total_num_groups, 0);
            for (count, &group) in counts.as_primitive::<UInt64Type>().iter().zip(group_indices) {
                self.counts[group] += count.unwrap_or(0);
            }
        }
        let lows = totals[0].as_primitive::<T>();
        let wraps = self.carries.then(|| totals[1].as_primitive::<Int64Type>());
        self.totals.merge(lows, wraps, group_indices, total_num_groups);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let counts = self.emit_counts(emit_to);
        let results = self.finish.finish_all(self.totals.emit(emit_to), &counts)?;
        let data_type = self.finish.target().data_type();
        Ok(Arc::new(results.with_data_type(data_type.clone())))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let counts = UInt64Array::from(self.emit_counts(emit_to));
        let totals = self.totals.emit(emit_to);
        let (lows, wraps) = totals.into_columns::<T>(self.finish.total_type());
        Ok(self.columns(counts, lows, wraps))
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<T>();
        let rows = values.len();
        let nulls = masked(values, opt_filter);
        let counts = UInt64Array::new(vec![1; rows].into(), nulls.clone());
        let wraps = Int64Array::new(vec![0; rows].into(), nulls.clone());
        let lows = PrimitiveArray::<T>::new(values.values().clone(), nulls)
            .with_data_type(self.finish.total_type().clone());
        Ok(self.columns(counts, lows, wraps))
    }

    fn size(&self) -> usize {
        self.totals.size() + self.counts.capacity() * size_of::<u64>()
    }
}
