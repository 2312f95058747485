//! `min` and `max` with SQL's order of floats, also in groups: NaN is the largest.
//!
//! DataFusion's grouped extremes start from the largest and smallest finite float, so the `min`
//! of only ∞ is 1.797e308, and whether they skip NaN depends on its position
//! (functions-aggregate/min_max.rs, 55.2; apache/datafusion#24432). Without groups, in moving
//! frames and for all other types they are DataFusion's.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float16Type, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};
use datafusion::physical_expr::NullState;

use crate::extremes::intervals::{INTERVAL, IntervalExtreme};
use crate::extremes::nested::NestedExtreme;
use crate::extremes::texts::TextExtreme;
use crate::masked::masked;

/// Defines `$name`: DataFusion's `$builtin` with a different grouped implementation for floats, which keeps
/// the value that compares as `$better` to the best so far.
macro_rules! extreme {
    ($(#[$doc:meta])* $name:ident, $builtin:ident, $better:expr) => {
        $(#[$doc])*
        #[derive(Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name {
            builtin: $builtin,
        }

        impl AggregateUDFImpl for $name {
            fn name(&self) -> &str {
                self.builtin.name()
            }

            fn signature(&self) -> &Signature {
                self.builtin.signature()
            }

            fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
                self.builtin.coerce_types(arg_types)
            }

            fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
                self.builtin.return_type(arg_types)
            }

            fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
                let data_type = args.return_field.data_type();
                match NestedExtreme::is_for(data_type) {
                    _ if *data_type == INTERVAL => Ok(Box::new(IntervalExtreme::new($better))),
                    true => Ok(Box::new(NestedExtreme::new(data_type, $better)?)),
                    false => self.builtin.accumulator(args),
                }
            }

            fn create_sliding_accumulator(
                &self,
                args: AccumulatorArgs,
            ) -> Result<Box<dyn Accumulator>> {
                let data_type = args.return_field.data_type();
                // These cannot retract rows, so each frame is recomputed (`framed`).
                if data_type.is_nested() || *data_type == INTERVAL {
                    return self.accumulator(args);
                }
                self.builtin.create_sliding_accumulator(args)
            }

            fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
                self.builtin.state_fields(args)
            }

            fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
                let data_type = args.return_field.data_type();
                !data_type.is_nested()
                    && *data_type != INTERVAL
                    && self.builtin.groups_accumulator_supported(args)
            }

            fn create_groups_accumulator(
                &self,
                args: AccumulatorArgs,
            ) -> Result<Box<dyn GroupsAccumulator>> {
                Ok(match args.return_field.data_type() {
                    DataType::Float16 => Box::new(GroupedExtreme::<Float16Type>::new($better)),
                    DataType::Float32 => Box::new(GroupedExtreme::<Float32Type>::new($better)),
                    DataType::Float64 => Box::new(GroupedExtreme::<Float64Type>::new($better)),
                    DataType::Utf8View => Box::new(TextExtreme::new($better)),
                    _ => return self.builtin.create_groups_accumulator(args),
                })
            }

            fn is_descending(&self) -> Option<bool> {
                self.builtin.is_descending()
            }

            fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
                if *args.return_type == INTERVAL {
                    return None;
                }
                self.builtin.value_from_stats(args)
            }

            fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
                self.builtin.set_monotonicity(data_type)
            }

            fn order_sensitivity(&self) -> AggregateOrderSensitivity {
                self.builtin.order_sensitivity()
            }

            fn reverse_expr(&self) -> ReversedUDAF {
                self.builtin.reverse_expr()
            }

            fn documentation(&self) -> Option<&Documentation> {
                self.builtin.documentation()
            }
        }
    };
}

extreme!(
    /// `min`, by SQL's order of floats.
    OrderedMin,
    Min,
    Ordering::Less
);
extreme!(
    /// `max`, by SQL's order of floats.
    OrderedMax,
    Max,
    Ordering::Greater
);

/// The smallest or largest float of each group.
#[derive(Debug)]
struct GroupedExtreme<T: ArrowPrimitiveType> {
    /// How a value must compare to the best so far to replace it.
    better: Ordering,
    best: Vec<T::Native>,
    /// Which groups contain a value.
    seen: NullState,
}

impl<T: ArrowPrimitiveType> GroupedExtreme<T> {
    fn new(better: Ordering) -> Self {
        Self { better, best: vec![], seen: NullState::new() }
    }

    /// The value that every other one replaces or equals.
    fn worst(&self) -> T::Native {
        match self.better {
            Ordering::Less => T::Native::MAX_TOTAL_ORDER,
            _ => T::Native::MIN_TOTAL_ORDER,
        }
    }
}

impl<T: ArrowPrimitiveType + Send> GroupsAccumulator for GroupedExtreme<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.best.resize(total_num_groups, self.worst());
        let (best, better) = (self.best.as_mut_slice(), self.better);
        let values = values[0].as_primitive::<T>();
        self.seen.accumulate(
            group_indices,
            values,
            opt_filter,
            total_num_groups,
            |group, value| {
                let best = &mut best[group];
                if value.compare(*best) == better {
                    *best = value;
                }
            },
        );
        Ok(())
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(values, group_indices, None, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let best = emit_to.take_needed(&mut self.best);
        Ok(Arc::new(PrimitiveArray::<T>::new(best.into(), self.seen.build(emit_to))))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<T>();
        let nulls = masked(values, opt_filter);
        Ok(vec![Arc::new(PrimitiveArray::<T>::new(values.values().clone(), nulls))])
    }

    fn size(&self) -> usize {
        self.best.capacity() * size_of::<T::Native>() + self.seen.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::array::Float64Array;

    fn extremes(better: Ordering, parts: &[&[(usize, Option<f64>)]]) -> Vec<Option<f64>> {
        let mut last = GroupedExtreme::<Float64Type>::new(better);
        for part in parts {
            let mut first = GroupedExtreme::<Float64Type>::new(better);
            let values: Float64Array = part.iter().map(|(_, value)| *value).collect();
            let groups: Vec<usize> = part.iter().map(|(group, _)| *group).collect();
            first.update_batch(&[Arc::new(values)], &groups, None, 3).unwrap();
            let state = first.state(EmitTo::All).unwrap();
            last.merge_batch(&state, &[0, 1, 2], 3).unwrap();
        }
        last.evaluate(EmitTo::All).unwrap().as_primitive::<Float64Type>().iter().collect()
    }

    #[test]
    fn infinities_stay_and_groups_without_values_are_null() {
        let infinity = [(0, Some(f64::INFINITY)), (1, None), (2, None)];
        let least = extremes(Ordering::Less, &[&infinity, &infinity]);
        assert_eq!(least, [Some(f64::INFINITY), None, None]);
        let infinity = [(0, None), (1, None), (2, Some(f64::NEG_INFINITY))];
        let largest = extremes(Ordering::Greater, &[&infinity]);
        assert_eq!(largest, [None, None, Some(f64::NEG_INFINITY)]);
    }

    #[test]
    fn nan_is_the_largest_wherever_it_stands() {
        for values in [[f64::NAN, 1.0], [1.0, f64::NAN]] {
            let part = [(0, Some(values[0])), (0, Some(values[1])), (1, None), (2, None)];
            assert_eq!(extremes(Ordering::Less, &[&part])[0], Some(1.0));
            assert!(extremes(Ordering::Greater, &[&part])[0].unwrap().is_nan());
        }
        let only = [(0, Some(f64::NAN)), (1, None), (2, None)];
        assert!(extremes(Ordering::Less, &[&only])[0].unwrap().is_nan());
    }

    #[test]
    fn a_batch_becomes_a_state_without_the_rows_that_are_filtered_out() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
        let filter = BooleanArray::from(vec![Some(false), Some(true)]);
        let least = GroupedExtreme::<Float64Type>::new(Ordering::Less);
        let state = least.convert_to_state(&[values], Some(&filter)).unwrap();
        let found: Vec<_> = state[0].as_primitive::<Float64Type>().iter().collect();
        assert_eq!(found, [None, Some(2.0)]);
    }
}
