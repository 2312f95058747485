//! `range_agg` and `range_intersect_agg`.

use std::mem::size_of_val;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Signature, Volatility,
};

use super::form::RangeForm;
use super::functions::form_of;
use super::set::RangeSet;
use crate::failure::FunctionFailure;
use crate::listing::{Listing, told_apart_by_listing};
use crate::scalar::marks::{JSON_MARK, MARK_PREFIX};
use crate::temporal::StatementClock;

/// Returns the aggregates of ranges.
pub(crate) fn aggregates() -> [Arc<AggregateUDF>; 2] {
    let aggregate = |is_union, name, about, example| {
        let listing = Listing::new(name, &[], "range", about, example);
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(AggregateUDF::from(RangeAggregate { listing, signature, is_union, name }))
    };
    [
        aggregate(
            true,
            "range_agg",
            "The multirange of all values of the ranges or multiranges.",
            "range_agg(r)",
        ),
        aggregate(
            false,
            "range_intersect_agg",
            "The values that all ranges, or all multiranges, have.",
            "range_intersect_agg(r)",
        ),
    ]
}

struct RangeAggregate {
    listing: Listing,
    signature: Signature,
    is_union: bool,
    name: &'static str,
}

told_apart_by_listing!(RangeAggregate);

impl RangeAggregate {
    fn given(&self, field: Option<&FieldRef>) -> Result<RangeForm> {
        match field.and_then(|field| form_of(field)) {
            Some(form) => Ok(form),
            None => {
                let message = format!(
                    "{}: the argument is not a range; cast it, as in '[1,5)'::int4range",
                    self.name
                );
                Err(FunctionFailure::error("42883", message))
            }
        }
    }

    fn result(&self, given: RangeForm) -> RangeForm {
        if self.is_union { RangeForm::multi(given.of) } else { given }
    }
}

impl AggregateUDFImpl for RangeAggregate {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        let field = Field::new(self.name, DataType::Utf8, true);
        // The mark of CASE is known later.
        let Ok(given) = self.given(fields.first()) else { return Ok(Arc::new(field)) };
        let mark = format!("{MARK_PREFIX}{}", self.result(given).name());
        Ok(Arc::new(field.with_metadata([(JSON_MARK.0.to_owned(), mark)].into())))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let given = self.given(args.expr_fields.first())?;
        let (result, is_union) = (self.result(given), self.is_union);
        Ok(Box::new(Ranges { given, result, is_union, found: None }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format_state_name(args.name, "ranges");
        Ok(vec![Arc::new(Field::new(name, DataType::Utf8, true))])
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.listing.documentation)
    }
}

/// The values found so far.
#[derive(Debug)]
struct Ranges {
    given: RangeForm,
    result: RangeForm,
    is_union: bool,
    found: Option<RangeSet>,
}

impl Ranges {
    fn add(&mut self, texts: &ArrayRef, form: RangeForm) -> Result<()> {
        let texts = cast(texts, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>().iter().flatten();
        let sets = texts.map(|text| form.read(text, StatementClock::default()));
        let sets: Vec<RangeSet> = sets
            .collect::<std::result::Result<_, _>>()
            .map_err(FunctionFailure::into_datafusion)?;
        let all = self.found.take().into_iter().chain(sets);
        self.found = match self.is_union {
            true => {
                let mut all = all.peekable();
                all.peek().is_some().then(|| RangeSet::union(all))
            }
            false => all.reduce(|left, right| left.intersection(&right)),
        };
        Ok(())
    }
}

impl Accumulator for Ranges {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], self.given)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.add(&states[0], self.result)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let text = self.found.as_ref().map(|set| self.result.text(set, None));
        Ok(ScalarValue::Utf8(text))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        let spans = self.found.as_ref().map_or(0, RangeSet::size);
        size_of_val(self) + spans
    }
}
