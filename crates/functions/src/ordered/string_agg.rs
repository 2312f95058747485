//! `string_agg`, with memory accounting while it grows.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{ScalarValue, not_impl_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::string_agg::StringAgg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator,
    ReversedUDAF, Signature,
};
use datafusion::physical_expr::expressions::Literal;

use super::array_agg::distinct_order;
use super::sorted::{self, Joined, SortedGroups};
use crate::gathered::OneGroup;

/// A text and its copy: in a buffer twice as large while it grows, in an array when it is done.
const COPIES: usize = 3;

/// DataFusion's `string_agg`, with its copies included in the memory accounting.
///
/// DataFusion 55.2 only counts the characters, so a query exceeded the memory limit threefold
/// before anything was rejected or spilled.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct CountedStringAgg {
    builtin: StringAgg,
}

impl AggregateUDFImpl for CountedStringAgg {
    fn name(&self) -> &str {
        self.builtin.name()
    }

    fn signature(&self) -> &Signature {
        self.builtin.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.builtin.return_type(arg_types)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        match sorted::state_fields(&args) {
            Some(fields) => Ok(fields),
            None => self.builtin.state_fields(args),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if sorted::is_sorted(&args) {
            return Ok(Box::new(OneGroup(SortedGroups::new(&args, between(&args)?)?)));
        }
        let order_bys = distinct_order(&args);
        let args = AccumulatorArgs { order_bys: &order_bys, ..args };
        Ok(Box::new(CountedText(self.builtin.accumulator(args)?)))
    }

    /// The values are sorted when they are joined; presorted rows make that cheaper.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::SoftRequirement
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        _: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Reversed(AggregateUDF::from(Self::default()).into())
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        sorted::is_sorted(&args) || self.builtin.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match sorted::is_sorted(&args) {
            true => Box::new(SortedGroups::new(&args, between(&args)?)?),
            false => Box::new(CountedTexts(self.builtin.create_groups_accumulator(args)?)),
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.builtin.documentation()
    }
}

/// What stands between two values, nothing for NULL.
fn between(args: &AccumulatorArgs) -> Result<Joined> {
    let literal = args.exprs[1].downcast_ref::<Literal>().map(Literal::value);
    let between = literal.map(|value| (value.is_null(), value.try_as_str().flatten()));
    match between {
        Some((true, _)) => Ok(Joined::Text(String::new())),
        Some((false, Some(between))) => Ok(Joined::Text(between.to_owned())),
        _ => not_impl_err!("string_agg delimiter must be a string literal"),
    }
}

/// The text of one group.
#[derive(Debug)]
struct CountedText(Box<dyn Accumulator>);

impl Accumulator for CountedText {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn size(&self) -> usize {
        COPIES * self.0.size()
    }
}

/// The texts of many groups.
struct CountedTexts(Box<dyn GroupsAccumulator>);

impl GroupsAccumulator for CountedTexts {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.0.update_batch(values, group_indices, opt_filter, total_num_groups)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.0.merge_batch(values, group_indices, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.0.evaluate(emit_to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.0.state(emit_to)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.0.convert_to_state(values, opt_filter)
    }

    fn size(&self) -> usize {
        COPIES * self.0.size()
    }
}
