//! An aggregate as a table entry, and its conversion to a DataFusion function.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::{and, is_not_null};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, Expr, GroupsAccumulator, Signature,
    Volatility,
};
use datafusion::physical_expr::PhysicalExpr;

use super::groups::Groups;
use super::one_group::{OneGroup, RowGroups};
use super::rows::{Arranged, GroupRows, kept};
use crate::listing::{Listing, no_function, told_apart_by_listing};
use crate::scalar::{Arguments, GroupedForm, JSON_MARK, JSONB_MARK, is_json_field};

/// Computes an aggregate over its rows.
pub(crate) type Finish = fn(&Groups<'_>) -> Result<ArrayRef>;

/// An aggregate with its documentation and implementation.
pub(crate) struct GatheredEntry {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) arguments: &'static str,
    pub(crate) about: &'static str,
    pub(crate) example: &'static str,
    pub(super) takes: &'static [Arguments],
    /// Number of collected arguments; the following ones are constants.
    pub(super) gathered: usize,
    /// The arguments that must not be NULL; other rows are skipped.
    pub(super) required: &'static [usize],
    /// Whether the values may be given as WITHIN GROUP (ORDER BY values).
    pub(super) within_group: bool,
    pub(super) gives: fn(&[DataType]) -> DataType,
    /// A cheaper equivalent outside of windows.
    pub(super) instead: Option<fn(AggregateFunction) -> Result<Expr>>,
    pub(super) finish: Finish,
    /// The result over no rows, if it is not NULL.
    pub(super) of_none: Option<f64>,
    /// The mark of its results, if they are JSON.
    pub(super) mark: Option<&'static str>,
}

/// Converts an entry to a DataFusion function.
pub(crate) struct Gathered {
    entry: &'static GatheredEntry,
    listing: Listing,
    signature: Signature,
}

impl Gathered {
    pub(crate) fn new(entry: &'static GatheredEntry) -> Self {
        let GatheredEntry { name, aliases, arguments, about, example, .. } = *entry;
        Self {
            entry,
            listing: Listing::new(name, aliases, arguments, about, example),
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    fn rows(&self, args: &AccumulatorArgs<'_>) -> Result<GatheredGroups> {
        let gathered = &args.expr_fields[..self.entry.gathered];
        let types = gathered.iter().map(|field| kept(field.data_type())).collect();
        let constants: Result<Vec<ScalarValue>> = args.exprs[self.entry.gathered..]
            .iter()
            .map(|expr| constant(self.entry.name, expr))
            .collect();
        let descending = self.entry.within_group
            && args.order_bys.first().is_some_and(|order| order.options.descending);
        Ok(GatheredGroups {
            entry: self.entry,
            rows: GroupRows::new(types),
            result: args.return_field.data_type().clone(),
            constants: constants?,
            descending,
            is_distinct: args.is_distinct,
            json: GroupedForm {
                of_json: gathered.last().is_some_and(|field| is_json_field(field)),
                is_jsonb: self.entry.mark == Some(JSONB_MARK),
                is_wide: false,
            },
        })
    }
}

/// Returns the value of an argument that must be constant.
fn constant(name: &str, expr: &Arc<dyn PhysicalExpr>) -> Result<ScalarValue> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let none = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
    let value = expr.evaluate(&none).and_then(|value| value.into_array(1));
    match value {
        Ok(value) => ScalarValue::try_from_array(&value, 0),
        Err(_) => plan_err!("{name}: the arguments after the values must be constants"),
    }
}

told_apart_by_listing!(Gathered);

impl AggregateUDFImpl for Gathered {
    fn name(&self) -> &str {
        self.entry.name
    }

    fn aliases(&self) -> &[String] {
        &self.listing.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let found = self.entry.takes.iter().find_map(|arguments| arguments.coerced(given));
        found.ok_or_else(|| no_function(self.entry.name, given, self.entry.arguments))
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        Ok((self.entry.gives)(given))
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        let types: Vec<DataType> =
            arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.entry.name, (self.entry.gives)(&types), true);
        let mark = self.entry.mark.map(|mark| (JSON_MARK.0.to_owned(), mark.to_owned()));
        Ok(Arc::new(field.with_metadata(mark.into_iter().collect())))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let gathered = args.input_fields[..self.entry.gathered].iter().enumerate();
        let list = |(at, field): (usize, &FieldRef)| {
            let name = format!("{}[{at}]", args.name);
            Arc::new(Field::new_list(
                name,
                Field::new_list_field(kept(field.data_type()), true),
                true,
            ))
        };
        Ok(gathered.map(list).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OneGroup(self.rows(&args)?)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.rows(&args)?))
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        match self.entry.of_none {
            Some(figure) => ScalarValue::from(figure).cast_to(data_type),
            None => ScalarValue::try_from(data_type),
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn supports_within_group_clause(&self) -> bool {
        self.entry.within_group
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        let instead = self.entry.instead?;
        Some(Box::new(move |function, _| instead(function)))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.listing.documentation)
    }
}

/// The rows of many groups.
#[derive(Debug)]
struct GatheredGroups {
    entry: &'static GatheredEntry,
    rows: GroupRows,
    result: DataType,
    constants: Vec<ScalarValue>,
    descending: bool,
    is_distinct: bool,
    json: GroupedForm,
}

impl std::fmt::Debug for GatheredEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl GatheredGroups {
    /// Selects the relevant rows.
    fn wanted(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Option<BooleanArray>> {
        let mut wanted = filter.cloned();
        for value in
            self.entry.required.iter().filter_map(|&at| values[..self.entry.gathered].get(at))
        {
            if value.logical_null_count() > 0 {
                let valid = is_not_null(value)?;
                wanted = Some(match wanted {
                    Some(wanted) => and(&wanted, &valid)?,
                    None => valid,
                });
            }
        }
        Ok(wanted)
    }
}

impl RowGroups for GatheredGroups {
    fn rows(&self) -> &GroupRows {
        &self.rows
    }

    fn results(&self, arranged: Arranged) -> Result<ArrayRef> {
        let groups =
            Groups::new(arranged, &self.result, &self.constants, self.descending, self.json);
        match self.is_distinct {
            true => (self.entry.finish)(&groups.distinct(&self.result)?),
            false => (self.entry.finish)(&groups),
        }
    }
}

impl GroupsAccumulator for GatheredGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let wanted = self.wanted(values, opt_filter)?;
        let values = &values[..self.entry.gathered];
        self.rows.add(values, group_indices, wanted.as_ref(), total_num_groups)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.rows.merge(values, group_indices, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let arranged = self.rows.take(emit_to)?;
        self.results(arranged)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.rows.take(emit_to)?.into_lists()
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let (count, wanted) = (values[0].len(), self.wanted(values, opt_filter)?);
        let mut rows = self.rows.none();
        let groups: Vec<usize> = (0..count).collect();
        rows.add(&values[..self.entry.gathered], &groups, wanted.as_ref(), count)?;
        rows.take(EmitTo::All)?.into_lists()
    }

    fn size(&self) -> usize {
        self.rows.bytes()
    }
}

impl GatheredEntry {
    /// The defaults of entries.
    pub(super) const NONE: Self = Self {
        name: "",
        aliases: &[],
        arguments: "",
        about: "",
        example: "",
        takes: &[],
        gathered: 1,
        required: &[0, 1],
        within_group: false,
        gives: |_| DataType::Null,
        instead: None,
        mark: None,
        of_none: None,
        finish: |groups| groups.figures(|_| Ok(None)),
    };
}
