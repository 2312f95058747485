//! `array_agg`, whose DISTINCT respects its ORDER BY.
//!
//! If rows come in reverse order, DataFusion computes such an aggregate in that order and informs it. Its own
//! aggregate respects that for rows as they come, but not when it sorts distinct values itself
//! (functions-aggregate/array_agg.rs, 55.2): they came out reversed. And it treats equally long intervals as
//! different.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF,
    Signature,
};
use datafusion::physical_expr::PhysicalSortExpr;

use super::sorted::{self, Joined, SortedGroups};
use crate::exact_sum::distinct_measured::DistinctMeasured;
use crate::gathered::OneGroup;
use crate::scalar::list_mark;
use crate::temporal::measured_type;

/// `array_agg` whose distinct values come in the requested order.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct OrderedArrayAgg {
    builtin: AggregateUDF,
}

impl Default for OrderedArrayAgg {
    fn default() -> Self {
        Self { builtin: AggregateUDF::clone(&array_agg_udaf()) }
    }
}

/// Returns the order in which a DISTINCT aggregate must return its values, if its row order was reversed.
pub(crate) fn distinct_order(args: &AccumulatorArgs) -> Vec<PhysicalSortExpr> {
    let order = args.order_bys.iter();
    match args.is_distinct && args.is_reversed {
        true => order.map(PhysicalSortExpr::reverse).collect(),
        false => order.cloned().collect(),
    }
}

impl AggregateUDFImpl for OrderedArrayAgg {
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
        let field = self.builtin.return_field(arg_fields)?;
        let Some((key, mark)) = arg_fields.first().and_then(|item| list_mark(item)) else {
            return Ok(field);
        };
        let metadata = [(key.to_owned(), mark)].into();
        Ok(Arc::new(Arc::unwrap_or_clone(field).with_metadata(metadata)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        match sorted::state_fields(&args) {
            Some(fields) => Ok(fields),
            None => self.builtin.state_fields(args),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if sorted::is_sorted(&args) {
            return Ok(Box::new(OneGroup(SortedGroups::new(&args, Joined::List)?)));
        }
        let order_bys = distinct_order(&args);
        let values = &args.expr_fields[0];
        if args.is_distinct
            && let Some(lengths) = measured_type(values.data_type())
        {
            let options = match &order_bys[..] {
                [] => Some(SortOptions { descending: false, nulls_first: false }),
                [key] if key.expr.eq(&args.exprs[0]) => Some(key.options),
                _ => None,
            };
            if let Some(options) = options {
                let distinct = DistinctMeasured::new(values, lengths, options, args.ignore_nulls)?;
                return Ok(Box::new(distinct));
            }
        }
        self.builtin.accumulator(AccumulatorArgs { order_bys: &order_bys, ..args })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.builtin.order_sensitivity()
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        beneficial_ordering: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let builtin = self.builtin.clone().with_beneficial_ordering(beneficial_ordering)?;
        Ok(builtin.map(|builtin| Arc::new(Self { builtin }) as _))
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
        match sorted::is_sorted(&args) {
            true => Ok(Box::new(SortedGroups::new(&args, Joined::List)?)),
            false => self.builtin.create_groups_accumulator(args),
        }
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.builtin.supports_null_handling_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.builtin.documentation()
    }
}
