//! UNPIVOT: a row for each of some columns.
//!
//! ```text
//! UNPIVOT sales ON jan, feb INTO NAME month VALUE n
//! FROM sales UNPIVOT (n FOR month IN (jan, feb))
//!
//! SELECT *, unnest(['jan', 'feb']) AS month, unnest([jan, feb]) AS n FROM sales, without NULLs and without jan, feb
//! ```

use datafusion::common::{Column, DFSchema, Result, plan_err};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::prelude::ident;
use datafusion::sql::sqlparser::ast::{Expr as Ast, ExprWithAlias, NullInclusion, TableFactor};

pub(in crate::dialect) fn plan(
    factor: TableFactor,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let TableFactor::Unpivot { table, value, null_inclusion, name, columns, .. } = factor else {
        return plan_err!("expected UNPIVOT");
    };
    let Ast::Identifier(value) = value else {
        return plan_err!("UNPIVOT takes one name for the values: UNPIVOT (v FOR name IN (a, b))");
    };
    let input = context.plan(*table)?;
    let schema = input.schema();
    let (name, value) = (context.normalize_ident(name), context.normalize_ident(value));
    let mut names = Vec::new();
    let mut values = Vec::new();
    let mut taken: Vec<Column> = Vec::new();
    for ExprWithAlias { expr, alias } in columns {
        for column in meant(expr, schema, context)? {
            let shown = alias.as_ref().map_or_else(|| shown(&column), |alias| alias.value.clone());
            names.push(lit(shown));
            taken.extend(column.column_refs().into_iter().cloned());
            values.push(column);
        }
    }
    let mut types = values.iter().map(|value| value.get_type(schema));
    let Some(mut common) = types.next().transpose()? else {
        return plan_err!("UNPIVOT takes at least one column");
    };
    for other in types {
        let other = other?;
        common = match type_union_coercion(&common, &other) {
            Some(common) => common,
            None => {
                return plan_err!(
                    "UNPIVOT of columns of types {common} and {other}; cast them to one"
                );
            }
        };
    }
    let values = values.into_iter().map(|value| value.cast_to(&common, schema));
    let values: Vec<Expr> = values.collect::<Result<_>>()?;
    let others = schema.columns().into_iter().filter(|column| !taken.contains(column));
    let mut projected: Vec<Expr> = others.map(Expr::Column).collect();
    projected.push(make_array(names).alias(&name));
    projected.push(make_array(values).alias(&value));
    let lists = vec![Column::from_name(&name), Column::from_name(&value)];
    let rows = LogicalPlanBuilder::from(input)
        .project(projected)?
        .unnest_columns_with_options(lists, Default::default())?;
    match null_inclusion {
        Some(NullInclusion::IncludeNulls) => rows.build(),
        _ => rows.filter(ident(value).is_not_null())?.build(),
    }
}

fn shown(column: &Expr) -> String {
    match column {
        Expr::Column(column) => column.name().to_owned(),
        other => other.schema_name().to_string(),
    }
}

/// The columns that are named: one, all, or those of `COLUMNS(…)`.
fn meant(
    expr: Ast,
    schema: &DFSchema,
    context: &mut dyn RelationPlannerContext,
) -> Result<Vec<Expr>> {
    match &expr {
        Ast::Wildcard(_) => Ok(schema.columns().into_iter().map(Expr::Column).collect()),
        Ast::Function(function) => {
            let Some(choice) = crate::dialect::columns::columns_call::Choice::from_call(function)?
            else {
                return context.sql_to_expr(expr, schema).map(|expr| vec![expr]);
            };
            let names: Vec<String> =
                schema.fields().iter().map(|field| field.name().clone()).collect();
            let chosen = choice.choose(&names)?;
            let columns = schema.columns();
            Ok(chosen.into_iter().map(|at| Expr::Column(columns[at].clone())).collect())
        }
        Ast::Tuple(_) => {
            plan_err!("UNPIVOT of several columns into one row is not supported; use UNION ALL")
        }
        _ => context.sql_to_expr(expr, schema).map(|expr| vec![expr]),
    }
}
