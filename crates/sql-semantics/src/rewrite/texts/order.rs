//! Compares, sorts and groups values whose texts have another order, or of which equal ones may have several texts.
//!
//! ```text
//! b < '[1]'                    jsonb_order(b) < jsonb_order('[1]')
//! ORDER BY b                   ORDER BY jsonb_order(b)
//! SELECT b … GROUP BY b        SELECT any_value(b) … GROUP BY jsonb_order(b)
//! min(a)                       any_value(a ORDER BY inet_order(a))
//! a::TEXT                      inet_text(a)
//! ```

use std::sync::Arc;

use atoll_functions::{OrderedAnyValue, function_named, marked_field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result, not_impl_err};
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, InSubquery, Sort as SortKey, WindowFunction,
};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, BinaryExpr, Distinct, DistinctOn, Expr, LogicalPlan,
    LogicalPlanBuilder, Operator, Projection, Sort,
};
use datafusion::optimizer::AnalyzerRule;

use super::has_forms;
use crate::marks::with_type;
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
            map_named(plan, |expr| expr.transform_up(|expr| by_order(expr, &schema)))?
                .transform_data(|node| of_node(node, &schema))
        })
        .data()
    }
}

/// The form of an expression's values, if they have an order of their own.
fn form(expr: &Expr, schema: &DFSchema) -> Option<Checked> {
    let field = marked_field(expr, schema).filter(|field| !field.data_type().is_nested())?;
    Checked::of_field(&field).filter(|form| form.order().is_some())
}

/// The same, if equal values may have several texts.
fn loose_form(expr: &Expr, schema: &DFSchema) -> Option<Checked> {
    form(expr, schema).filter(|form| form.has_many_texts())
}

/// The bytes that compare as the value does.
fn ordered(value: Expr, form: Checked) -> Expr {
    match form.order().and_then(function_named) {
        Some(order) => order.call(vec![value]),
        None => value,
    }
}

fn by_order(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(binary) if compares(binary.op) => compared(binary, schema),
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
        Expr::InSubquery(within) => among_rows(within, schema)?,
        Expr::Cast(cast) if cast.field.data_type().is_string() => {
            let to_text = form(&cast.expr, schema).and_then(Checked::to_text);
            match to_text.and_then(function_named) {
                Some(to_text) => Transformed::yes(to_text.call(vec![*cast.expr])),
                None => Transformed::no(Expr::Cast(cast)),
            }
        }
        Expr::AggregateFunction(function) => aggregated(function, schema),
        Expr::WindowFunction(function) => over_window(*function, schema)?,
        other => Transformed::no(other),
    })
}

fn compared(binary: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let BinaryExpr { left, op, right } = binary;
    let found = match (form(&left, schema), form(&right, schema)) {
        (Some(left), Some(right)) if left.order() == right.order() => {
            Some((left, left == right && !left.has_many_texts()))
        }
        (Some(form), None) if becomes(&right) => Some((form, !has_many_texts(form, &right))),
        (None, Some(form)) if becomes(&left) => Some((form, !has_many_texts(form, &left))),
        _ => None,
    };
    let is_order = !matches!(
        op,
        Operator::Eq | Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
    );
    match found {
        Some((form, has_one_text)) if is_order || !has_one_text => {
            let (left, right) = (ordered(*left, form), ordered(*right, form));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
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
fn has_many_texts(form: Checked, literal: &Expr) -> bool {
    let text = match literal {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    };
    let has_number = || text.is_none_or(|text| text.bytes().any(|byte| byte.is_ascii_digit()));
    form.has_many_texts() && has_number()
}

/// `value IN (SELECT …)`, by the order of both.
fn among_rows(mut within: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let rows = within.subquery.subquery.as_ref();
    let [column] = &rows.schema().columns()[..] else {
        return Ok(Transformed::no(Expr::InSubquery(within)));
    };
    let column = Expr::Column(column.clone());
    let forms = (loose_form(&within.expr, schema), loose_form(&column, rows.schema()));
    let (Some(form), Some(_)) = forms else {
        return Ok(Transformed::no(Expr::InSubquery(within)));
    };
    let rows = LogicalPlanBuilder::from(rows.clone()).project([ordered(column, form)])?.build()?;
    within.subquery.subquery = Arc::new(rows);
    *within.expr = ordered(std::mem::take(within.expr.as_mut()), form);
    Ok(Transformed::yes(Expr::InSubquery(within)))
}

/// Sorts by the order of the keys; returns whether any has one.
fn sort(keys: &mut [SortKey], schema: &DFSchema) -> bool {
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
        ("count", Some(form)) if params.distinct && form.has_many_texts() => {
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
    for key in &mut params.partition_by {
        if let Some(form) = loose_form(key, schema) {
            *key = ordered(std::mem::take(key), form);
            changed = true;
        }
    }
    let function = Expr::WindowFunction(Box::new(function));
    Ok(Transformed::new_transformed(function, changed))
}

fn of_node(node: LogicalPlan, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Sort(Sort { mut expr, input, fetch }) => {
            let changed = sort(&mut expr, schema);
            let sorted = LogicalPlan::Sort(Sort { expr, input, fetch });
            Ok(Transformed::new_transformed(sorted, changed))
        }
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
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

fn first_of_each(on: DistinctOn, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    let DistinctOn { mut on_expr, select_expr, mut sort_expr, input, .. } = on;
    let mut changed = sort_expr.as_mut().is_some_and(|keys| sort(keys, schema));
    for key in &mut on_expr {
        if let Some(form) = form(key, schema) {
            *key = ordered(std::mem::take(key), form);
            changed = true;
        }
    }
    let on = DistinctOn::try_new(on_expr, select_expr, sort_expr, input)?;
    Ok(Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), changed))
}

/// Groups by the order of keys; a key's value is that of one of the group's rows. Grouping sets compare texts.
fn grouped(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let input = aggregate.input.schema();
    let forms: Vec<_> = aggregate.group_expr.iter().map(|key| loose_form(key, input)).collect();
    if forms.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let Aggregate { input, group_expr, mut aggr_expr, schema, .. } = aggregate;
    let mut columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let mut keys = Vec::with_capacity(group_expr.len());
    for (at, (key, form)) in group_expr.into_iter().zip(forms).enumerate() {
        let Some(form) = form else {
            keys.push(key);
            continue;
        };
        let key = key.unalias();
        let value = format!("__value{at}");
        let name = form.to_string().to_lowercase();
        let (qualifier, field) = schema.qualified_field(at);
        columns[at] = with_type(Expr::Column(Column::from_name(&value)), &name)
            .alias_qualified(qualifier.cloned(), field.name());
        aggr_expr.push(one_of(key.clone()).alias(value));
        keys.push(ordered(key, form).alias(format!("__order{at}")));
    }
    let grouped = LogicalPlan::Aggregate(Aggregate::try_new(input, keys, aggr_expr)?);
    let named = Projection::try_new(columns, Arc::new(grouped))?;
    Ok(Transformed::yes(LogicalPlan::Projection(named)))
}

/// One of the values of a group.
fn one_of(value: Expr) -> Expr {
    let func = Arc::new(AggregateUDF::from(OrderedAnyValue::default()));
    let params = AggregateFunctionParams {
        args: vec![value],
        distinct: false,
        filter: None,
        order_by: vec![],
        null_treatment: None,
    };
    Expr::AggregateFunction(AggregateFunction { func, params })
}
