//! `sum`, which fails instead of wrapping.
//!
//! Types, names and optimizations are DataFusion's, with one exception: its rewrite of
//! `sum(x + 1)` to `sum(x) + 1 * count(x)` is omitted, because SQL's `+` and `*` on BIGINT wrap
//! where the sum would fail.

use std::sync::Arc;

use datafusion::arrow::array::{ArrowPrimitiveType, PrimitiveArray};
use datafusion::arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Field, FieldRef, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, TimeUnit, UInt64Type,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs,
};

use crate::exact_sum::accumulator::{RunningDistinct, RunningTotal};
use crate::exact_sum::finish::Finish;
use crate::exact_sum::grouped::GroupedTotals;
use crate::exact_sum::groups::Emitted;
use crate::exact_sum::summand::Summand;
use crate::exact_sum::target::{TotalTarget, carries_wraps, headroom};
use crate::exact_sum::total::ExactTotal;

/// `sum` over integers, decimals, durations and intervals that never wraps; floats are DataFusion's.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct CheckedSum {
    builtin: Sum,
}

/// Evaluates to `$exact` with `$native` bound to the Arrow type of the sum, or to `$builtin` for a
/// type whose sums do not wrap.
macro_rules! by_type {
    ($data_type:expr, $native:ident => $exact:expr, else $builtin:expr) => {
        by_native_type!(
            $data_type,
            $native,
            $exact,
            $builtin,
            [
                (DataType::Int64, Int64Type),
                (DataType::UInt64, UInt64Type),
                (DataType::Decimal32(..), Decimal32Type),
                (DataType::Decimal64(..), Decimal64Type),
                (DataType::Decimal128(..), Decimal128Type),
                (DataType::Decimal256(..), Decimal256Type),
                (DataType::Duration(TimeUnit::Second), DurationSecondType),
                (DataType::Duration(TimeUnit::Millisecond), DurationMillisecondType),
                (DataType::Duration(TimeUnit::Microsecond), DurationMicrosecondType),
                (DataType::Duration(TimeUnit::Nanosecond), DurationNanosecondType),
                (DataType::Interval(IntervalUnit::YearMonth), IntervalYearMonthType),
                (DataType::Interval(IntervalUnit::DayTime), IntervalDayTimeType),
                (DataType::Interval(IntervalUnit::MonthDayNano), IntervalMonthDayNanoType)
            ]
        )
    };
}

/// A sum is the total itself.
impl<T: ArrowPrimitiveType<Native: Summand>> Finish<T> for TotalTarget<T::Native> {
    const COUNTS: bool = false;

    fn total_type(&self) -> &DataType {
        self.data_type()
    }

    fn target(&self) -> &TotalTarget<T::Native> {
        self
    }

    fn finish(&self, total: ExactTotal<T::Native>, count: u64) -> Result<Option<T::Native>> {
        let sum = self.check(total)?;
        Ok((count > 0).then_some(sum))
    }

    fn finish_all(&self, totals: Emitted<T::Native>, _counts: &[u64]) -> Result<PrimitiveArray<T>> {
        self.check_all(&totals.lows, &totals.wraps)?;
        Ok(totals.into_columns::<T>(self.data_type()).0)
    }
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.builtin.name()
    }

    fn signature(&self) -> &Signature {
        self.builtin.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.builtin.return_type(arg_types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let result = args.return_type();
        by_type!(result, Native => {
            let target = TotalTarget::<<Native as ArrowPrimitiveType>::Native>::new(args.name, result);
            if args.is_distinct {
                return Ok(Box::new(RunningDistinct::<Native, _>::new(target)));
            }
            let headroom = headroom(args.expr_fields[0].data_type(), result);
            Ok(Box::new(RunningTotal::<Native, _>::new(target, headroom)))
        }, else self.builtin.accumulator(args))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.return_type().is_floating() {
            return self.builtin.create_sliding_accumulator(args);
        }
        self.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let (argument, result) = (args.input_fields[0].data_type(), args.return_type());
        let exact = !result.is_floating() && !args.is_distinct;
        let wraps = (exact && carries_wraps(argument, result)).then(|| {
            Arc::new(Field::new(format_state_name(args.name, "wraps"), DataType::Int64, true))
        });
        let mut fields = self.builtin.state_fields(args)?;
        fields.extend(wraps);
        Ok(fields)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.builtin.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let result = args.return_type();
        by_type!(result, Native => {
            let headroom = headroom(args.expr_fields[0].data_type(), result);
            let target = TotalTarget::<<Native as ArrowPrimitiveType>::Native>::new(args.name, result);
            Ok(Box::new(GroupedTotals::<Native, _>::new(target, headroom)))
        }, else self.builtin.create_groups_accumulator(args))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.builtin.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.builtin.order_sensitivity()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.builtin.set_monotonicity(data_type)
    }

    /// DataFusion adds statistics with checks and gives up on overflow.
    fn value_from_stats(&self, statistics_args: &StatisticsArgs) -> Option<ScalarValue> {
        self.builtin.value_from_stats(statistics_args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.builtin.documentation()
    }
}
