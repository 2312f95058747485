//! Numeric results: entropy, median absolute deviation; and the histogram.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, MapArray, StructArray, UInt32Array, UInt64Array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Float64Type};
use datafusion::common::{Result, internal_err};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, lit, when};

use super::function::GatheredEntry;
use super::groups::Groups;
use super::picks::gathered;
use crate::scalar::{
    Arguments, GroupedForm, JSON_MARK, JSONB_MARK, Takes, grouped_lists, grouped_objects,
};

const ANY: &[Arguments] = &[Arguments::Are(&[Takes::Any])];
const PAIR: &[Arguments] = &[Arguments::Are(&[Takes::Plain, Takes::Any])];
const FLAG: &[Arguments] = &[Arguments::Are(&[Takes::Flag])];
const DOUBLE: &[Arguments] = &[Arguments::Are(&[Takes::Double])];

/// The logarithm of base 2 of how many values are as likely.
fn entropy(groups: &Groups<'_>) -> Result<ArrayRef> {
    groups.figures(|range| {
        let all = range.len() as f64;
        let share = |(_, count): (usize, usize)| {
            let share = count as f64 / all;
            -share * share.log2()
        };
        Ok(Some(groups.counted(range)?.into_iter().map(share).sum::<f64>().max(0.0)))
    })
}

/// The median of the distances from the median.
fn mad(groups: &Groups<'_>) -> Result<ArrayRef> {
    let values = groups.columns[0].as_primitive::<Float64Type>();
    groups.figures(|range| {
        if range.is_empty() {
            return Ok(None);
        }
        let middle = median(values.values()[range.clone()].to_vec());
        Ok(Some(median(
            values.values()[range].iter().map(|value| (value - middle).abs()).collect(),
        )))
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        0 => f64::midpoint(values[half - 1], values[half]),
        _ => values[half],
    }
}

/// Counts each value.
fn histogram(groups: &Groups<'_>) -> Result<ArrayRef> {
    let DataType::Map(entries, _) = groups.result else { return internal_err!("not a map") };
    let (mut rows, mut counts, mut lengths, mut valid) = (vec![], vec![], vec![], vec![]);
    for range in groups.ranges() {
        let counted = groups.counted(range)?;
        valid.push(!counted.is_empty());
        lengths.push(counted.len());
        for (row, count) in counted {
            rows.push(row as u32);
            counts.push(count as u64);
        }
    }
    let DataType::Struct(fields) = entries.data_type() else { return internal_err!("not entries") };
    let keys = take(&groups.columns[0], &UInt32Array::from(rows), None)?;
    let keys = cast(&keys, fields[0].data_type())?;
    let values: ArrayRef = Arc::new(UInt64Array::from(counts));
    let pairs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    let (offsets, valid) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
    Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, Some(valid), false)?))
}

fn histogram_type(given: &[DataType]) -> DataType {
    let key = given.first().cloned().unwrap_or(DataType::Null);
    let fields = Fields::from(vec![
        Field::new("key", key, false),
        Field::new("value", DataType::UInt64, true),
    ]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields), false)), false)
}

/// Counts true conditions.
fn count_if(groups: &Groups<'_>) -> Result<ArrayRef> {
    let flags = groups.columns[0].as_boolean();
    groups.figures(|range| Ok(Some(range.filter(|row| flags.value(*row)).count() as f64)))
}

/// The same as a plain count, which keeps no rows.
fn counted_if(mut function: AggregateFunction) -> Result<Expr> {
    let args = std::mem::take(&mut function.params.args);
    for condition in args {
        function.params.args.push(when(condition, lit(1)).end()?);
    }
    function.func = count_udaf();
    Ok(Expr::AggregateFunction(function))
}

fn json_lists(groups: &Groups<'_>) -> Result<ArrayRef> {
    grouped_lists(&groups.columns[0], groups.offsets(), groups.json)
}

fn json_objects(groups: &Groups<'_>) -> Result<ArrayRef> {
    grouped_objects(&groups.columns[0], &groups.columns[1], groups.offsets(), groups.json)
}

fn wide_json_lists(groups: &Groups<'_>) -> Result<ArrayRef> {
    let form = GroupedForm { is_wide: true, ..groups.json };
    grouped_lists(&groups.columns[0], groups.offsets(), form)
}

fn wide_json_objects(groups: &Groups<'_>) -> Result<ArrayRef> {
    let form = GroupedForm { is_wide: true, ..groups.json };
    grouped_objects(&groups.columns[0], &groups.columns[1], groups.offsets(), form)
}

pub(super) static ENTRIES: &[GatheredEntry] = &[
    gathered!("count_if" ["countif"], "condition", FLAG, 1, |_| DataType::Int64,
        "How often a condition is true.", "count_if(price > 10)", count_if, instead: Some(counted_if),
        of_none: Some(0.0)),
    gathered!("entropy" [], "value", ANY, 1, |_| DataType::Float64,
        "The entropy of the values, in bits.", "entropy(city)", entropy,
        of_none: Some(0.0)),
    gathered!("mad" [], "number", DOUBLE, 1, |_| DataType::Float64,
        "The median of the distances from the median.", "mad(price)", mad),
    gathered!("json_agg" [], "value", ANY, 1, |_| DataType::Utf8,
        "A JSON list of the values, NULL too, with blanks and lines as in PostgreSQL.", "json_agg(name)",
        wide_json_lists, required: &[], mark: Some(JSON_MARK.1)),
    gathered!("json_group_array" [], "value", ANY, 1, |_| DataType::Utf8,
        "A JSON list of the values, NULL too, without blanks.", "json_group_array(name)", json_lists,
        required: &[], mark: Some(JSON_MARK.1)),
    gathered!("jsonb_agg" [], "value", ANY, 1, |_| DataType::Utf8,
        "A JSONB list of the values, NULL too.", "jsonb_agg(name)", json_lists, required: &[], mark: Some(JSONB_MARK)),
    gathered!("json_object_agg" [], "key, value", PAIR, 2, |_| DataType::Utf8,
        "A JSON object of the keys, which become texts, and values, with blanks as in PostgreSQL.",
        "json_object_agg(name, price)", wide_json_objects, required: &[], mark: Some(JSON_MARK.1)),
    gathered!("json_group_object" [], "key, value", PAIR, 2, |_| DataType::Utf8,
        "A JSON object of the keys, which become texts, and values, without blanks.",
        "json_group_object(name, price)", json_objects, required: &[], mark: Some(JSON_MARK.1)),
    gathered!("jsonb_object_agg" [], "key, value", PAIR, 2, |_| DataType::Utf8,
        "A JSONB object of the keys, which become texts, and values.", "jsonb_object_agg(name, price)", json_objects, required: &[],
        mark: Some(JSONB_MARK)),
    gathered!("histogram" [], "value", ANY, 1, histogram_type,
        "How often each value is there, as a map.", "histogram(city)", histogram),
];
