//! String literals and parameters have no type of their own: they adopt that of their sibling values, as in PostgreSQL
//! (“UNION, CASE, and Related Constructs”, and functions of `anycompatible`).
//!
//! ```text
//! coalesce(d, '2024-01-01')      coalesce(d, DATE '2024-01-01')
//! array_append(a, $1)            $1 has the type of an element
//! d BETWEEN '2024-01-01' AND $1  both are dates
//! ```
//!
//! A literal that is not a value of the type is an error, as is `n = 'x'`. Next to texts all values stay texts.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_functions::marked_field;
use atoll_functions::temporal::{DateOrder, StatementClock, TemporalStyle};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, BinaryExpr, Cast, InList, Placeholder};
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, Projection, Union};

use super::decimals_beside_floats::{as_floats, make_float, make_floats, union_of_floats};
use super::literals::{decimal_of, list_of, text_of};
use super::narrow_numbers::narrow_alike;
use crate::arithmetic::{convert, convert_in};
use atoll_sql_common::pg_type::PgType;
use atoll_sql_common::user_type::enum_within;

/// Functions whose arguments all have one type.
const ALIKE: [&str; 9] = [
    "coalesce",
    "greatest",
    "least",
    "nullif",
    "ifnull",
    "nvl",
    "make_array",
    "list_value",
    "array_value",
];

/// How the arguments of a list function relate to one another.
enum Arguments {
    /// A list, followed by elements.
    ListFirst,
    /// A list, the number of an element, and the element.
    ListAndThird,
    /// An element, followed by a list.
    ListLast,
    Lists,
}

/// Whether arguments of the function with this name adopt the types of others.
pub(super) fn takes_alike(name: &str) -> bool {
    has_one_type(name) || of_lists(name).is_some()
}

/// Whether all arguments of the function with this name have one type.
pub(super) fn has_one_type(name: &str) -> bool {
    ALIKE.contains(&name)
}

fn of_lists(name: &str) -> Option<Arguments> {
    let short = name.strip_prefix("array_").or_else(|| name.strip_prefix("list_"))?;
    Some(match short {
        "append" | "push_back" | "position" | "positions" | "indexof" | "remove" | "remove_all"
        | "has" | "contains" | "replace" | "replace_all" => Arguments::ListFirst,
        "assigned" => Arguments::ListAndThird,
        "prepend" | "push_front" => Arguments::ListLast,
        "cat" | "concat" | "has_all" | "has_any" | "overlap" | "except" | "intersect" | "union" => {
            Arguments::Lists
        }
        _ => return None,
    })
}

/// Resolves the types of literals and parameters that have siblings in an expression.
///
/// # Errors
/// If a literal is not a value of its sibling's type.
pub(super) fn with_sibling_types(mut expr: Expr, schema: &DFSchema) -> Result<Expr> {
    match &mut expr {
        // A function called by an alias.
        Expr::Alias(alias) => {
            let call = std::mem::take(alias.expr.as_mut());
            *alias.expr = with_sibling_types(call, schema)?;
        }
        Expr::Case(case) => {
            let mut conditions = Vec::new();
            let mut results = Vec::new();
            for (condition, result) in &mut case.when_then_expr {
                conditions.push(condition.as_mut());
                results.push(result.as_mut());
            }
            results.extend(case.else_expr.as_deref_mut());
            settle(results, schema)?;
            if let Some(operand) = case.expr.as_deref_mut() {
                conditions.push(operand);
                settle(conditions, schema)?;
            }
        }
        Expr::ScalarFunction(call) => settle_arguments(call.func.name(), &mut call.args, schema)?,
        Expr::Between(Between { expr, low, high, .. }) => {
            settle(vec![expr.as_mut(), low.as_mut(), high.as_mut()], schema)?;
        }
        Expr::InList(InList { expr, list, .. }) => {
            settle([expr.as_mut()].into_iter().chain(list).collect(), schema)?;
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::IsDistinctFrom | Operator::IsNotDistinctFrom,
            right,
        }) => settle(vec![left.as_mut(), right.as_mut()], schema)?,
        _ => {}
    }
    Ok(expr)
}

/// Gives literals in a UNION the types of the columns above or below them. Next to numbers a text that is not a number
/// stays a text, as in DuckDB.
///
/// # Errors
/// If a literal is not a value of the column's type.
pub(super) fn union_with_sibling_types(mut union: Union) -> Result<Union> {
    let mut is_changed = false;
    for at in 0..union.schema.fields().len() {
        is_changed |= union_of_floats(&mut union.inputs, at)?;
        let Some(common) = common_of_inputs(&union.inputs, at) else { continue };
        for input in &mut union.inputs {
            if let Some(text) = literal_at(input, at)
                && let Some(typed) = literal_of_union(&text, &common)?
            {
                *input = Arc::new(with_column(input, at, typed)?);
                is_changed = true;
            }
        }
    }
    match is_changed {
        true => Union::try_new_with_loose_types(union.inputs),
        false => Ok(union),
    }
}

fn literal_of_union(text: &str, of: &DataType) -> Result<Option<Expr>> {
    match literal(text, of) {
        Err(_) if of.is_numeric() => Ok(None),
        typed => typed,
    }
}

/// Returns the type of the non-literal columns at a position, if there are any.
fn common_of_inputs(inputs: &[Arc<LogicalPlan>], at: usize) -> Option<DataType> {
    if !inputs.iter().any(|input| literal_at(input, at).is_some()) {
        return None;
    }
    let others = inputs.iter().filter(|input| literal_at(input, at).is_none());
    common(others.map(|input| Some(input.schema().field(at).data_type().clone())))
}

/// Returns the text of a column that is a string literal.
fn literal_at(input: &LogicalPlan, at: usize) -> Option<String> {
    let LogicalPlan::Projection(projection) = input else { return None };
    let mut expr = projection.expr.get(at)?;
    while let Expr::Alias(alias) = expr {
        expr = &alias.expr;
    }
    text_of(expr)
}

/// Replaces a column's value in a projection.
fn with_column(input: &LogicalPlan, at: usize, value: Expr) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = input else { return Ok(input.clone()) };
    let mut exprs = projection.expr.clone();
    let (relation, field) = projection.schema.qualified_field(at);
    if let Some(expr) = exprs.get_mut(at) {
        *expr = value.alias_qualified(relation.cloned(), field.name());
    }
    Projection::try_new(exprs, Arc::clone(&projection.input)).map(LogicalPlan::Projection)
}

fn settle_arguments(name: &str, args: &mut [Expr], schema: &DFSchema) -> Result<()> {
    if has_one_type(name) {
        return settle(args.iter_mut().collect(), schema);
    }
    match (of_lists(name), args) {
        (Some(Arguments::Lists), args) => settle(args.iter_mut().collect(), schema),
        (Some(Arguments::ListFirst), [list, items @ ..]) => {
            // `array_position(list, item, start)`
            let most = if name.ends_with("position") { 1 } else { items.len() };
            settle_items(list, items.iter_mut().take(most).collect(), schema)
        }
        (Some(Arguments::ListAndThird), [list, _, item]) => settle_items(list, vec![item], schema),
        (Some(Arguments::ListLast), [item, list]) => settle_items(list, vec![item], schema),
        _ => Ok(()),
    }
}

fn settle_items(list: &mut Expr, items: Vec<&mut Expr>, schema: &DFSchema) -> Result<()> {
    if is_unknown(list) {
        let items = items.iter().filter(|item| !is_unknown(item)).map(|item| &**item);
        return match common_type(items, schema) {
            Some(item) => take_type(list, &DataType::new_list(item, true)),
            None => Ok(()),
        };
    }
    let mut values = vec![list];
    values.extend(items);
    make_floats(values.iter_mut().map(|value| &mut **value), schema);
    if !values.iter().any(|value| is_unknown(value)) {
        return Ok(());
    }
    let (DataType::List(item) | DataType::LargeList(item)) = values[0].get_type(schema)? else {
        return Ok(());
    };
    let list = marked_field(values[0], schema);
    let mark = list.and_then(|list| PgType::marked_items(&list));
    let mark = mark.map(|item| item.metadata().clone());
    for unknown in values.into_iter().skip(1).filter(|item| is_unknown(item)) {
        take_type(unknown, item.data_type())?;
        take_mark(unknown, mark.as_ref());
    }
    Ok(())
}

/// Gives literals and parameters among these values the type of the others.
fn settle(mut values: Vec<&mut Expr>, schema: &DFSchema) -> Result<()> {
    narrow_alike(values.iter_mut().map(|value| &mut **value), schema);
    make_floats(values.iter_mut().map(|value| &mut **value), schema);
    if !values.iter().any(|value| is_unknown(value)) {
        return Ok(());
    }
    let others = values.iter().filter(|value| !is_unknown(value)).map(|value| &**value);
    let has_text = || values.iter().any(|value| text_of(value).is_some());
    let common = match common_type(others, schema) {
        Some(common) => common,
        None if has_text() && values.iter().all(|value| is_unknown(value)) => DataType::Utf8,
        None => return Ok(()),
    };
    let others = values.iter().filter(|value| !is_unknown(value)).map(|value| &**value);
    let mark = common_mark(others, schema);
    for value in values.into_iter().filter(|value| is_unknown(value)) {
        take_type(value, &common)?;
        take_mark(value, mark.as_ref());
    }
    Ok(())
}

/// Returns the metadata of the field of a value whose type Arrow lacks, such as UUID.
fn common_mark<'a>(
    values: impl Iterator<Item = &'a Expr>,
    schema: &DFSchema,
) -> Option<HashMap<String, String>> {
    let field = values.filter_map(|value| marked_field(value, schema));
    field.map(|field| field.metadata().clone()).find(|mark| !mark.is_empty())
}

/// Gives a parameter the mark of its siblings.
fn take_mark(value: &mut Expr, mark: Option<&HashMap<String, String>>) {
    if let Expr::Placeholder(Placeholder { field: Some(field), .. }) = value
        && let Some(mark) = mark
    {
        *field = Arc::new(field.as_ref().clone().with_metadata(mark.clone()));
    }
}

/// Gives a literal or parameter the type of the values that `others` may be.
pub(super) fn typed_beside(mut value: Expr, others: &Expr, schema: &DFSchema) -> Result<Expr> {
    let common = match others {
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, result)| result.as_ref());
            common_type(results.chain(case.else_expr.as_deref()), schema)
        }
        other => common_type([other].into_iter(), schema),
    };
    match common {
        Some(common) if is_unknown(&value) => take_type(&mut value, &common)?,
        Some(common) if common.is_floating() => {
            let floats = value.get_type(schema).ok().and_then(|of| as_floats(&of));
            floats.into_iter().for_each(|floats| make_float(&mut value, floats));
        }
        _ => {}
    }
    Ok(value)
}

/// Whether a planned value is a string literal or an untyped parameter.
pub(super) fn is_unknown(value: &Expr) -> bool {
    matches!(value, Expr::Placeholder(Placeholder { field: None, .. })) || text_of(value).is_some()
}

/// Returns the common type of values; None if one has no type, or if there is no common type.
fn common_type<'a>(values: impl Iterator<Item = &'a Expr>, schema: &DFSchema) -> Option<DataType> {
    common(values.map(|value| value.get_type(schema).ok()))
}

fn common(types: impl Iterator<Item = Option<DataType>>) -> Option<DataType> {
    let mut common = DataType::Null;
    for of in types {
        common = match (common, of?) {
            (DataType::Null, of) | (of, DataType::Null) => of,
            (common, of) if common == of => of,
            (float, of) | (of, float) if float.is_floating() && of.is_decimal() => {
                DataType::Float64
            }
            (common, of) => type_union_coercion(&common, &of)?,
        };
    }
    (common != DataType::Null).then_some(common)
}

/// Gives a literal or parameter a type.
fn take_type(unknown: &mut Expr, of: &DataType) -> Result<()> {
    if let Expr::Placeholder(Placeholder { field, .. }) = unknown {
        *field = Some(Arc::new(Field::new("", of.clone(), true)));
        return Ok(());
    }
    if let Some(text) = text_of(unknown)
        && let Some(typed) = literal(&text, of)?
    {
        *unknown = typed;
    }
    Ok(())
}

/// Returns a literal of a type; None if it stays a text.
fn literal(text: &str, of: &DataType) -> Result<Option<Expr>> {
    use DataType::{Binary, Boolean, Date32, Interval, List, Time64, Timestamp};
    let value = |of: &DataType| -> Result<ScalarValue> {
        let text = ScalarValue::from(text).to_array()?;
        ScalarValue::try_from_array(&convert(&text, of, false)?, 0)
    };
    // The order of a date's numbers is the session's, which is not known here.
    let check = |of: &DataType| {
        let text = ScalarValue::from(text).to_array()?;
        let read = |order| {
            let style = TemporalStyle { order, ..TemporalStyle::default() };
            let clock = StatementClock { style, ..StatementClock::default() };
            convert_in(&text, of, false, clock).map(drop)
        };
        let others = || read(DateOrder::Dmy).or_else(|_| read(DateOrder::Ymd));
        read(DateOrder::Mdy).or_else(|error| others().map_err(|_| error))
    };
    let cast = || {
        let text = Expr::Literal(ScalarValue::from(text), None);
        Expr::Cast(Cast::new(Box::new(text), of.clone()))
    };
    Ok(Some(match of {
        _ if enum_within(of).is_some() => cast(),
        _ if of.is_decimal() => match decimal_of(text) {
            Some(decimal) => decimal,
            None => Expr::Literal(value(of)?, None),
        },
        Boolean | Binary => Expr::Literal(value(of)?, None),
        _ if of.is_integer() || of.is_floating() => Expr::Literal(value(of)?, None),
        List(_) => match list_of(text, of) {
            Some(list) => list,
            None => Expr::Literal(value(of)?, None),
        },
        // The meaning of a text depends on the session's time zone and styles, and on the current day.
        Date32 | Timestamp(..) | Time64(_) | Interval(_) => {
            check(of)?;
            cast()
        }
        _ => return Ok(None),
    }))
}
