//! `any_value`, which with an ORDER BY returns the first value.
//!
//! DataFusion's accepts the ORDER BY but ignores it
//! (functions-aggregate/any_value.rs, 55.2; apache/datafusion#9924).

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::functions_aggregate::any_value::AnyValue;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Documentation, Expr, Signature};

/// `any_value` that respects its ORDER BY.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct OrderedAnyValue {
    builtin: AnyValue,
}

impl AggregateUDFImpl for OrderedAnyValue {
    fn name(&self) -> &str {
        self.builtin.name()
    }

    fn signature(&self) -> &Signature {
        self.builtin.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.builtin.return_type(arg_types)
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        self.builtin.return_field(arg_fields)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.builtin.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.builtin.state_fields(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.builtin.order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        Some(Box::new(|function, _| Ok(Expr::AggregateFunction(in_order(function)))))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.builtin.documentation()
    }
}

/// The first non-null value in the order; DISTINCT does not change it.
fn in_order(mut function: AggregateFunction) -> AggregateFunction {
    if !function.params.order_by.is_empty() {
        function.func = first_value_udaf();
        function.params.null_treatment = Some(NullTreatment::IgnoreNulls);
        function.params.distinct = false;
    }
    function
}
