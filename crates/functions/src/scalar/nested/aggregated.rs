//! Aggregates over list elements: `list_sum`, `list_aggregate(list, 'median')`.
//!
//! Each list is a group of the aggregate.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::BooleanArray;
use datafusion::arrow::array::{ArrayRef, new_null_array};
use datafusion::arrow::compute::{not, nullif};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::utils::{list_values, list_values_row_number};
use datafusion::common::{Result, ScalarValue, plan_datafusion_err, plan_err};
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{AggregateUDF, EmitTo};
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::{Column, lit};
use datafusion::physical_expr::{PhysicalExpr, expressions::cast};

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes};
use crate::scalar::text::texts::entry;

/// All aggregates by name and alias.
static AGGREGATES: LazyLock<HashMap<String, Arc<AggregateUDF>>> = LazyLock::new(|| {
    let mut all = HashMap::new();
    for function in all_default_aggregate_functions().into_iter().chain(crate::aggregates()) {
        for alias in function.aliases() {
            all.insert(alias.clone(), Arc::clone(&function));
        }
        all.insert(function.name().to_owned(), function);
    }
    for (name, aliases) in crate::scalar::alias::AGGREGATES {
        if let Some(function) = all.get(*name).cloned() {
            all.extend(aliases.iter().map(|&alias| (alias.to_owned(), Arc::clone(&function))));
        }
    }
    all
});

fn aggregate(name: &str) -> Result<&'static Arc<AggregateUDF>> {
    let found = AGGREGATES.get(&name.to_ascii_lowercase());
    found.ok_or_else(|| plan_datafusion_err!("aggregate function '{name}' does not exist"))
}

fn item(list: &DataType) -> Result<DataType> {
    match list {
        DataType::List(item) => Ok(item.data_type().clone()),
        _ => plan_err!("expected a list"),
    }
}

fn fields(types: impl IntoIterator<Item = DataType>) -> Vec<FieldRef> {
    types.into_iter().map(|of| Arc::new(Field::new("item", of, true))).collect()
}

/// Returns an aggregate's result type over these elements.
fn result_type(name: &str, types: Vec<DataType>) -> Result<DataType> {
    let function = aggregate(name)?;
    let coerced = fields_with_udf(&fields(types), function.as_ref())?;
    Ok(function.return_field(&coerced)?.data_type().clone())
}

/// Aggregates each list; `more` are additional arguments.
fn aggregated(call: &Call, name: &str, more: &[ScalarValue]) -> Result<ArrayRef> {
    let function = aggregate(name)?;
    let lists = &call.arrays[0];
    let values = list_values(lists)?;
    let mut types = vec![values.data_type().clone()];
    types.extend(more.iter().map(ScalarValue::data_type));
    let coerced = fields_with_udf(&fields(types), function.as_ref())?;
    let schema = Schema::new(vec![Field::new("item", values.data_type().clone(), true)]);
    let mut args: Vec<Arc<dyn PhysicalExpr>> = vec![Arc::new(Column::new("item", 0))];
    args.extend(more.iter().map(|value| lit(value.clone())));
    let args: Result<Vec<_>> = args
        .into_iter()
        .zip(&coerced)
        .map(|(arg, field)| cast(arg, &schema, field.data_type().clone()))
        .collect();
    let args = args?;
    let batch = datafusion::arrow::array::RecordBatch::try_new(
        Arc::new(schema.clone()),
        vec![Arc::clone(&values)],
    )?;
    let inputs: Result<Vec<ArrayRef>> =
        args.iter().map(|arg| arg.evaluate(&batch)?.into_array(values.len())).collect();
    let inputs = inputs?;
    let expr = AggregateExprBuilder::new(Arc::clone(function), args)
        .schema(Arc::new(schema))
        .alias(name)
        .build()?;
    let results = match expr.groups_accumulator_supported() {
        true => {
            let mut groups = expr.create_groups_accumulator()?;
            let rows = list_values_row_number(lists)?;
            let rows = datafusion::arrow::compute::cast(&rows, &DataType::UInt64)?;
            let rows = datafusion::arrow::array::AsArray::as_primitive::<
                datafusion::arrow::datatypes::UInt64Type,
            >(&rows);
            let rows: Vec<usize> = rows.values().iter().map(|&row| row as usize).collect();
            // With a filter the aggregate tracks which groups have values: an empty list has none.
            let all = BooleanArray::from(vec![true; rows.len()]);
            groups.update_batch(&inputs, &rows, Some(&all), call.rows)?;
            groups.evaluate(EmitTo::All)?
        }
        false => each(call, &expr, &inputs)?,
    };
    let there: BooleanArray = (0..call.rows).map(|row| Some(!call.is_null(row))).collect();
    let results = nullif(&results, &not(&there)?)?;
    Ok(datafusion::arrow::compute::cast(&results, &call.result)?)
}

/// Aggregates list by list, if the aggregate does not support groups.
fn each(
    call: &Call,
    expr: &datafusion::physical_expr::aggregate::AggregateFunctionExpr,
    inputs: &[ArrayRef],
) -> Result<ArrayRef> {
    let lists = call.list(0);
    let first = lists.value_offsets()[0];
    let mut results = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let from = (lists.value_offsets()[row] - first) as usize;
        let length = lists.value_length(row) as usize;
        let slices: Vec<ArrayRef> = inputs.iter().map(|input| input.slice(from, length)).collect();
        let mut accumulator = expr.create_accumulator()?;
        if length > 0 {
            accumulator.update_batch(&slices)?;
        }
        results.push(accumulator.evaluate()?);
    }
    match results.is_empty() {
        true => Ok(new_null_array(&call.result, 0)),
        false => ScalarValue::iter_to_array(results),
    }
}

fn named_by_argument(call: &Call) -> Result<ArrayRef> {
    let Some(row) = (0..call.rows).find(|&row| !call.is_null(row)) else {
        return Ok(new_null_array(&call.result, call.rows));
    };
    let more: Result<Vec<ScalarValue>> =
        call.arrays[2..].iter().map(|array| ScalarValue::try_from_array(array, row)).collect();
    aggregated(call, call.text(1).value(row), &more?)
}

fn type_by_argument(given: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let name = constants.get(1).copied().flatten().and_then(|name| name.try_as_str().flatten());
    let Some(name) = name else {
        return plan_err!("list_aggregate: the name of the aggregate must be a constant");
    };
    let types = std::iter::once(item(&given[0])?).chain(given[2..].iter().cloned());
    result_type(name, types.collect())
}

macro_rules! list_aggregates {
    ($($name:literal $aggregate:literal;)*) => {
        const NAMED: &[Entry] = &[$(Entry {
            name: $name,
            aliases: &[],
            arguments: "list",
            about: concat!("The aggregate ", $aggregate, " of the elements."),
            example: concat!($name, "([1, 2, 3])"),
            takes: &[Arguments::Are(&[Takes::List])],
            gives: |given, _| result_type($aggregate, vec![item(&given[0])?]),
            volatile: false,
            run: |call| aggregated(call, $aggregate, &[]),
        }),*];
    };
}

list_aggregates! {
    "list_sum" "sum";
    "list_avg" "avg";
    "list_min" "min";
    "list_max" "max";
    "list_count" "count";
    "list_product" "product";
    "list_median" "median";
    "list_mode" "mode";
    "list_any_value" "any_value";
    "list_stddev_samp" "stddev_samp";
    "list_stddev_pop" "stddev_pop";
    "list_var_samp" "var_samp";
    "list_var_pop" "var_pop";
    "list_bool_and" "bool_and";
    "list_bool_or" "bool_or";
    "list_bit_and" "bit_and";
    "list_bit_or" "bit_or";
    "list_bit_xor" "bit_xor";
    "list_approx_count_distinct" "approx_distinct";
    "list_histogram" "histogram";
    "list_entropy" "entropy";
    "list_kurtosis" "kurtosis";
    "list_skewness" "skewness";
    "list_mad" "mad";
    "list_sem" "sem";
    "list_first" "first_value";
    "list_last" "last_value";
}

const BY_NAME: &[Entry] = &[
    entry!("list_aggregate" ["list_aggr", "array_aggregate", "array_aggr", "aggregate"], "list, name[, arguments…]",
        &[Arguments::More(&[Takes::List, Takes::Text], Takes::Any)], type_by_argument,
        "An aggregate of the elements, by its name.", "list_aggregate([1, 2, 3], 'median') = 2", named_by_argument),
    entry!("list_string_agg" [], "list", &[Arguments::Are(&[Takes::Texts])], crate::scalar::entry::text,
        "The elements as a text, with commas between them.", "list_string_agg(['a', 'b']) = 'a,b'",
        |call| aggregated(call, "string_agg", &[ScalarValue::from(",")])),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[NAMED, BY_NAME];
