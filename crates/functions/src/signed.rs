//! Functions that number and count, with signed results as in PostgreSQL.
//!
//! DataFusion's return UBIGINT, which PostgreSQL's clients lack and read as NUMERIC.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use datafusion::arrow::compute::{self, CastOptions, SortOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_window::{ntile, rank, row_number};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::planner::{RawAggregateExpr, RawWindowExpr};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, LimitEffect, PartitionEvaluator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, WindowFunctionDefinition, WindowUDF, WindowUDFImpl, cast,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::prelude::SessionContext;

/// List functions that return element numbers, or lists of these.
const OF_LISTS: [&str; 3] = ["array_length", "array_positions", "cardinality"];

/// Aggregates that count rows.
const COUNTS: [&str; 2] = ["approx_distinct", "regr_count"];

/// Replaces DataFusion's functions.
pub(super) fn register(context: &SessionContext) {
    let functions = context.state().scalar_functions().clone();
    for name in OF_LISTS {
        let Some(function) = functions.get(name) else { continue };
        let inner = ScalarUDF::clone(function);
        context.register_udf(ScalarUDF::new_from_impl(OfList { inner }));
    }
    for (inner, gives) in [
        (row_number::row_number_udwf(), DataType::Int64),
        (rank::rank_udwf(), DataType::Int64),
        (rank::dense_rank_udwf(), DataType::Int64),
        (ntile::ntile_udwf(), DataType::Int32),
    ] {
        context.register_udwf(WindowUDF::new_from_impl(Numbering { inner, gives }));
    }
}

/// Rewrites a count to return BIGINT; None for other aggregates.
pub(crate) fn signed_count(call: &RawAggregateExpr) -> Option<Expr> {
    if !COUNTS.contains(&call.func.name()) {
        return None;
    }
    let call = call.clone();
    let count = AggregateFunction::new_udf(
        call.func,
        call.args,
        call.distinct,
        call.filter,
        call.order_by,
        call.null_treatment,
    );
    Some(cast(Expr::AggregateFunction(count), DataType::Int64))
}

/// The same for a window function.
pub(crate) fn signed_count_over(call: &RawWindowExpr) -> Option<Expr> {
    let WindowFunctionDefinition::AggregateUDF(function) = &call.func_def else { return None };
    if !COUNTS.contains(&function.name()) {
        return None;
    }
    let call = call.clone();
    let params = WindowFunctionParams {
        args: call.args,
        partition_by: call.partition_by,
        order_by: call.order_by,
        window_frame: call.window_frame,
        filter: call.filter,
        null_treatment: call.null_treatment,
        distinct: call.distinct,
    };
    let count = WindowFunction { fun: call.func_def, params };
    Some(cast(Expr::from(count), DataType::Int64))
}

/// Casts a result to a signed integer; fails if it is too large.
fn signed(values: &ArrayRef, gives: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(values, gives, &options)?)
}

/// A list function that returns INTEGER, or a list of INTEGER.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfList {
    inner: ScalarUDF,
}

impl ScalarUDFImpl for OfList {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(given)
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        Ok(match self.inner.return_type(given)? {
            DataType::List(_) => DataType::new_list(DataType::Int32, true),
            _ => DataType::Int32,
        })
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let [list, dimension] = args.args.as_slice()
            && self.inner.name() == "array_length"
        {
            let lengths = lengths(list, dimension, args.number_rows)?;
            return Ok(ColumnarValue::Array(Arc::new(lengths)));
        }
        let gives = args.return_field.data_type().clone();
        let given: Vec<DataType> =
            args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.inner.name(), self.inner.return_type(&given)?, true);
        args.return_field = Arc::new(field);
        Ok(match self.inner.invoke_with_args(args)? {
            ColumnarValue::Array(values) => ColumnarValue::Array(signed(&values, &gives)?),
            ColumnarValue::Scalar(value) => {
                let value = signed(&value.to_array()?, &gives)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&value, 0)?)
            }
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// Number of elements in a dimension, as in PostgreSQL: NULL if there are none.
fn lengths(list: &ColumnarValue, dimension: &ColumnarValue, rows: usize) -> Result<Int32Array> {
    let (lists, dimensions) = (list.to_array(rows)?, dimension.to_array(rows)?);
    let dimensions = compute::cast(&dimensions, &DataType::Int64)?;
    let dimensions = dimensions.as_primitive::<Int64Type>();
    let length = |row: usize| -> Option<i32> {
        let dimension = dimensions.is_valid(row).then(|| dimensions.value(row))?;
        let mut list = elements(&lists, row)?;
        for _ in 1..dimension {
            list = elements(&list, 0)?;
        }
        let is_there = dimension > 0 && !list.is_empty();
        is_there.then(|| i32::try_from(list.len()).ok()).flatten()
    };
    Ok((0..rows).map(length).collect())
}

/// Returns the elements of a row's list; None if it is NULL or not a list, or if there is no such row.
fn elements(lists: &ArrayRef, row: usize) -> Option<ArrayRef> {
    if row >= lists.len() || lists.is_null(row) {
        return None;
    }
    match lists.data_type() {
        DataType::List(_) => Some(lists.as_list::<i32>().value(row)),
        DataType::LargeList(_) => Some(lists.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => Some(lists.as_fixed_size_list().value(row)),
        _ => None,
    }
}

/// A window function that numbers rows.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Numbering {
    inner: Arc<WindowUDF>,
    gives: DataType,
}

impl WindowUDFImpl for Numbering {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let inner = self.inner.partition_evaluator_factory(args)?;
        Ok(Box::new(Numbers { inner, gives: self.gives.clone() }))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), self.gives.clone(), false)))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.inner.sort_options()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.inner.inner().limit_effect(args)
    }
}

/// Numbers the rows of a partition.
#[derive(Debug)]
struct Numbers {
    inner: Box<dyn PartitionEvaluator>,
    gives: DataType,
}

impl PartitionEvaluator for Numbers {
    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.inner.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.inner.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        signed(&self.inner.evaluate_all(values, rows)?, &self.gives)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.inner.evaluate(values, range)?.cast_to(&self.gives)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        signed(&self.inner.evaluate_all_with_rank(rows, ranks)?, &self.gives)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.inner.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.inner.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.inner.include_rank()
    }
}
