//! One exact total per group.

use datafusion::arrow::array::{
    Array, ArrowNativeTypeOp, ArrowPrimitiveType, BooleanArray, Int64Array, PrimitiveArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::NullState;

use crate::exact_sum::headroom::Headroom;
use crate::exact_sum::summand::Summand;

/// The totals of a grouped aggregation, by group number.
#[derive(Debug)]
pub(crate) struct GroupTotals<T: ArrowPrimitiveType> {
    /// The low part of each total.
    lows: Vec<T::Native>,
    /// The wraps of each total. Empty until the first total wraps, which in nearly every query
    /// never happens; shorter than `lows` if groups came after that.
    wraps: Vec<i64>,
    /// Which groups have seen a value.
    seen: NullState,
    headroom: Headroom,
}

/// Totals taken out of a [`GroupTotals`].
pub(crate) struct Emitted<N> {
    /// The low part of each total.
    pub(crate) lows: Vec<N>,
    /// The wraps of each total, or nothing where all are 0.
    pub(crate) wraps: Vec<i64>,
    /// The groups without values, as nulls.
    pub(crate) nulls: Option<NullBuffer>,
}

impl<N: Summand> Emitted<N> {
    /// The low parts, as a column of `data_type`, and the wraps.
    pub(crate) fn into_columns<T>(self, data_type: &DataType) -> (PrimitiveArray<T>, Int64Array)
    where
        T: ArrowPrimitiveType<Native = N>,
    {
        let rows = self.lows.len();
        let wraps = if self.wraps.is_empty() { vec![0; rows] } else { self.wraps };
        let lows = PrimitiveArray::new(self.lows.into(), self.nulls.clone());
        (lows.with_data_type(data_type.clone()), Int64Array::new(wraps.into(), self.nulls))
    }
}

impl<T> GroupTotals<T>
where
    T: ArrowPrimitiveType<Native: Summand> + Send,
{
    /// No groups yet.
    pub(crate) fn new(headroom: Headroom) -> Self {
        Self { lows: vec![], wraps: vec![], seen: NullState::new(), headroom }
    }

    /// Adds each value that is neither null nor filtered out to the total of its group.
    pub(crate) fn add(
        &mut self,
        values: &PrimitiveArray<T>,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        group_count: usize,
    ) {
        self.lows.resize(group_count, T::Native::default());
        // A slice: through the vector, its address would be loaded again for every value.
        let (lows, wraps) = (self.lows.as_mut_slice(), &mut self.wraps);
        if self.headroom.admits(values.values()) {
            self.seen.accumulate(groups, values, filter, group_count, |group, value| {
                let low = &mut lows[group];
                *low = low.add_wrapping(value);
            });
            return;
        }
        self.seen.accumulate(groups, values, filter, group_count, |group, value| {
            let (low, wrapped) = lows[group].plus(value);
            lows[group] = low;
            if wrapped {
                note_wraps(wraps, group, value.wraps_added());
            }
        });
    }

    /// Adds partial totals: their low parts and their wraps, if the states contain them.
    pub(crate) fn merge(
        &mut self,
        lows: &PrimitiveArray<T>,
        wraps: Option<&Int64Array>,
        groups: &[usize],
        group_count: usize,
    ) {
        self.add(lows, groups, None, group_count);
        for (row, &change) in wraps.iter().flat_map(|wraps| wraps.values().iter().enumerate()) {
            if change != 0 && lows.is_valid(row) {
                note_wraps(&mut self.wraps, groups[row], change);
            }
        }
    }

    /// Removes totals as `emit_to` says; the remaining groups move up.
    pub(crate) fn emit(&mut self, emit_to: EmitTo) -> Emitted<T::Native> {
        if !self.wraps.is_empty() {
            self.wraps.resize(self.lows.len(), 0);
        }
        let wraps =
            if self.wraps.is_empty() { vec![] } else { emit_to.take_needed(&mut self.wraps) };
        Emitted {
            lows: emit_to.take_needed(&mut self.lows),
            wraps,
            nulls: self.seen.build(emit_to),
        }
    }

    /// Bytes held.
    pub(crate) fn size(&self) -> usize {
        self.lows.capacity() * size_of::<T::Native>()
            + self.wraps.capacity() * size_of::<i64>()
            + self.seen.size()
    }
}

#[cold]
fn note_wraps(wraps: &mut Vec<i64>, group: usize, change: i64) {
    if wraps.len() <= group {
        wraps.resize(group + 1, 0);
    }
    wraps[group] += change;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masked::masked;

    use datafusion::arrow::datatypes::Int64Type;

    #[test]
    fn groups_added_after_a_wrap_have_no_wraps() {
        let mut totals = GroupTotals::<Int64Type>::new(Headroom::unused());
        totals.add(&Int64Array::from(vec![i64::MAX, 1, 7]), &[0, 0, 1], None, 2);
        totals.add(&Int64Array::from(vec![5]), &[2], None, 3);
        let emitted = totals.emit(EmitTo::All);
        assert_eq!(emitted.lows, [i64::MIN, 7, 5]);
        assert_eq!(emitted.wraps, [1, 0, 0]);
    }

    #[test]
    fn the_groups_that_stay_keep_their_wraps() {
        let mut totals = GroupTotals::<Int64Type>::new(Headroom::unused());
        totals.add(&Int64Array::from(vec![1, i64::MIN, -1]), &[0, 1, 1], None, 2);
        assert_eq!(totals.emit(EmitTo::First(1)).wraps, [0]);
        totals.add(&Int64Array::from(vec![1]), &[0], None, 1);
        let emitted = totals.emit(EmitTo::All);
        assert_eq!((emitted.lows, emitted.wraps), (vec![i64::MIN], vec![0]));
    }

    #[test]
    fn a_filter_that_is_null_lets_nothing_through() {
        let values = Int64Array::from(vec![Some(1), None, Some(3), Some(4)]);
        let filter = BooleanArray::from(vec![Some(true), Some(true), None, Some(false)]);
        let nulls = masked(&values, Some(&filter)).unwrap();
        assert_eq!(nulls.iter().collect::<Vec<_>>(), [true, false, false, false]);
    }
}
