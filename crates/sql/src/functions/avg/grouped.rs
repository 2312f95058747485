//! The averages of many groups at once.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int64Array, PrimitiveArray, UInt64Array,
};
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use super::super::groups::{GroupTotals, masked};
use super::super::headroom::Headroom;
use super::super::total::Total;
use super::mean::{Averaged, Mean};

/// One average per group.
#[derive(Debug)]
pub(super) struct GroupedAvg<T: ArrowPrimitiveType<Native: Averaged>> {
    mean: Mean<T::Native>,
    totals: GroupTotals<T>,
    counts: Vec<u64>,
}

impl<T: ArrowPrimitiveType<Native: Averaged> + Send> GroupedAvg<T> {
    /// Averages made as `mean` says.
    pub(super) fn new(mean: Mean<T::Native>) -> Self {
        Self { mean, totals: GroupTotals::new(Headroom::unused()), counts: vec![] }
    }
}

impl<T: ArrowPrimitiveType<Native: Averaged> + Send> GroupsAccumulator for GroupedAvg<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        let nulls = masked(values, opt_filter);
        self.counts.resize(total_num_groups, 0);
        for (row, &group) in group_indices.iter().enumerate() {
            let counted = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            self.counts[group] += u64::from(counted);
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
        let counts = values[0].as_primitive::<UInt64Type>();
        self.counts.resize(total_num_groups, 0);
        for (count, &group) in counts.iter().zip(group_indices) {
            self.counts[group] += count.unwrap_or(0);
        }
        let lows = values[1].as_primitive::<T>();
        let wraps = values[2].as_primitive::<Int64Type>();
        self.totals.merge(lows, Some(wraps), group_indices, total_num_groups);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let counts = emit_to.take_needed(&mut self.counts);
        let emitted = self.totals.emit(emit_to);
        let averages: PrimitiveArray<T> = (0..counts.len())
            .map(|group| {
                let wraps = emitted.wraps.get(group).copied().unwrap_or(0);
                self.mean.of(Total { low: emitted.lows[group], wraps }, counts[group])
            })
            .collect::<Result<_>>()?;
        Ok(Arc::new(averages.with_data_type(self.mean.result().clone())))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let counts = UInt64Array::from(emit_to.take_needed(&mut self.counts));
        let (lows, wraps) = self.totals.emit(emit_to).into_columns::<T>(self.mean.argument());
        Ok(vec![Arc::new(counts), Arc::new(lows), Arc::new(wraps)])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<T>();
        let nulls = masked(values, opt_filter);
        let counts = UInt64Array::new(vec![1; values.len()].into(), nulls.clone());
        let wraps = Int64Array::new(vec![0; values.len()].into(), nulls.clone());
        let lows = PrimitiveArray::<T>::new(values.values().clone(), nulls)
            .with_data_type(self.mean.argument().clone());
        Ok(vec![Arc::new(counts), Arc::new(lows), Arc::new(wraps)])
    }

    fn size(&self) -> usize {
        self.totals.size() + self.counts.capacity() * size_of::<u64>()
    }
}
