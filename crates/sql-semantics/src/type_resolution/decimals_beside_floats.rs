//! Decimals next to floats become floats, as in PostgreSQL: DataFusion compares both as decimals of 15 digits after the
//! point, which cannot represent most floats, nor NaN.
//!
//! ```text
//! f > 1.5, coalesce(f, 0.1), f IN (0.1, 0.2), [f, 0.1]           1.5 is DOUBLE where f is DOUBLE or REAL
//! CASE WHEN a THEN f ELSE 0.5 * b END, f IN (SELECT d …), USING (f)    so are other decimals
//! ```
//!
//! [`make_floats`] does this while operators and calls are planned, [`DecimalsBesideFloats`] in the plan, where all
//! column types are known.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinConstraint, Result};
use datafusion::logical_expr::expr::{Between, Case, Cast, InList, InSubquery, SetComparison};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan, Projection, Subquery};
use datafusion::optimizer::AnalyzerRule;

use super::sibling_types::has_one_type;
use crate::arithmetic::float_of_literal;
use atoll_sql_common::logical::{compares, map_named};

/// If a value is a float or a list of floats, converts the decimals and lists of decimals among the values to floats;
/// returns whether it converted any.
pub(super) fn make_floats<'a>(
    values: impl Iterator<Item = &'a mut Expr>,
    schema: &DFSchema,
) -> bool {
    let mut decimals = Vec::new();
    let mut has_floats = false;
    for value in values {
        let Ok(of) = value.get_type(schema) else { continue };
        has_floats |= item_type(&of).is_floating();
        decimals.extend(as_floats(&of).map(|floats| (value, floats)));
    }
    let is_mixed = has_floats && !decimals.is_empty();
    if is_mixed {
        decimals.into_iter().for_each(|(value, floats)| make_float(value, floats));
    }
    is_mixed
}

/// Converts a value to the float type that [`as_floats`] returns for its type.
pub(super) fn make_float(value: &mut Expr, floats: DataType) {
    let decimal = std::mem::take(value);
    *value = match float_of_literal(&decimal, &floats) {
        Some(float) => float,
        None => Expr::Cast(Cast::new(Box::new(decimal), floats)),
    };
}

/// Returns the float type for decimals and lists of decimals; None for other types.
pub(super) fn as_floats(of: &DataType) -> Option<DataType> {
    match of {
        of if of.is_decimal() => Some(DataType::Float64),
        DataType::List(item) => Some(DataType::new_list(as_floats(item.data_type())?, true)),
        _ => None,
    }
}

/// Returns the type of a list's innermost items, or the type itself if it is not a list.
pub(super) fn item_type(of: &DataType) -> &DataType {
    match of {
        DataType::List(item) => item_type(item.data_type()),
        of => of,
    }
}

/// Converts decimals next to floats in a plan, before type coercion.
#[derive(Debug, Default)]
pub struct DecimalsBesideFloats;

impl AnalyzerRule for DecimalsBesideFloats {
    fn name(&self) -> &str {
        "decimals_beside_floats"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_floats(&plan)? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|mut node| {
            if let LogicalPlan::Join(join) = &mut node {
                settle_keys(join)?;
            }
            let schema = merge_schema(&node.inputs());
            let node = map_named(node, |expr| expr.transform_up(|expr| settle(expr, &schema)))?;
            // Types may differ from those that the planner assumed for nodes above.
            node.data.recompute_schema().map(Transformed::yes)
        })
        .data()
    }
}

/// Converts the decimals in a column of a UNION if another input has floats; returns whether it converted any.
///
/// # Errors
/// Those of the projections.
pub(super) fn union_of_floats(inputs: &mut [Arc<LogicalPlan>], at: usize) -> Result<bool> {
    let of = |input: &LogicalPlan| input.schema().field(at).data_type().clone();
    let has_floats = inputs.iter().any(|input| item_type(&of(input)).is_floating());
    let mut is_changed = false;
    for input in inputs.iter_mut().filter(|input| as_floats(&of(input)).is_some()) {
        if has_floats {
            make_float_column(input, at)?;
            is_changed = true;
        }
    }
    Ok(is_changed)
}

/// Converts the decimals in a column of a plan to floats.
fn make_float_column(plan: &mut Arc<LogicalPlan>, at: usize) -> Result<()> {
    let columns = plan.schema().iter().enumerate().map(|(place, (table, field))| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        match as_floats(field.data_type()) {
            Some(floats) if place == at => Expr::Cast(Cast::new(Box::new(column), floats))
                .alias_qualified(table.cloned(), field.name()),
            _ => column,
        }
    });
    let projection = Projection::try_new(columns.collect(), Arc::clone(plan))?;
    *plan = Arc::new(LogicalPlan::Projection(projection));
    Ok(())
}

/// Whether any node of a plan has float columns.
fn has_floats(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        let mut types = node.schema().fields().iter().map(|field| field.data_type());
        found = types.any(|of| item_type(of).is_floating());
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether one type has floats where the other one has decimals.
fn are_mixed(one: &DataType, other: &DataType) -> bool {
    let meet = |one: &DataType, other: &DataType| {
        item_type(one).is_floating() && as_floats(other).is_some()
    };
    meet(one, other) || meet(other, one)
}

/// Converts the decimals among the keys of a join to floats.
fn settle_keys(join: &mut Join) -> Result<()> {
    for (left, right) in &mut join.on {
        let left_type = left.get_type(join.left.schema())?;
        let right_type = right.get_type(join.right.schema())?;
        if !are_mixed(&left_type, &right_type) {
            continue;
        }
        for (key, of) in [(left, left_type), (right, right_type)] {
            as_floats(&of).into_iter().for_each(|floats| make_float(key, floats));
        }
        // USING has been resolved by now, and its keys may be other expressions than columns.
        join.join_constraint = JoinConstraint::On;
    }
    Ok(())
}

/// Converts decimals next to floats among the operands of an expression.
fn settle(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_changed = match &mut expr {
        Expr::BinaryExpr(binary) if compares(binary.op) => {
            make_floats([&mut *binary.left, &mut *binary.right].into_iter(), schema)
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            make_floats([&mut **expr, &mut **low, &mut **high].into_iter(), schema)
        }
        Expr::InList(InList { expr, list, .. }) => {
            make_floats(list.iter_mut().chain([&mut **expr]), schema)
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            let (conditions, results): (Vec<_>, Vec<_>) =
                when_then_expr.iter_mut().map(|(when, then)| (&mut **when, &mut **then)).unzip();
            let results = results.into_iter().chain(else_expr.as_deref_mut());
            let has_results = make_floats(results, schema);
            let operand = expr.as_deref_mut();
            let is_compared = operand.is_some();
            let compared = conditions.into_iter().chain(operand);
            has_results | (is_compared && make_floats(compared, schema))
        }
        Expr::ScalarFunction(call) if has_one_type(call.func.name()) => {
            make_floats(call.args.iter_mut(), schema)
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => {
            membership(expr, subquery, schema)?
        }
        _ => false,
    };
    Ok(Transformed::new_transformed(expr, is_changed))
}

/// Converts the value or the column of an IN subquery if the other one is a float; returns whether it did.
fn membership(value: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let value_type = value.get_type(schema)?;
    let plan = &mut subquery.subquery;
    let Some(column) = plan.schema().fields().first() else { return Ok(false) };
    let is_mixed = are_mixed(&value_type, column.data_type());
    if is_mixed {
        match as_floats(&value_type) {
            Some(floats) => make_float(value, floats),
            None => make_float_column(plan, 0)?,
        }
    }
    Ok(is_mixed)
}
