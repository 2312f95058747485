//! `avg`, which fails instead of wrapping and rounds instead of truncating.
//!
//! Averages of integers and floats are DataFusion's, which adds them as DOUBLE. Those of decimals,
//! durations and intervals use exact totals. An average of decimals has the type and rounding of a
//! quotient: half away from zero, with 16 digits after the point if there is room for them.

use std::sync::Arc;

use atoll_primitives::aggregate::quotient_type;
use datafusion::arrow::array::ArrowPrimitiveType;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Field, FieldRef, TimeUnit,
};
use datafusion::common::not_impl_err;
use datafusion::error::Result;
use datafusion::functions_aggregate::average::{Avg, avg_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature,
    Volatility,
};

use crate::exact_sum::accumulator::{RunningDistinct, RunningTotal};
use crate::exact_sum::grouped::GroupedTotals;
use crate::exact_sum::headroom::Headroom;
use crate::exact_sum::mean::MeanSpec;
use crate::extremes::intervals::{INTERVAL, IntervalMean};

/// `avg` over numbers, durations and intervals that never wraps.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CheckedAvg {
    builtin: Avg,
    signature: Signature,
}

impl Default for CheckedAvg {
    fn default() -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        Self { builtin: Avg::default(), signature }
    }
}

/// Evaluates to `$exact` with `$native` bound to the Arrow type of the argument, or to `$builtin`
/// for a type whose averages in DataFusion do not wrap.
macro_rules! by_type {
    ($data_type:expr, $native:ident => $exact:expr, else $builtin:expr) => {
        by_native_type!(
            $data_type,
            $native,
            $exact,
            $builtin,
            [
                (DataType::Decimal128(..), Decimal128Type),
                (DataType::Decimal256(..), Decimal256Type),
                (DataType::Duration(TimeUnit::Second), DurationSecondType),
                (DataType::Duration(TimeUnit::Millisecond), DurationMillisecondType),
                (DataType::Duration(TimeUnit::Microsecond), DurationMicrosecondType),
                (DataType::Duration(TimeUnit::Nanosecond), DurationNanosecondType)
            ]
        )
    };
}

impl AggregateUDFImpl for CheckedAvg {
    fn name(&self) -> &str {
        self.builtin.name()
    }

    fn aliases(&self) -> &[String] {
        self.builtin.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        if let [DataType::Interval(_)] = given {
            return Ok(vec![INTERVAL]);
        }
        let field = |of: &DataType| Arc::new(Field::new("", of.clone(), true));
        let fields: Vec<FieldRef> = given.iter().map(field).collect();
        let coerced = fields_with_udf(&fields, avg_udaf().as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        if let [DataType::Interval(_)] = arg_types {
            return Ok(INTERVAL);
        }
        let [DataType::Decimal128(digits, scale)] = arg_types else {
            return self.builtin.return_type(arg_types);
        };
        let (digits, scale) = quotient_type(DECIMAL128_MAX_PRECISION, (*digits, *scale), (1, 0));
        Ok(DataType::Decimal128(digits, scale))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let argument = args.expr_fields[0].data_type();
        if *argument == INTERVAL {
            return match args.is_distinct {
                true => {
                    not_impl_err!("avg(DISTINCT interval); average a subquery that is DISTINCT")
                }
                false => Ok(Box::new(IntervalMean::default())),
            };
        }
        by_type!(argument, Native => {
            let mean = MeanSpec::<<Native as ArrowPrimitiveType>::Native>::new(args.name, argument, args.return_type());
            if args.is_distinct {
                return Ok(Box::new(RunningDistinct::<Native, _>::new(mean)));
            }
            Ok(Box::new(RunningTotal::<Native, _>::new(mean, Headroom::unused())))
        }, else self.builtin.accumulator(args))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let argument = args.input_fields[0].data_type();
        if *argument == INTERVAL {
            return Ok(IntervalMean::state_fields(args.name));
        }
        let exact = matches!(
            argument,
            DataType::Decimal128(..) | DataType::Decimal256(..) | DataType::Duration(_)
        );
        if !exact {
            return self.builtin.state_fields(args);
        }
        let named = |part| format_state_name(args.name, part);
        if args.is_distinct {
            let value = Field::new_list_field(argument.clone(), true);
            return Ok(vec![Field::new_list(named("avg distinct"), value, false).into()]);
        }
        Ok(vec![
            Field::new(named("count"), DataType::UInt64, true).into(),
            Field::new(named("sum"), argument.clone(), true).into(),
            Field::new(named("wraps"), DataType::Int64, true).into(),
        ])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        *args.expr_fields[0].data_type() != INTERVAL
            && self.builtin.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let argument = args.expr_fields[0].data_type();
        by_type!(argument, Native => {
            let mean = MeanSpec::<<Native as ArrowPrimitiveType>::Native>::new(args.name, argument, args.return_type());
            Ok(Box::new(GroupedTotals::<Native, _>::new(mean, Headroom::unused())))
        }, else self.builtin.create_groups_accumulator(args))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.builtin.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.builtin.order_sensitivity()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.builtin.documentation()
    }
}
