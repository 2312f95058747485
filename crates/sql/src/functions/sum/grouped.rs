//! The sums of many groups at once.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int64Array, PrimitiveArray,
};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use super::super::groups::{GroupTotals, masked};
use super::super::headroom::Headroom;
use super::super::target::Target;
use super::super::total::Summand;

/// One sum per group.
#[derive(Debug)]
pub(super) struct GroupedSum<T: ArrowPrimitiveType<Native: Summand>> {
    target: Target<T::Native>,
    /// Whether the state has a column for the wraps.
    carries: bool,
    totals: GroupTotals<T>,
}

impl<T: ArrowPrimitiveType<Native: Summand> + Send> GroupedSum<T> {
    /// Sums for `target` with this headroom. If it is ample, the state has no column for the wraps.
    pub(super) fn new(target: Target<T::Native>, headroom: Headroom) -> Self {
        let carries = matches!(headroom, Headroom::Within(_));
        Self { target, carries, totals: GroupTotals::new(headroom) }
    }
}

impl<T: ArrowPrimitiveType<Native: Summand> + Send> GroupsAccumulator for GroupedSum<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.totals.add(values, group_indices, opt_filter, total_num_groups);
        Ok(())
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        let lows = values[0].as_primitive::<T>();
        let wraps = self.carries.then(|| values[1].as_primitive::<Int64Type>());
        self.totals.merge(lows, wraps, group_indices, total_num_groups);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let emitted = self.totals.emit(emit_to);
        self.target.check_all(&emitted.lows, &emitted.wraps)?;
        let (sums, _) = emitted.into_columns::<T>(self.target.data_type());
        Ok(Arc::new(sums))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let emitted = self.totals.emit(emit_to);
        let (lows, wraps) = emitted.into_columns::<T>(self.target.data_type());
        let mut state: Vec<ArrayRef> = vec![Arc::new(lows)];
        if self.carries {
            state.push(Arc::new(wraps));
        }
        Ok(state)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<T>();
        let nulls = masked(values, opt_filter);
        let lows = PrimitiveArray::<T>::new(values.values().clone(), nulls.clone())
            .with_data_type(self.target.data_type().clone());
        let mut state: Vec<ArrayRef> = vec![Arc::new(lows)];
        if self.carries {
            state.push(Arc::new(Int64Array::new(vec![0; values.len()].into(), nulls)));
        }
        Ok(state)
    }

    fn size(&self) -> usize {
        self.totals.size()
    }
}
