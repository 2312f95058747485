//! The window functions that are computed over all rows at once.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::is_not_null;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr, WindowExpr,
};
use datafusion::physical_plan::windows::WindowUDFExpr;

use super::frame::Frame;
use super::key::{is_ordered, is_text};

/// What a function computes for each row.
#[derive(Clone, Debug)]
pub(super) enum Computed {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    /// The number of buckets.
    Ntile(u64),
    /// The value of the row at this distance, or this one.
    Shift(i64, ScalarValue),
    /// The value of the n-th row of the frame, from 0.
    Nth(Frame, usize),
    /// The value of the last row of the frame.
    Last(Frame),
    /// The number of rows with a value, or of all.
    Count(Frame),
    Sum(Frame),
    /// The average of floats or decimals.
    Average(Frame),
    Smallest(Frame),
    Largest(Frame),
}

/// A window function.
#[derive(Clone, Debug)]
pub(super) struct WindowFunction {
    pub(super) computed: Computed,
    /// The value over which it is computed; `None` for functions of positions.
    pub(super) argument: Option<Arc<dyn PhysicalExpr>>,
    pub(super) data_type: DataType,
}

impl Computed {
    /// The frame over which it is computed, if it has one.
    pub(super) fn frame(&self) -> Option<Frame> {
        match self {
            Self::Nth(frame, _)
            | Self::Last(frame)
            | Self::Count(frame)
            | Self::Sum(frame)
            | Self::Average(frame)
            | Self::Smallest(frame)
            | Self::Largest(frame) => Some(*frame),
            _ => None,
        }
    }
}

impl WindowFunction {
    /// `None` if DataFusion computes it.
    pub(super) fn new(expr: &dyn WindowExpr, schema: &Schema) -> Option<Self> {
        let any = expr.as_any();
        let (computed, argument) = if let Some(standard) = any.downcast_ref::<StandardWindowExpr>()
        {
            of_position(standard, schema)?
        } else if let Some(plain) = any.downcast_ref::<PlainAggregateWindowExpr>() {
            // Its filter is private, and its last field.
            let has_filter = !format!("{plain:?}").ends_with("filter: None }");
            aggregate(plain.get_aggregate_expr(), has_filter, expr, schema)?
        } else if let Some(sliding) = any.downcast_ref::<SlidingAggregateWindowExpr>() {
            let has_filter = !format!("{sliding:?}").ends_with("filter: None }");
            aggregate(sliding.get_aggregate_expr(), has_filter, expr, schema)?
        } else {
            return None;
        };
        let data_type = expr.field().ok()?.data_type().clone();
        let function = Self { computed, argument, data_type };
        function.has_known_type(schema).then_some(function)
    }

    fn has_known_type(&self, schema: &Schema) -> bool {
        let argument = self.argument.as_ref().map(|argument| argument.data_type(schema));
        let Some(argument) = argument.transpose().ok() else { return false };
        match (&self.computed, argument, &self.data_type) {
            (Computed::Sum(_), Some(argument), result) => sums(&argument, result),
            (Computed::Average(_), Some(argument), result) => averages(&argument, result),
            (Computed::Smallest(_) | Computed::Largest(_), Some(argument), result) => {
                argument == *result && (is_ordered(&argument) || is_text(&argument))
            }
            (
                Computed::Shift(..) | Computed::Nth(..) | Computed::Last(_),
                Some(argument),
                result,
            ) => argument == *result && argument != DataType::Null,
            (Computed::PercentRank | Computed::CumeDist, _, result) => *result == DataType::Float64,
            (Computed::Count(_), _, result) => *result == DataType::Int64,
            (_, _, result) => result.is_integer(),
        }
    }

    /// Whether the value for a row depends only on rows before it and its peers.
    pub(super) fn looks_back(&self) -> bool {
        matches!(self.computed, Computed::RowNumber | Computed::Rank | Computed::DenseRank)
    }
}

/// Whether sums of these are added in whole numbers.
fn sums(argument: &DataType, result: &DataType) -> bool {
    match (argument, result) {
        (DataType::Int64, DataType::Int64)
        | (DataType::UInt64, DataType::UInt64)
        | (DataType::Float64, DataType::Float64) => true,
        (DataType::Decimal128(_, of), DataType::Decimal128(_, scale)) => of == scale,
        _ => false,
    }
}

/// Whether averages of these are made of sums in whole numbers.
fn averages(argument: &DataType, result: &DataType) -> bool {
    match (argument, result) {
        (DataType::Float64, DataType::Float64) => true,
        (DataType::Decimal128(_, of), DataType::Decimal128(_, scale)) => of <= scale,
        _ => false,
    }
}

type Parsed = (Computed, Option<Arc<dyn PhysicalExpr>>);

fn of_position(expr: &StandardWindowExpr, schema: &Schema) -> Option<Parsed> {
    let function = expr.get_standard_func_expr().as_any().downcast_ref::<WindowUDFExpr>()?;
    // Both are private.
    let shown = format!("{function:?}");
    if shown.contains("ignore_nulls: true") || shown.contains("is_reversed: true") {
        return None;
    }
    let args = function.args();
    let constant = |at: usize| args.get(at).map(constant_of);
    let whole = |at: usize| constant(at).map(|value| value.as_ref().and_then(whole_number));
    let frame = || frame(expr, schema);
    let computed = match (function.fun().name(), args.len()) {
        ("row_number", 0) => Computed::RowNumber,
        ("rank", 0) => Computed::Rank,
        ("dense_rank", 0) => Computed::DenseRank,
        ("percent_rank", 0) => Computed::PercentRank,
        ("cume_dist", 0) => Computed::CumeDist,
        ("ntile", 1) => {
            let buckets = whole(0)??;
            return Some((
                Computed::Ntile(u64::try_from(buckets).ok().filter(|it| *it > 0)?),
                None,
            ));
        }
        (name @ ("lag" | "lead"), 1..=3) => {
            let distance = whole(1).unwrap_or(Some(1))?;
            let ahead = if name == "lead" { distance } else { distance.checked_neg()? };
            let data_type = args[0].data_type(schema).ok()?;
            let default = match constant(2) {
                None => ScalarValue::try_from(&data_type).ok()?,
                Some(default) => default?.cast_to(&data_type).ok()?,
            };
            Computed::Shift(ahead, default)
        }
        ("first_value", 1) => Computed::Nth(frame()?, 0),
        ("last_value", 1) => Computed::Last(frame()?),
        ("nth_value", 2) => {
            let at = whole(1)??.checked_sub(1)?;
            Computed::Nth(frame()?, usize::try_from(at).ok()?)
        }
        _ => return None,
    };
    Some((computed, args.first().cloned()))
}

fn frame(expr: &dyn WindowExpr, schema: &Schema) -> Option<Frame> {
    let key = match expr.order_by() {
        [key] => key.expr.data_type(schema).ok(),
        _ => None,
    };
    Frame::new(expr.get_window_frame(), key.as_ref())
}

fn constant_of(expr: &Arc<dyn PhysicalExpr>) -> Option<ScalarValue> {
    expr.downcast_ref::<Literal>().map(|literal| literal.value().clone())
}

fn whole_number(value: &ScalarValue) -> Option<i64> {
    if value.is_null() || !value.data_type().is_integer() {
        return None;
    }
    match value.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(value) => value,
        _ => None,
    }
}

fn aggregate(
    aggregate: &AggregateFunctionExpr,
    has_filter: bool,
    expr: &dyn WindowExpr,
    schema: &Schema,
) -> Option<Parsed> {
    let is_plain = !has_filter
        && !aggregate.is_distinct()
        && !aggregate.ignore_nulls()
        && !aggregate.is_reversed()
        && aggregate.order_bys().is_empty();
    if !is_plain {
        return None;
    }
    let frame = frame(expr, schema)?;
    let arguments = aggregate.expressions();
    let [argument] = &arguments[..] else { return None };
    let computed = match aggregate.fun().name() {
        "count" => {
            let is_there = match constant_of(argument) {
                Some(value) => !value.is_null(),
                None => !argument.nullable(schema).ok()?,
            };
            return Some((Computed::Count(frame), (!is_there).then(|| Arc::clone(argument))));
        }
        "sum" => Computed::Sum(frame),
        "avg" => Computed::Average(frame),
        "min" => Computed::Smallest(frame),
        "max" => Computed::Largest(frame),
        _ => return None,
    };
    Some((computed, Some(Arc::clone(argument))))
}

/// The values of the functions' arguments in a batch; where they are counted, whether there is one.
pub(super) fn arguments(
    functions: &[WindowFunction],
    batch: &RecordBatch,
) -> Result<Vec<Option<ArrayRef>>> {
    let of = |function: &WindowFunction| {
        let Some(argument) = &function.argument else { return Ok(None) };
        let values = argument.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(Some(match function.computed {
            Computed::Count(_) => Arc::new(is_not_null(&values)?),
            _ => values,
        }))
    };
    functions.iter().map(of).collect()
}
