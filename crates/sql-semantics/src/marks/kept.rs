//! Restores marks that DataFusion loses: in CASE, `coalesce` and similar functions, in list functions, and in the rows of
//! a list.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_functions::{function_named, gives_type, marked_field, possible_values};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{Alias, Cast};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Projection, Union, Unnest,
};

use super::functions::with_type;
use super::parameters::typed_parameters;
use super::zoned_times::of_zoned_times;
use atoll_sql_common::logical::map_named;
use atoll_sql_common::pg_type::{PgType, is_varchar};

/// Returns a plan whose columns and parameters keep the types that Arrow lacks.
pub(crate) fn keep_marks(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_marks(&plan)? {
        return Ok(plan);
    }
    let mut is_changed = false;
    plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let node = map_named(node, typed_parameters)?.data;
        let node = map_named(node, |expr| of_zoned_times(expr, &schema))?;
        is_changed |= node.transformed;
        let node = node.data;
        let kept = match node {
            LogicalPlan::Projection(_) => {
                map_named(node, |expr| expr.transform_up(|expr| kept(expr, &schema)))?
            }
            LogicalPlan::Aggregate(_) => map_named(node, |expr| match expr {
                Expr::AggregateFunction(_) => expr.transform_up(|expr| kept(expr, &schema)),
                key => Ok(Transformed::no(key)),
            })?,
            LogicalPlan::Unnest(unnest) => marked_rows(unnest)?,
            LogicalPlan::Union(union) => {
                let typed = typed_literals(union)?;
                match is_changed || typed.transformed {
                    true => Transformed::yes(of_inputs(typed.data)?),
                    false => Transformed::no(LogicalPlan::Union(typed.data)),
                }
            }
            other => Transformed::no(other),
        };
        is_changed |= kept.transformed;
        Ok(match is_changed {
            true => Transformed::yes(recomputed(kept.data)?),
            false => kept,
        })
    })
    .data()
}

/// Whether a plan reads a column with a mark, or calls a function whose result has one.
fn has_marks(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let schema = scan.source.schema();
            let mut marked = schema.fields().iter().filter(|field| !field.metadata().is_empty());
            found |= marked.any(|field| !is_varchar(field));
        }
        node.apply_expressions(|expr| {
            found = found || expr.exists(|expr| Ok(gives_mark(expr)))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn gives_mark(expr: &Expr) -> bool {
    let name = match expr {
        Expr::ScalarFunction(call) => call.func.name(),
        Expr::AggregateFunction(call) => call.func.name(),
        Expr::WindowFunction(call) => call.fun.name(),
        _ => return false,
    };
    ["json", "row_to_json", "to_json", "try_json", "uuid", "try_uuid", "checked_items", "with_type"]
        .iter()
        .any(|start| name.starts_with(start))
        || gives_type(name)
}

/// Marks an expression whose possible values all have the same mark.
fn kept(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if !matches!(expr, Expr::Case(_) | Expr::ScalarFunction(_)) {
        return Ok(Transformed::no(expr));
    }
    let Some(mark) = marked_field(&expr, schema).and_then(|field| PgType::mark_of(&field)) else {
        return Ok(Transformed::no(expr));
    };
    let has_mark = expr.to_field(schema).is_ok_and(|(_, field)| !field.metadata().is_empty());
    if has_mark || !possible_values(&expr).into_iter().all(|value| fits(value, schema)) {
        return Ok(Transformed::no(expr));
    }
    Ok(Transformed::yes(with_type(expr, &mark)))
}

/// Whether a value has a mark, or adopts the type of the others.
fn fits(value: &Expr, schema: &DFSchema) -> bool {
    match value {
        Expr::Literal(..) | Expr::Placeholder(_) => true,
        Expr::Cast(cast) => fits(&cast.expr, schema),
        Expr::ScalarFunction(call) if call.func.name() == "make_array" && call.args.is_empty() => {
            true
        }
        value => marked_field(value, schema).is_some_and(|field| !field.metadata().is_empty()),
    }
}

/// Marks the rows of marked lists.
fn marked_rows(unnest: Unnest) -> Result<Transformed<LogicalPlan>> {
    let input = unnest.input.schema();
    let marks: HashMap<Column, String> = unnest
        .list_type_columns
        .iter()
        .filter(|(_, list)| list.depth == 1)
        .filter_map(|(at, list)| {
            let mark = PgType::mark_of(input.field(*at))?;
            Some((list.output_column.clone(), mark.strip_prefix('_')?.to_owned()))
        })
        .collect();
    let node = LogicalPlan::Unnest(unnest);
    if marks.is_empty() {
        return Ok(Transformed::no(node));
    }
    let columns = node.schema().iter().map(|(table, field)| {
        let column = Column::new(table.cloned(), field.name());
        let found = marks.get(&column).or_else(|| marks.get(&Column::from_name(field.name())));
        match found {
            Some(mark) => {
                with_type(Expr::Column(column), mark).alias_qualified(table.cloned(), field.name())
            }
            None => Expr::Column(column),
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(node).project(columns)?.build().map(Transformed::yes)
}

/// A UNION whose literals are values of the type of the other inputs.
fn typed_literals(mut union: Union) -> Result<Transformed<Union>> {
    let mut is_changed = false;
    for at in 0..union.schema.fields().len() {
        let mut fields = union.inputs.iter().map(|input| input.schema().field(at));
        let mark = fields.find_map(|field| PgType::mark_of(field));
        let Some(cast) = mark.and_then(|mark| function_named(&format!("{mark}_checked"))) else {
            continue;
        };
        for input in &mut union.inputs {
            let LogicalPlan::Projection(list) = input.as_ref() else { continue };
            if !is_literal(list, at) {
                continue;
            }
            let mut values = list.expr.clone();
            let value = std::mem::take(&mut values[at]).unalias();
            values[at] = cast.call(vec![value]).alias(list.schema.field(at).name());
            let list = Projection::try_new(values, Arc::clone(&list.input))?;
            *input = Arc::new(LogicalPlan::Projection(list));
            is_changed = true;
        }
    }
    Ok(Transformed::new_transformed(union, is_changed))
}

/// Whether a column of a select list is a text or NULL without a type, below the cast that a UNION adds.
fn is_literal(list: &Projection, at: usize) -> bool {
    let mut value = &list.expr[at];
    while let Expr::Alias(Alias { expr, .. }) | Expr::Cast(Cast { expr, .. }) = value {
        value = expr;
    }
    match value {
        Expr::Literal(value, metadata) => {
            metadata.is_none() && (value.is_null() || value.data_type().is_string())
        }
        Expr::Column(column) => match list.input.as_ref() {
            LogicalPlan::Projection(inner) => {
                let place = inner.schema.maybe_index_of_column(column);
                place.is_some_and(|at| is_literal(inner, at))
            }
            _ => false,
        },
        _ => false,
    }
}

/// A UNION whose columns have the marks that all of its inputs have.
fn of_inputs(union: Union) -> Result<LogicalPlan> {
    let fields = union.schema.iter().enumerate().map(|(at, (table, field))| {
        let mut given = union.inputs.iter().map(|input| input.schema().field(at));
        let first = given.next().map(|field| field.metadata()).filter(|mark| !mark.is_empty());
        let field = match first {
            Some(mark) if given.all(|other| other.metadata() == mark) => {
                Arc::new(field.as_ref().clone().with_metadata(mark.clone()))
            }
            _ => Arc::clone(field),
        };
        (table.cloned(), field)
    });
    let schema = DFSchema::new_with_metadata(fields.collect(), union.schema.metadata().clone())?;
    Ok(LogicalPlan::Union(Union { inputs: union.inputs, schema: Arc::new(schema) }))
}

/// A node over inputs whose columns have other marks.
fn recomputed(node: LogicalPlan) -> Result<LogicalPlan> {
    match node {
        // Their schemas do not depend on marks, or are computed above.
        LogicalPlan::Union(_) | LogicalPlan::Unnest(_) | LogicalPlan::Values(_) => Ok(node),
        node => node.recompute_schema(),
    }
}
