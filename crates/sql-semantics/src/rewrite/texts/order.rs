//! Compares, sorts and groups values whose texts have another order, or of which equal ones may have several texts.
//!
//! ```text
//! b < '[1]'                    jsonb_order(b) < jsonb_order('[1]')
//! ORDER BY b                   ORDER BY jsonb_order(b)
//! SELECT b … GROUP BY b        SELECT any_value(b) … GROUP BY jsonb_order(b)
//! min(a)                       any_value(a ORDER BY inet_order(a))
//! greatest(a, b)               ordered_greatest(a, b)
//! b = ANY (list)               jsonb_order(b) = ANY (ordered_items(list))
//! a JOIN b USING (j)           a JOIN b ON jsonb_order(a.j) = jsonb_order(b.j); likewise INTERSECT and EXCEPT
//! a::TEXT                      inet_text(a)
//! ```

use std::fmt;
use std::sync::Arc;

use atoll_functions::{OrderedAnyValue, function_named, marked_field, sql_name};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, JoinConstraint, Result, ScalarValue, not_impl_err, plan_err};
use datafusion::logical_expr::expr::{
    AggregateFunction, Cast, InSubquery, ScalarFunction, Sort as SortKey, WindowFunction,
};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, BinaryExpr, Distinct, Expr, ExprSchemable, Join, LogicalPlan,
    LogicalPlanBuilder, Operator, Sort, Subquery, WindowFrame, WindowFrameBound, WindowFrameUnits,
    lit, when,
};
use datafusion::optimizer::AnalyzerRule;

use super::extremes::extreme;
use super::groups::{first_of_each, grouped};
use super::items::ordered_items;
use super::{has_forms, is_quantified};
use crate::marks::with_type;
use atoll_sql_common::error::stated_err;
use atoll_sql_common::logical::{compares, map_named};
use atoll_sql_common::pg_type::Checked;

/// Compares values by their order; see the module.
#[derive(Debug)]
pub struct OrderedTexts;

impl AnalyzerRule for OrderedTexts {
    fn name(&self) -> &str {
        "ordered_texts"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_forms(&plan)? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let is_values = matches!(plan, LogicalPlan::Values(_));
            map_named(plan, |expr| match expr {
                // To the type of the column, not to text.
                Expr::Cast(Cast { expr, field }) if is_values && field.data_type().is_string() => {
                    let value = expr.transform_up(|expr| by_order(expr, &schema))?;
                    let cast = |value| Expr::Cast(Cast::new_from_field(Box::new(value), field));
                    Ok(value.update_data(cast))
                }
                expr => expr.transform_up(|expr| by_order(expr, &schema)),
            })?
            .transform_data(|node| of_node(node, &schema))
        })
        .data()
    }
}

/// A type of values, or of the items of lists, that has an order of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    of: Checked,
    is_list: bool,
}

impl Form {
    /// Returns the name in `pg_type`.
    pub(super) fn type_name(self) -> String {
        format!("{}{}", if self.is_list { "_" } else { "" }, self.of.to_string().to_lowercase())
    }

    fn is_comparable(self, other: Self) -> bool {
        self.is_list == other.is_list && self.of.order() == other.of.order()
    }

    fn item(self) -> Self {
        Self { is_list: false, ..self }
    }

    fn list(self) -> Self {
        Self { is_list: true, ..self }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.of, if self.is_list { "[]" } else { "" })
    }
}

/// The form of an expression's values, if they have an order of their own.
pub(super) fn form(expr: &Expr, schema: &DFSchema) -> Option<Form> {
    let field = marked_field(expr, schema)?;
    let is_list = match field.data_type() {
        DataType::List(item) if item.data_type().is_string() => true,
        of if of.is_nested() => return None,
        _ => false,
    };
    let of = Checked::of_field(&field).filter(|of| of.order().is_some())?;
    Some(Form { of, is_list })
}

/// The same, if equal values may have several texts.
pub(super) fn loose_form(expr: &Expr, schema: &DFSchema) -> Option<Form> {
    form(expr, schema).filter(|form| form.of.has_many_texts())
}

/// The bytes that compare as the value does.
pub(super) fn ordered(value: Expr, form: Form) -> Expr {
    match form.of.order().and_then(function_named) {
        Some(order) if form.is_list => ordered_items(value, order),
        Some(order) => order.call(vec![value]),
        None => value,
    }
}

fn by_order(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(binary) if compares(binary.op) => compared(binary, schema)?,
        Expr::BinaryExpr(binary) if binary.op == Operator::StringConcat => {
            let BinaryExpr { left, op, right } = binary;
            let (left, right) = (cast_to_text(*left, schema), cast_to_text(*right, schema));
            let changed = left.transformed || right.transformed;
            let (left, right) = (Box::new(left.data), Box::new(right.data));
            Transformed::new_transformed(Expr::BinaryExpr(BinaryExpr { left, op, right }), changed)
        }
        Expr::Between(mut between) => match form(&between.expr, schema) {
            Some(form) => {
                for side in [&mut between.expr, &mut between.low, &mut between.high] {
                    **side = ordered(std::mem::take(side.as_mut()), form);
                }
                Transformed::yes(Expr::Between(between))
            }
            None => Transformed::no(Expr::Between(between)),
        },
        Expr::InList(mut list) => match loose_form(&list.expr, schema) {
            Some(form) => {
                *list.expr = ordered(std::mem::take(list.expr.as_mut()), form);
                list.list = list.list.into_iter().map(|item| ordered(item, form)).collect();
                Transformed::yes(Expr::InList(list))
            }
            None => Transformed::no(Expr::InList(list)),
        },
        Expr::InSubquery(mut within) => {
            let is_loose = |form: Form| form.of.has_many_texts();
            let InSubquery { expr, subquery, .. } = &mut within;
            let changed = among_rows(expr, subquery, schema, is_loose)?;
            Transformed::new_transformed(Expr::InSubquery(within), changed)
        }
        Expr::SetComparison(mut set) => {
            let is_order = !matches!(set.op, Operator::Eq | Operator::NotEq);
            let is_needed = |form: Form| is_order || form.of.has_many_texts();
            let changed = among_rows(&mut set.expr, &mut set.subquery, schema, is_needed)?;
            Transformed::new_transformed(Expr::SetComparison(set), changed)
        }
        Expr::Case(mut case) => match case.expr.as_deref().and_then(|of| loose_form(of, schema)) {
            Some(form) => {
                let conditions = case.when_then_expr.iter_mut().map(|(condition, _)| condition);
                for side in case.expr.iter_mut().chain(conditions) {
                    **side = ordered(std::mem::take(side.as_mut()), form);
                }
                Transformed::yes(Expr::Case(case))
            }
            None => Transformed::no(Expr::Case(case)),
        },
        Expr::Cast(cast) if cast.field.data_type().is_string() => {
            let text = cast_to_text(*cast.expr, schema);
            match text.transformed {
                true => text,
                false => Transformed::no(Expr::Cast(Cast::new_from_field(
                    Box::new(text.data),
                    cast.field,
                ))),
            }
        }
        Expr::Cast(cast) => {
            check_cast(&cast, schema)?;
            Transformed::no(Expr::Cast(cast))
        }
        Expr::ScalarFunction(call) => called(call, schema)?,
        Expr::AggregateFunction(function) => aggregated(function, schema),
        Expr::WindowFunction(function) => over_window(*function, schema)?,
        other => Transformed::no(other),
    })
}

/// Returns the text of a value whose type has another one than that which is stored.
fn cast_to_text(value: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let form = form(&value, schema).filter(|form| !form.is_list);
    match form.and_then(|form| form.of.to_text()).and_then(function_named) {
        Some(to_text) => Transformed::yes(to_text.call(vec![value])),
        None => Transformed::no(value),
    }
}

/// Refuses casts of addresses, times and ranges that would read their texts.
fn check_cast(cast: &Cast, schema: &DFSchema) -> Result<()> {
    let to = cast.field.data_type();
    let is_refused = match form(&cast.expr, schema) {
        Some(Form { of: Checked::Network(_) | Checked::Range(_), is_list }) => {
            is_list != to.is_nested() || !is_list
        }
        Some(Form { of: Checked::Timetz, is_list: false }) => !matches!(to, DataType::Time64(_)),
        _ => false,
    };
    match form(&cast.expr, schema) {
        Some(from) if is_refused => {
            stated_err!(CANNOT_COERCE, "cannot cast type {from} to {}", sql_name(to))
        }
        _ => Ok(()),
    }
}

fn compared(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let BinaryExpr { left, op, right } = binary;
    let is_zoned = |side: &Expr| form(side, schema).is_some_and(|it| it.of == Checked::Timetz);
    let is_plain = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Time64(_)));
    if is_zoned(&left) && is_plain(&right) || is_plain(&left) && is_zoned(&right) {
        return not_impl_err!("TIMETZ is not compared with TIME; cast the TIME to TIMETZ");
    }
    let found = match (form(&left, schema), form(&right, schema)) {
        (Some(left), Some(right)) if left.is_comparable(right) => {
            Some((left, left == right && !left.of.has_many_texts()))
        }
        (Some(form), None) if !form.is_list && becomes(&right) => {
            Some((form, !has_many_texts(form, &right)))
        }
        (None, Some(form)) if !form.is_list && becomes(&left) => {
            Some((form, !has_many_texts(form, &left)))
        }
        _ => None,
    };
    let is_order = !matches!(
        op,
        Operator::Eq | Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
    );
    Ok(match found {
        Some((form, has_one_text)) if is_order || !has_one_text => {
            let (left, right) = (ordered(*left, form), ordered(*right, form));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    })
}

/// Functions that compare their arguments.
fn called(mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let found = call.args.iter().find_map(|argument| form(argument, schema));
    let Some(form) = found else { return Ok(Transformed::no(Expr::ScalarFunction(call))) };
    let name = call.func.name();
    let is_loose = form.of.has_many_texts();
    let forms = match (name, &call.args[..]) {
        (name, [_, _]) if is_quantified(name) => {
            let is_equality = name.starts_with("equals") || name.starts_with("differs_from");
            (is_loose || !is_equality).then_some([form.item(), form.list()])
        }
        ("array_has" | "array_position" | "array_positions", [_, _]) => {
            is_loose.then_some([form.list(), form.item()])
        }
        ("array_has_all" | "array_has_any", [_, _]) => is_loose.then_some([form.list(); 2]),
        ("nullif", [_, _]) if is_loose => return Ok(Transformed::yes(null_if(call.args, form)?)),
        ("greatest" | "least", [_, ..]) if !form.is_list => {
            let order = form.of.order().and_then(function_named);
            return Ok(match order {
                Some(order) => Transformed::yes(extreme(call.args, order, name == "greatest")),
                None => Transformed::no(Expr::ScalarFunction(call)),
            });
        }
        (name, _) if is_loose && changes_list(name) => {
            return not_impl_err!("{name} of {form} is not supported; use unnest");
        }
        _ => None,
    };
    let Some(forms) = forms else { return Ok(Transformed::no(Expr::ScalarFunction(call))) };
    for (argument, form) in call.args.iter_mut().zip(forms) {
        *argument = ordered(std::mem::take(argument), form);
    }
    Ok(Transformed::yes(Expr::ScalarFunction(call)))
}

/// Whether a function compares the items of a list, and returns items.
fn changes_list(name: &str) -> bool {
    [
        "array_distinct",
        "array_except",
        "array_intersect",
        "array_remove",
        "array_replace",
        "array_union",
    ]
    .iter()
    .any(|start| name.starts_with(start))
}

/// `nullif(a, b)`.
fn null_if(arguments: Vec<Expr>, form: Form) -> Result<Expr> {
    let sides: Vec<Expr> = arguments.iter().map(|side| ordered(side.clone(), form)).collect();
    let [left, right] = &sides[..] else {
        return plan_err!("nullif takes two values");
    };
    let value = arguments.into_iter().next().unwrap_or_default();
    let kept = when(left.clone().eq(right.clone()), lit(ScalarValue::Null)).otherwise(value)?;
    Ok(with_type(kept, &form.type_name()))
}

/// Whether a value becomes one of the type that it is compared with.
fn becomes(value: &Expr) -> bool {
    match value {
        Expr::Literal(..) | Expr::Placeholder(_) => true,
        Expr::Cast(cast) => becomes(&cast.expr),
        _ => false,
    }
}

/// Whether other texts than a literal's may have its value: only numbers have several.
fn has_many_texts(form: Form, literal: &Expr) -> bool {
    let text = match literal {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    };
    let has_number = || text.is_none_or(|text| text.bytes().any(|byte| byte.is_ascii_digit()));
    form.of.has_many_texts() && has_number()
}

/// Compares a value with the only column of a subquery by their order, if that is needed; returns whether it is.
fn among_rows(
    value: &mut Expr,
    subquery: &mut Subquery,
    schema: &DFSchema,
    is_needed: impl Fn(Form) -> bool,
) -> Result<bool> {
    let rows = subquery.subquery.as_ref();
    let [column] = &rows.schema().columns()[..] else { return Ok(false) };
    let column = Expr::Column(column.clone());
    let Some(of_column) = form(&column, rows.schema()) else { return Ok(false) };
    let is_comparable = match form(value, schema) {
        Some(of_value) => of_value.is_comparable(of_column),
        None => becomes(value),
    };
    if !is_comparable || !is_needed(of_column) {
        return Ok(false);
    }
    let rows = LogicalPlanBuilder::from(rows.clone()).project([ordered(column, of_column)])?;
    subquery.subquery = Arc::new(rows.build()?);
    *value = ordered(std::mem::take(value), of_column);
    Ok(true)
}

/// Sorts by the order of the keys; returns whether any has one.
pub(super) fn sort(keys: &mut [SortKey], schema: &DFSchema) -> bool {
    let mut changed = false;
    for key in keys {
        if let Some(form) = form(&key.expr, schema) {
            key.expr = ordered(std::mem::take(&mut key.expr), form);
            changed = true;
        }
    }
    changed
}

fn aggregated(mut function: AggregateFunction, schema: &DFSchema) -> Transformed<Expr> {
    let params = &mut function.params;
    let argument = params.args.first().and_then(|first| form(first, schema));
    let changed = match (function.func.name(), argument) {
        ("min" | "max", Some(form)) => {
            let value = params.args[0].clone();
            let is_least = function.func.name() == "min";
            params.order_by = vec![ordered(value, form).sort(is_least, false)];
            function.func = Arc::new(AggregateUDF::from(OrderedAnyValue::default()));
            true
        }
        ("count", Some(form)) if params.distinct && form.of.has_many_texts() => {
            params.args = vec![ordered(std::mem::take(&mut params.args[0]), form)];
            true
        }
        // The key is an argument too.
        _ if params.distinct => false,
        _ => sort(&mut params.order_by, schema),
    };
    Transformed::new_transformed(Expr::AggregateFunction(function), changed)
}

fn over_window(mut function: WindowFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let params = &mut function.params;
    let argument = params.args.first().and_then(|first| form(first, schema));
    if let (name @ ("min" | "max"), Some(form)) = (function.fun.name(), argument) {
        return not_impl_err!("{name} of {form} over a window is not supported; use GROUP BY");
    }
    let mut changed = sort(&mut params.order_by, schema);
    if changed {
        by_peers(&mut params.window_frame);
    }
    for key in &mut params.partition_by {
        if let Some(form) = loose_form(key, schema) {
            *key = ordered(std::mem::take(key), form);
            changed = true;
        }
    }
    let function = Expr::WindowFunction(Box::new(function));
    Ok(Transformed::new_transformed(function, changed))
}

/// DataFusion has no ranges of bytes: RANGE without distances is the same as GROUPS.
fn by_peers(frame: &mut WindowFrame) {
    let is_whole =
        |bound: &WindowFrameBound| bound.is_unbounded() || *bound == WindowFrameBound::CurrentRow;
    if frame.units == WindowFrameUnits::Range
        && is_whole(&frame.start_bound)
        && is_whole(&frame.end_bound)
    {
        frame.units = WindowFrameUnits::Groups;
    }
}

fn of_node(node: LogicalPlan, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Sort(Sort { mut expr, input, fetch }) => {
            let changed = sort(&mut expr, schema);
            let sorted = LogicalPlan::Sort(Sort { expr, input, fetch });
            Ok(Transformed::new_transformed(sorted, changed))
        }
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
        LogicalPlan::Join(join) => Ok(joined(join)),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let columns = input.schema().columns().into_iter().map(Expr::Column);
            let columns: Vec<Expr> = columns.collect();
            if !columns.iter().any(|column| loose_form(column, schema).is_some()) {
                return Ok(Transformed::no(LogicalPlan::Distinct(Distinct::All(input))));
            }
            grouped(Aggregate::try_new(input, columns, vec![])?)
        }
        LogicalPlan::Distinct(Distinct::On(on)) => first_of_each(on, schema),
        other => Ok(Transformed::no(other)),
    }
}

/// Joins by the order of the columns of USING, INTERSECT and EXCEPT.
fn joined(mut join: Join) -> Transformed<LogicalPlan> {
    let mut changed = false;
    for (left, right) in &mut join.on {
        let forms = (form(left, join.left.schema()), form(right, join.right.schema()));
        if let (Some(of_left), Some(of_right)) = forms
            && of_left.is_comparable(of_right)
            && (of_left != of_right || of_left.of.has_many_texts())
        {
            *left = ordered(std::mem::take(left), of_left);
            *right = ordered(std::mem::take(right), of_right);
            // USING has columns only.
            join.join_constraint = JoinConstraint::On;
            changed = true;
        }
    }
    Transformed::new_transformed(LogicalPlan::Join(join), changed)
}
