//! Subqueries among the rows of VALUES.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection, Values, lit, when};
use datafusion::optimizer::OptimizerConfig;
use datafusion::scalar::ScalarValue;

/// The number of a row.
const ROW: &str = "$row";

/// Moves subqueries in the rows of VALUES into a projection above them: DataFusion evaluates the rows during planning,
/// before any subquery has run (DataFusion 55.2, `ScalarSubqueryExpr`).
///
/// ```text
/// VALUES (1, (SELECT 2)), (3, 4)     SELECT column1, CASE WHEN row = 0 THEN (SELECT 2) ELSE column2 END
///                                    FROM (VALUES (1, NULL, 0), (3, 4, 1))
/// ```
pub(super) fn subqueries_in_values(
    plan: LogicalPlan,
    _: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Values(rows) if rows.values.iter().flatten().any(has_any_subquery) => {
            above(rows).map(Transformed::yes)
        }
        plan => Ok(Transformed::no(plan)),
    }
}

/// Whether an expression contains a subquery of any kind.
pub fn has_any_subquery(expr: &Expr) -> bool {
    let is = |expr: &Expr| {
        let is_one = matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
        );
        Ok(is_one)
    };
    expr.exists(is).unwrap_or(false)
}

/// Replaces expressions with subqueries by unused values, and computes them above.
fn above(Values { schema, mut values }: Values) -> Result<LogicalPlan> {
    let column = |name: &str| Expr::Column(Column::from_name(name));
    let mut exprs: Vec<Expr> = schema.fields().iter().map(|field| column(field.name())).collect();
    for (number, row) in values.iter_mut().enumerate() {
        let number = lit(number as i64);
        for ((value, expr), field) in row.iter_mut().zip(&mut exprs).zip(schema.fields()) {
            if has_any_subquery(value) {
                // A column without nulls needs a value that is not null.
                let unread = match field.is_nullable() {
                    true => ScalarValue::try_from(field.data_type())?,
                    false => ScalarValue::new_default(field.data_type())?,
                };
                let computed = std::mem::replace(value, lit(unread));
                let computed = computed.cast_to(field.data_type(), &DFSchema::empty())?;
                let before = std::mem::take(expr);
                *expr = when(column(ROW).eq(number.clone()), computed).otherwise(before)?;
            }
        }
        row.push(number);
    }
    let names = schema.fields().iter().map(|field| field.name());
    let exprs = exprs.into_iter().zip(names).map(|(expr, name)| expr.alias(name)).collect();
    let fields = schema.fields().iter().map(|field| field.as_ref().clone());
    let fields = fields.chain([Field::new(ROW, DataType::Int64, false)]).collect();
    let numbered = DFSchema::from_unqualified_fields(fields, schema.metadata().clone())?;
    let rows = LogicalPlan::Values(Values { schema: Arc::new(numbered), values });
    Projection::try_new_with_schema(exprs, Arc::new(rows), schema).map(LogicalPlan::Projection)
}
