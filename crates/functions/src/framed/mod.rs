//! Aggregates as window functions: over frames that lose rows, and in window order.
//!
//! When a frame loses rows at its beginning, DataFusion retracts them from the running aggregate, and rejects functions
//! that cannot retract rows (apache/datafusion#21957). Here these keep the rows of the frame and are recomputed for
//! each frame (`anew`), for large frames from parts (`suffixes`). So are aggregates whose retraction rounds
//! or loses information: of 1e308 and 1 DataFusion leaves 0 when 1e308 leaves, of an infinity NaN; and `bit_xor`, for
//! which it leaves 0 if no value is left. And if rows come in the reverse of the window's order, DataFusion goes
//! backwards with the reversed aggregate, which reverses lists and texts too (`SlidingAggregateWindowExpr`,
//! 55.2): here they are sorted instead.

mod anew;
mod suffixes;

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
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

use anew::{Anew, Call};

/// Wraps an aggregate in a window call so that it supports any frame.
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

/// An aggregate that supports any frame.
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
        let call = Call::new(&self.inner, &args);
        if takes_out_inexactly(&self.inner, &args) {
            return Ok(Box::new(Anew::merged(call)));
        }
        let sliding = self.inner.create_sliding_accumulator(args)?;
        match sliding.supports_retract_batch() {
            true => Ok(sliding),
            false => Ok(Box::new(Anew::new(call))),
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

/// Whether DataFusion's aggregate after retracting rows may differ from a new one over the remaining rows.
fn takes_out_inexactly(function: &AggregateUDF, args: &AccumulatorArgs) -> bool {
    let is_float = || args.expr_fields.first().is_some_and(|of| of.data_type().is_floating());
    !args.is_distinct
        && match function.name() {
            "avg" | "sum" => is_float(),
            "bit_xor" | "corr" | "covar_pop" | "covar_samp" => true,
            "stddev" | "stddev_pop" | "var" | "var_pop" => true,
            name => name.starts_with("regr_"),
        }
}
