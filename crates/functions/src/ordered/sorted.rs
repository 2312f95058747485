//! `array_agg(x ORDER BY …)` and `string_agg(x, ',' ORDER BY …)` over many groups: the rows of all groups are kept, and
//! each group is sorted once, when its result is computed.
//!
//! DataFusion 55.2 has an accumulator for each group, which keeps every value and its keys as scalars.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, LargeStringBuilder, ListArray, UInt32Array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{SortOptions, and, cast, is_not_null, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalSortExpr;

use crate::gathered::{Arranged, GroupRows, RowGroups, kept};
use crate::temporal::measured;

/// Copies of a row: in its batch, arranged by group, as a sort key, and in the result.
const COPIES: usize = 2;

/// What becomes of the values of a group.
#[derive(Clone, Debug)]
pub(super) enum Joined {
    List,
    /// A text, with this between two values.
    Text(String),
}

/// The rows of groups, and the order that the call asks for.
#[derive(Debug)]
pub(super) struct SortedGroups {
    rows: GroupRows,
    order: Vec<SortOptions>,
    /// The arguments of the call, of which the first is kept; the keys of the order follow them.
    arguments: usize,
    skips_nulls: bool,
    joined: Joined,
    result: DataType,
}

/// Whether an aggregate keeps rows in this way.
pub(super) fn is_sorted(args: &AccumulatorArgs) -> bool {
    !args.is_distinct && !args.order_bys.is_empty()
}

/// The states of such an aggregate: lists of the values and of each key. `None` for other calls.
pub(super) fn state_fields(args: &StateFieldsArgs) -> Option<Vec<FieldRef>> {
    if args.is_distinct || args.ordering_fields.is_empty() {
        return None;
    }
    let columns = args.input_fields.iter().take(1).chain(args.ordering_fields).enumerate();
    let list = |(at, field): (usize, &FieldRef)| {
        let item = Field::new_list_field(kept(field.data_type()), true);
        Arc::new(Field::new_list(format!("{}[{at}]", args.name), item, true))
    };
    Some(columns.map(list).collect())
}

impl SortedGroups {
    pub(super) fn new(args: &AccumulatorArgs, joined: Joined) -> Result<Self> {
        let key_type = |key: &PhysicalSortExpr| Ok(kept(&key.expr.data_type(args.schema)?));
        let mut types = vec![kept(args.expr_fields[0].data_type())];
        types.extend(args.order_bys.iter().map(key_type).collect::<Result<Vec<_>>>()?);
        // DataFusion reverses the order of a call where rows come in the reverse order.
        let options = |key: &PhysicalSortExpr| match args.is_reversed {
            true => !key.options,
            false => key.options,
        };
        Ok(Self {
            rows: GroupRows::new(types),
            order: args.order_bys.iter().map(options).collect(),
            arguments: args.exprs.len(),
            skips_nulls: args.ignore_nulls || matches!(joined, Joined::Text(_)),
            joined,
            result: args.return_field.data_type().clone(),
        })
    }

    /// The columns that are kept, and which of their rows.
    fn wanted(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<(Vec<ArrayRef>, Option<BooleanArray>)> {
        let mut wanted = filter.cloned();
        if self.skips_nulls && values[0].logical_null_count() > 0 {
            let valid = is_not_null(&values[0])?;
            wanted = Some(wanted.map_or(Ok(valid.clone()), |wanted| and(&wanted, &valid))?);
        }
        let columns = values.iter().take(1).chain(&values[self.arguments..]);
        Ok((columns.cloned().collect(), wanted))
    }

    /// The rows of all groups, those of each in its order; rows with equal keys stay as they came.
    fn sorted(&self, keys: &[ArrayRef], offsets: &[i32]) -> Result<UInt32Array> {
        let keys = keys.iter().map(measured).collect::<std::result::Result<Vec<_>, _>>()?;
        let field = |(key, options): (&ArrayRef, &SortOptions)| {
            SortField::new_with_options(key.data_type().clone(), *options)
        };
        let fields = keys.iter().zip(&self.order).map(field).collect();
        let keys = RowConverter::new(fields)?.convert_columns(&keys)?;
        let mut rows: Vec<u32> = (0..keys.num_rows() as u32).collect();
        for pair in offsets.windows(2) {
            let group = &mut rows[pair[0] as usize..pair[1] as usize];
            group.sort_by(|a, b| keys.row(*a as usize).cmp(&keys.row(*b as usize)));
        }
        Ok(rows.into())
    }
}

impl RowGroups for SortedGroups {
    fn rows(&self) -> &GroupRows {
        &self.rows
    }

    fn results(&self, arranged: Arranged) -> Result<ArrayRef> {
        let Arranged { columns, offsets } = arranged;
        let order = self.sorted(&columns[1..], &offsets)?;
        let values = take(&columns[0], &order, None)?;
        let results = match &self.joined {
            Joined::List => lists(values, offsets)?,
            Joined::Text(between) => texts(&values, &offsets, between),
        };
        Ok(cast(&results, &self.result)?)
    }
}

/// A list of its values for each group; NULL for a group without rows.
fn lists(values: ArrayRef, offsets: Vec<i32>) -> Result<ArrayRef> {
    let has_rows: NullBuffer = offsets.windows(2).map(|pair| pair[0] < pair[1]).collect();
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(ListArray::try_new(field, offsets, values, Some(has_rows))?))
}

/// The values of each group as one text; NULL for a group without rows.
fn texts(values: &ArrayRef, offsets: &[i32], between: &str) -> ArrayRef {
    let values = values.as_string::<i64>();
    let bytes = values.value_data().len() + between.len() * values.len();
    let mut texts = LargeStringBuilder::with_capacity(offsets.len(), bytes);
    let mut text = String::new();
    for pair in offsets.windows(2) {
        text.clear();
        for row in pair[0]..pair[1] {
            if row > pair[0] {
                text.push_str(between);
            }
            text.push_str(values.value(row as usize));
        }
        texts.append_option((pair[0] < pair[1]).then_some(&text));
    }
    Arc::new(texts.finish())
}

impl GroupsAccumulator for SortedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let (columns, wanted) = self.wanted(values, opt_filter)?;
        self.rows.add(&columns, group_indices, wanted.as_ref(), total_num_groups)
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
        let (mut rows, count) = (self.rows.none(), values[0].len());
        let groups: Vec<usize> = (0..count).collect();
        let (columns, wanted) = self.wanted(values, opt_filter)?;
        rows.add(&columns, &groups, wanted.as_ref(), count)?;
        rows.take(EmitTo::All)?.into_lists()
    }

    fn size(&self) -> usize {
        COPIES * self.rows.bytes()
    }
}
