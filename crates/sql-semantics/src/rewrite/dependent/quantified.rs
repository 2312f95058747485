//! IN, EXISTS, ANY and ALL over a correlated subquery, as a scalar subquery.
//!
//! ```text
//! EXISTS (S)          (SELECT count(*) > 0 FROM S)
//! x > ANY (S)         (SELECT CASE WHEN <rows for which x > s> > 0 THEN true
//!                                  WHEN <rows for which that is NULL> > 0 THEN NULL ELSE false END FROM S)
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprFunctionExt, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
    lit, not, when,
};

use super::columns::unused;

/// Returns the subquery whose only row is the value of the expression.
pub(super) fn counted(expr: Expr, outer: &DFSchema) -> Result<LogicalPlan> {
    let (value, op, all, negated, subquery) = match expr {
        Expr::Exists(Exists { subquery, negated }) => {
            let name = unused("rows");
            let found = datafusion::prelude::ident(&name).gt(lit(0_i64));
            return LogicalPlanBuilder::from(Arc::unwrap_or_clone(subquery.subquery))
                .aggregate(Vec::<Expr>::new(), [count(lit(1_i64)).alias(&name)])?
                .project([if negated { not(found) } else { found }])?
                .build();
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            (expr, Operator::Eq, false, negated, subquery)
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            (expr, op, quantifier == SetQuantifier::All, false, subquery)
        }
        other => return internal_err!("{other} is not a subquery"),
    };
    let rows = Arc::unwrap_or_clone(subquery.subquery);
    let column = Expr::Column(rows.schema().columns().swap_remove(0));
    let value = as_outer(*value, outer)?;
    let compared = Expr::BinaryExpr(BinaryExpr::new(Box::new(value), op, Box::new(column)));
    let decided = if all { not(compared.clone()) } else { compared.clone() };
    let names = [unused("decided"), unused("unknown")];
    let of = |condition: Expr, name: &str| {
        Ok::<_, datafusion::error::DataFusionError>(
            count(lit(1_i64)).filter(condition).build()?.alias(name),
        )
    };
    let counts = [of(decided, &names[0])?, of(compared.is_null(), &names[1])?];
    let [decided, unknown] =
        names.each_ref().map(|name| datafusion::prelude::ident(name).gt(lit(0_i64)));
    let answer = when(decided, lit(!all))
        .when(unknown, lit(ScalarValue::Boolean(None)))
        .otherwise(lit(all))?;
    let answer = if negated { not(answer) } else { answer };
    LogicalPlanBuilder::from(rows).aggregate(Vec::<Expr>::new(), counts)?.project([answer])?.build()
}

/// Replaces columns of the outer plan by outer references.
fn as_outer(expr: Expr, outer: &DFSchema) -> Result<Expr> {
    expr.transform_up(|expr| {
        Ok(match expr {
            Expr::Column(column) => {
                let (_, field) = Expr::Column(column.clone()).to_field(outer)?;
                Transformed::yes(Expr::OuterReferenceColumn(field, column))
            }
            other => Transformed::no(other),
        })
    })
    .data()
}
