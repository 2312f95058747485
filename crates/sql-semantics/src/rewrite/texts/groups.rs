//! Groups, and first rows of groups, by the order of their keys.

use std::sync::Arc;

use atoll_functions::OrderedAnyValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Distinct, DistinctOn, Expr, GroupingSet, LogicalPlan, Projection, when,
};

use super::order::{form, loose_form, ordered, sort};
use crate::marks::with_type;

pub(super) fn first_of_each(on: DistinctOn, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
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

/// Groups by the order of keys; a key's value is that of one of the group's rows.
pub(super) fn grouped(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let input = aggregate.input.schema();
    let keys = grouping_set_to_exprlist(&aggregate.group_expr)?;
    let forms: Vec<_> = keys.iter().map(|key| loose_form(key, input)).collect();
    if forms.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let keys: Vec<Expr> = keys.into_iter().cloned().collect();
    let Aggregate { input, group_expr, mut aggr_expr, schema, .. } = aggregate;
    let is_set = matches!(group_expr[..], [Expr::GroupingSet(_)]);
    let mut columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    if is_set {
        // The number of the set, which only GROUPING reads.
        columns.remove(keys.len());
    }
    let mut orders = Vec::with_capacity(keys.len());
    for (at, (key, form)) in keys.into_iter().zip(forms).enumerate() {
        let Some(form) = form else { continue };
        let (value, order) = (format!("__value{at}"), format!("__order{at}"));
        aggr_expr.push(one_of(key.clone().unalias()).alias(&value));
        orders.push((key.clone(), ordered(key.unalias(), form).alias(&order)));
        let mut value = Expr::Column(Column::from_name(value));
        if is_set {
            // Sets without the key have a value of their rows, too.
            let has_key = Expr::Column(Column::from_name(order)).is_not_null();
            value = when(has_key, value).end()?;
        }
        let (qualifier, field) = schema.qualified_field(at);
        columns[at] =
            with_type(value, &form.type_name()).alias_qualified(qualifier.cloned(), field.name());
    }
    let keys = group_expr.into_iter().map(|key| by_keys(key, &orders)).collect();
    let aggr_expr = aggr_expr.into_iter().map(|of| of_grouping(of, &orders));
    let aggr_expr = aggr_expr.collect::<Result<Vec<_>>>()?;
    let grouped = LogicalPlan::Aggregate(Aggregate::try_new(input, keys, aggr_expr)?);
    let named = Projection::try_new(columns, Arc::new(grouped))?;
    Ok(Transformed::yes(LogicalPlan::Projection(named)))
}

/// Replaces keys of GROUP BY by their orders.
fn by_keys(key: Expr, orders: &[(Expr, Expr)]) -> Expr {
    let all = |keys: Vec<Expr>| keys.into_iter().map(|key| by_keys(key, orders)).collect();
    match key {
        Expr::GroupingSet(GroupingSet::Rollup(keys)) => {
            Expr::GroupingSet(GroupingSet::Rollup(all(keys)))
        }
        Expr::GroupingSet(GroupingSet::Cube(keys)) => {
            Expr::GroupingSet(GroupingSet::Cube(all(keys)))
        }
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
            Expr::GroupingSet(GroupingSet::GroupingSets(sets.into_iter().map(all).collect()))
        }
        key => match orders.iter().find(|(of, _)| *of == key) {
            Some((_, order)) => order.clone(),
            None => key,
        },
    }
}

/// Replaces the arguments of GROUPING, which are keys of GROUP BY; it keeps its name.
fn of_grouping(aggregate: Expr, orders: &[(Expr, Expr)]) -> Result<Expr> {
    let name = aggregate.schema_name().to_string();
    let is_named = matches!(aggregate, Expr::Alias(_));
    let replaced = aggregate.transform_down(|mut expr| match &mut expr {
        Expr::AggregateFunction(call) if call.func.name() == "grouping" => {
            for argument in &mut call.params.args {
                *argument = by_keys(std::mem::take(argument), orders);
            }
            Ok(Transformed::new(expr, true, TreeNodeRecursion::Jump))
        }
        _ => Ok(Transformed::no(expr)),
    })?;
    Ok(if replaced.transformed && !is_named { replaced.data.alias(name) } else { replaced.data })
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
