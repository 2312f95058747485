//! Aggregates as window functions: over frames that lose rows, and in the order of the window.
//!
//! Where a frame loses rows at its begin, DataFusion takes them out of the running aggregate, and refuses those that
//! cannot give rows back. Here these keep the rows of the frame and are computed anew for each. And where rows come in
//! the opposite order of a window, DataFusion goes through them backwards with the aggregate's counterpart, which for
//! lists and texts gives them backwards, too (`SlidingAggregateWindowExpr`, 55.2): here they are sorted instead.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::planner::RawWindowExpr;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, ReversedUDAF, SetMonotonicity,
    Signature, WindowFunctionDefinition,
};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

/// The call of a window function with an aggregate that any frame fits.
pub(crate) fn framed(mut call: RawWindowExpr) -> RawWindowExpr {
    if let WindowFunctionDefinition::AggregateUDF(function) = &call.func_def {
        let loses_rows = !call.window_frame.start_bound.is_unbounded();
        let has_order = matches!(function.reverse_udf(), ReversedUDAF::Reversed(_));
        if loses_rows || has_order {
            let framed = Framed { inner: AggregateUDF::clone(function) };
            let function = Arc::new(AggregateUDF::from(framed));
            call.func_def = WindowFunctionDefinition::AggregateUDF(function);
        }
    }
    call
}

/// An aggregate that any frame fits.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Framed {
    inner: AggregateUDF,
}

impl AggregateUDFImpl for Framed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_schema_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_display_name(params)
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.schema_name(params)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        self.inner.return_field(arg_fields)
    }

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let call = Call::of(&self.inner, &args);
        let sliding = self.inner.create_sliding_accumulator(args)?;
        match sliding.supports_retract_batch() {
            true => Ok(sliding),
            false => Ok(Box::new(Anew { call, rows: VecDeque::new() })),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner.simplify()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner.reverse_udf() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            _ => ReversedUDAF::NotSupported,
        }
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// What accumulators of a call are made of.
#[derive(Debug)]
struct Call {
    function: AggregateUDF,
    return_field: FieldRef,
    schema: Schema,
    ignore_nulls: bool,
    order_bys: Vec<PhysicalSortExpr>,
    is_reversed: bool,
    name: String,
    is_distinct: bool,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    expr_fields: Vec<FieldRef>,
}

impl Call {
    fn of(function: &AggregateUDF, args: &AccumulatorArgs) -> Self {
        Self {
            function: function.clone(),
            return_field: Arc::clone(&args.return_field),
            schema: args.schema.clone(),
            ignore_nulls: args.ignore_nulls,
            order_bys: args.order_bys.to_vec(),
            is_reversed: args.is_reversed,
            name: args.name.to_owned(),
            is_distinct: args.is_distinct,
            exprs: args.exprs.to_vec(),
            expr_fields: args.expr_fields.to_vec(),
        }
    }

    fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.order_bys,
            is_reversed: self.is_reversed,
            name: &self.name,
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        })
    }
}

/// An aggregate that is computed anew for each frame.
#[derive(Debug)]
struct Anew {
    call: Call,
    /// The rows of the frame, as they came.
    rows: VecDeque<Vec<ArrayRef>>,
}

fn count(rows: &[ArrayRef]) -> usize {
    rows.first().map_or(0, |column| column.len())
}

impl Accumulator for Anew {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if count(values) > 0 {
            self.rows.push_back(values.to_vec());
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut gone = count(values);
        while gone > 0 {
            let Some(first) = self.rows.front_mut() else { break };
            let there = count(first);
            if there <= gone {
                gone -= there;
                self.rows.pop_front();
            } else {
                for column in first {
                    *column = column.slice(gone, there - gone);
                }
                gone = 0;
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut accumulator = self.call.accumulator()?;
        if self.rows.len() > 1 {
            let columns = 0..self.rows[0].len();
            let whole = columns.map(|at| {
                let parts: Vec<&dyn Array> =
                    self.rows.iter().map(|part| part[at].as_ref()).collect();
                concat(&parts)
            });
            let whole = whole.collect::<std::result::Result<Vec<_>, _>>()?;
            self.rows = VecDeque::from([whole]);
        }
        if let Some(whole) = self.rows.front() {
            accumulator.update_batch(whole)?;
        }
        accumulator.evaluate()
    }

    fn size(&self) -> usize {
        let columns = self.rows.iter().flatten();
        let bytes = columns.map(|column| column.to_data().get_slice_memory_size().unwrap_or(0));
        size_of_val(self) + bytes.sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        datafusion::common::internal_err!("a window frame has no state to exchange")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        datafusion::common::internal_err!("window frames are not merged")
    }
}
