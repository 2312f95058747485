//! Scalar subqueries that may have no row.
//!
//! They are NULL then, even if their column is NOT NULL. DataFusion 55.2 uses the column's nullability
//! (`Expr::nullable`, apache/datafusion#24513): `(SELECT id FROM t WHERE …) IS NULL` is false before the subquery has
//! run, and a result in which it is NULL is rejected.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, ScalarUDF, Values};
use datafusion::optimizer::AnalyzerRule;

use atoll_functions::UnnamedFunction;
use atoll_sql_common::logical::map_named;

/// Name in plans of the function that returns its argument and declares it nullable.
const NAME: &str = "nullable";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| UnnamedFunction::make(NAME, nullable, Ok));

fn nullable(field: &FieldRef) -> FieldRef {
    Arc::new(Field::clone(field).with_nullable(true))
}

/// Declares scalar subqueries that may be empty nullable, and whatever depends on them if type coercion, which runs
/// later, does not recompute its nullability; see the module.
#[derive(Debug, Default)]
pub struct EmptySubqueries;

impl AnalyzerRule for EmptySubqueries {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let marked = map_named(plan, |expr| expr.transform_down(marked))?;
            match marked {
                Transformed { data: LogicalPlan::Values(values), transformed: true, .. } => {
                    Ok(Transformed::yes(LogicalPlan::Values(declared(values)?)))
                }
                other => Ok(other),
            }
        })
        .data()
    }

    fn name(&self) -> &str {
        "empty_subqueries"
    }
}

/// Wraps the expression's subqueries in the function, outside of which nothing is derived from their columns: an
/// optimizer may reduce the inside to a constant. Columns of outer plans are assumed to be nullable.
fn marked(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(ref call) if call.func.name() == NAME => {
            Ok(Transformed::new(expr, false, TreeNodeRecursion::Jump))
        }
        Expr::ScalarSubquery(ref subquery) if !has_a_row(&subquery.subquery) => {
            let call = UnnamedFunction::call(&FUNCTION, expr);
            Ok(Transformed::new(call, true, TreeNodeRecursion::Jump))
        }
        Expr::OuterReferenceColumn(field, column) if !field.is_nullable() => {
            Ok(Transformed::yes(Expr::OuterReferenceColumn(nullable(&field), column)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Makes columns of VALUES nullable if one of their values is, since type coercion does not.
fn declared(values: Values) -> Result<Values> {
    let none = DFSchema::empty();
    let may_be_null = |at: usize| {
        let mut column = values.values.iter().filter_map(|row| row.get(at));
        column.any(|value| value.nullable(&none).unwrap_or(true))
    };
    let fields = values.schema.iter().enumerate().map(|(at, (table, field))| {
        let is_nullable = field.is_nullable() || may_be_null(at);
        (table.cloned(), Arc::new(Field::clone(field).with_nullable(is_nullable)))
    });
    let schema = DFSchema::new_with_metadata(fields.collect(), values.schema.metadata().clone())?;
    Ok(Values { schema: Arc::new(schema), values: values.values })
}

/// Whether a plan returns a row whatever the tables contain.
fn has_a_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Values(values) => !values.values.is_empty(),
        LogicalPlan::Projection(projection) => has_a_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_a_row(&alias.input),
        LogicalPlan::Window(window) => has_a_row(&window.input),
        _ => false,
    }
}
