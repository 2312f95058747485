//! Labels instead of codes in arrays, rows and JSON: `array_agg(m)`, `row_to_json(p)`, `m = ANY ('{sad,ok}')`.
//!
//! DataFusion cannot display lists of codes, and JSON has no type of them.

use super::array_operands::{ArrayScope, rows};
use crate::marks::with_type;
use atoll_sql_common::logical::map_named;
use atoll_sql_common::pg_type::labels_name;
use atoll_sql_common::user_type::{UserTypes, enum_oid};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// Functions that put their arguments into arrays, rows or JSON, or look for one in an array: there, a value is its label.
const CONTAINERS: &[&str] = &[
    "array_agg",
    "array_append",
    "array_contains",
    "array_position",
    "array_positions",
    "array_prepend",
    "array_remove",
    "array_replace",
    "differs_from_all",
    "differs_from_any",
    "equals_all",
    "equals_any",
    "json_agg",
    "json_aggregated",
    "json_array",
    "json_build_array",
    "json_build_object",
    "json_group_array",
    "json_group_object",
    "json_object",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_object_agg",
    "make_array",
    "named_struct",
    "row_to_json",
    "struct",
    "to_json",
    "to_jsonb",
];

/// Returns a plan whose arrays, rows and JSON have the labels of ENUMs instead of codes.
///
/// # Errors
/// If a node cannot be built with other expressions.
pub fn labels_in_containers(plan: LogicalPlan, types: Option<&UserTypes>) -> Result<LogicalPlan> {
    let Some(types) = types.filter(|types| !types.is_empty()) else { return Ok(plan) };
    let mut is_changed = false;
    plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let scope = ArrayScope { schema: &schema, types };
        let mut node = map_named(node, |expr| {
            expr.transform_up(|expr| {
                scope.rewritten(expr)?.transform_data(|expr| Ok(labelled(expr, &schema)))
            })
        })?;
        if let LogicalPlan::Sort(sort) = &mut node.data {
            node.transformed |= scope.sorts(&mut sort.expr)?;
        }
        is_changed |= node.transformed;
        let node = match node.data {
            LogicalPlan::Unnest(unnest) => {
                let rows = rows(unnest)?;
                is_changed |= rows.transformed;
                rows
            }
            other => Transformed::new(other, node.transformed, node.tnr),
        };
        match is_changed {
            true => node.transform_data(|node| node.recompute_schema().map(Transformed::yes)),
            false => Ok(node),
        }
    })
    .data()
}

fn labelled(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    // An array of labels has a type of its own; elsewhere they are texts.
    let makes_array = match &expr {
        Expr::ScalarFunction(call) => call.func.name() == "make_array",
        Expr::AggregateFunction(call) => call.func.name() == "array_agg",
        Expr::WindowFunction(call) => call.fun.name() == "array_agg",
        _ => false,
    };
    let contents = match &mut expr {
        Expr::ScalarFunction(call) if CONTAINERS.contains(&call.func.name()) => &mut call.args,
        Expr::AggregateFunction(call) if CONTAINERS.contains(&call.func.name()) => {
            &mut call.params.args
        }
        Expr::WindowFunction(call) if CONTAINERS.contains(&call.fun.name()) => {
            &mut call.params.args
        }
        _ => return Transformed::no(expr),
    };
    let mut of_labels = None;
    for value in contents.iter_mut() {
        let Some(oid) = value.get_type(schema).ok().and_then(|of| enum_oid(&of)) else { continue };
        let code = std::mem::take(value);
        let label = Expr::Cast(Cast::new(Box::new(code), DataType::Utf8View));
        *value = match makes_array {
            true => with_type(label, &labels_name(oid)),
            false => label,
        };
        of_labels = Some(oid);
    }
    match of_labels {
        Some(oid) if makes_array && matches!(expr, Expr::ScalarFunction(_)) => {
            Transformed::yes(with_type(expr, &format!("_{}", labels_name(oid))))
        }
        Some(_) => Transformed::yes(expr),
        None => Transformed::no(expr),
    }
}
