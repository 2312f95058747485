//! IN and EXISTS as values: true, false or NULL.
//!
//! `x IN (S)` is true if x equals a row of S; otherwise NULL if x is NULL and S has a row, or if S has a
//! NULL; otherwise false. DataFusion 55.2 implements only the first part: a mark join whose mark is never NULL
//! (apache/datafusion#21309). The conditions for NULL are checked separately, if columns may be NULL
//! and the context of the expression distinguishes NULL from false.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err, not_impl_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Projection,
    Subquery, exists, in_subquery, lit, not, scalar_subquery, when,
};
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Whether the context of an expression treats NULL as false, as a filter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Only whether it is true matters.
    Truth,
    /// The exact value matters.
    Value,
}

/// Whether an expression contains an IN or EXISTS over a subquery.
pub(super) fn has_subquery(expr: &Expr) -> bool {
    let is = |expr: &Expr| Ok(matches!(expr, Expr::InSubquery(_) | Expr::Exists(_)));
    expr.exists(is).unwrap_or(false)
}

/// Whether an expression contains an IN whose NULL would be taken for false, or vice versa.
pub(super) fn mistakes_null(expr: &Expr, asked: Asked) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            mistakes_null(left, asked) || mistakes_null(right, asked)
        }
        Expr::InSubquery(membership) => membership.negated || asked == Asked::Value,
        other => {
            let is = |expr: &Expr| Ok(matches!(expr, Expr::InSubquery(_)));
            other.exists(is).unwrap_or(false)
        }
    }
}

/// IN and EXISTS over an aggregate without groups, which always has one row: IN compares the row,
/// EXISTS is true. DataFusion joins the rows that the aggregate reads, and if there are none it
/// finds no match.
pub(super) fn of_one_row(expr: Expr) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::Exists(Exists { subquery, negated }) if has_one_row(&subquery.subquery) => {
            Transformed::yes(lit(!negated))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated })
            if has_one_row(&subquery.subquery) =>
        {
            let op = if negated { Operator::NotEq } else { Operator::Eq };
            let row = Box::new(Expr::ScalarSubquery(subquery));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(expr, op, row)))
        }
        expr => Transformed::no(expr),
    })
}

/// Qualifies the column of an IN subquery if it has no table. DataFusion looks such a column up by name among those of
/// the join, too, and then finds it twice.
pub(super) fn with_table(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::InSubquery(InSubquery { expr: value, subquery, negated }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let is_named = subquery.subquery.schema().qualified_field(0).0.is_some();
    if is_named || !subquery.outer_ref_columns.is_empty() {
        let membership = InSubquery { expr: value, subquery, negated };
        return Ok(Transformed::no(Expr::InSubquery(membership)));
    }
    let rows = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
    let rows = Arc::new(rows.alias("__members")?.build()?);
    let subquery = Subquery { subquery: rows, ..subquery };
    Ok(Transformed::yes(Expr::InSubquery(InSubquery { expr: value, subquery, negated })))
}

fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Projection(projection) => has_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_one_row(&alias.input),
        LogicalPlan::Sort(sort) => sort.fetch != Some(0) && has_one_row(&sort.input),
        _ => false,
    }
}

/// The plans whose rows evaluate subqueries, and that get a mark for each.
pub(super) struct Marked<'a> {
    pub(super) inputs: Vec<LogicalPlan>,
    pub(super) config: &'a dyn OptimizerConfig,
}

impl Marked<'_> {
    /// Replaces subqueries in the expression by marks.
    pub(super) fn rewrite(&mut self, expr: Expr, asked: Asked) -> Result<Expr> {
        match expr {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: op @ (Operator::And | Operator::Or),
                right,
            }) => {
                let (left, right) = (self.rewrite(*left, asked)?, self.rewrite(*right, asked)?);
                Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
            }
            Expr::Not(inner) => match *inner {
                Expr::InSubquery(membership) => {
                    let negated = !membership.negated;
                    self.membership(InSubquery { negated, ..membership }, asked)
                }
                inner => Ok(not(self.rewrite(inner, Asked::Value)?)),
            },
            Expr::InSubquery(membership) => self.membership(membership, asked),
            Expr::Exists(Exists { subquery, negated }) => {
                let exists = self.is_not_empty(subquery.subquery.as_ref().clone())?;
                Ok(if negated { not(exists) } else { exists })
            }
            other => other
                .map_children(|child| self.rewrite(child, Asked::Value).map(Transformed::yes))
                .data(),
        }
    }

    fn membership(&mut self, membership: InSubquery, asked: Asked) -> Result<Expr> {
        let InSubquery { expr: value, subquery, negated } = membership;
        if value.contains_outer() {
            return not_impl_err!(
                "IN (subquery) inside of another expression of a correlated subquery; \
                 use EXISTS or a join"
            );
        }
        let found = self.is_found(&value, &subquery)?;
        if asked == Asked::Truth && !negated {
            return Ok(found);
        }
        let Some(unknown) = self.is_unknown(&value, &subquery)? else {
            return Ok(if negated { not(found) } else { found });
        };
        match asked {
            Asked::Truth => Ok(not(found).and(not(unknown))),
            Asked::Value => when(found, lit(!negated))
                .when(unknown, lit(ScalarValue::Boolean(None)))
                .otherwise(lit(negated)),
        }
    }

    /// Whether a row of the subquery equals the value; never NULL.
    fn is_found(&mut self, value: &Expr, subquery: &Subquery) -> Result<Expr> {
        let rows = subquery.subquery.as_ref();
        if value.column_refs().is_empty() && subquery.outer_ref_columns.is_empty() {
            let equal = output(rows)?.eq(value.clone());
            return self.is_not_empty(filtered(rows, equal)?);
        }
        self.mark(in_subquery(value.clone(), subquery.subquery.clone()))
    }

    /// Whether the answer is NULL if no row matches; never NULL itself.
    fn is_unknown(&mut self, value: &Expr, subquery: &Subquery) -> Result<Option<Expr>> {
        let rows = subquery.subquery.as_ref();
        let mut reasons = Vec::new();
        if self.may_be_null(value)? {
            let has_rows = self.is_not_empty(rows.clone())?;
            reasons.push(value.clone().is_null().and(has_rows));
        }
        if rows.schema().field(0).is_nullable() {
            let nulls = output(rows)?.is_null();
            reasons.push(self.is_not_empty(filtered(rows, nulls)?)?);
        }
        Ok(reasons.into_iter().reduce(Expr::or))
    }

    fn may_be_null(&self, value: &Expr) -> Result<bool> {
        let mut schema = DFSchema::empty();
        for input in &self.inputs {
            schema.merge(input.schema());
        }
        value.nullable(&schema)
    }

    /// Whether the plan has a row; never NULL. Without outer references it is evaluated once.
    fn is_not_empty(&mut self, plan: LogicalPlan) -> Result<Expr> {
        if !plan.all_out_ref_exprs().is_empty() {
            return self.mark(exists(plan.into()));
        }
        let counted = LogicalPlanBuilder::from(plan)
            .limit(0, Some(1))?
            .aggregate(Vec::<Expr>::new(), vec![count(lit(1_i64))])?;
        let rows = Expr::from(counted.schema().columns().swap_remove(0));
        let asked = counted.project(vec![rows.gt(lit(0_i64))])?.build()?;
        Ok(scalar_subquery(asked.into()).is_true())
    }

    /// Joins DataFusion's mark of a subquery to the input that evaluates it.
    fn mark(&mut self, subquery: Expr) -> Result<Expr> {
        let at = self.side_of(&subquery)?;
        let input = self.inputs[at].clone();
        let filter = Filter::try_new(subquery.is_true(), input.into())?;
        let joined = DecorrelatePredicateSubquery::new()
            .rewrite(LogicalPlan::Filter(filter), self.config)?
            .data;
        let filter = match joined {
            LogicalPlan::Projection(Projection { input, .. }) => input,
            same => same.into(),
        };
        let LogicalPlan::Filter(Filter { predicate, input, .. }) = filter.as_ref() else {
            return internal_err!("a filter by a subquery became a {}", filter.display());
        };
        let Expr::IsTrue(mark) = predicate else {
            return internal_err!("a filter by a subquery became one by {predicate}");
        };
        if has_subquery(mark) {
            return not_impl_err!(
                "a subquery in IN or EXISTS that refers to outer columns in a way that no join \
                 can express; write it as a join"
            );
        }
        self.inputs[at] = input.as_ref().clone();
        Ok(mark.as_ref().clone())
    }

    /// Returns the input that has all outer columns that the subquery references.
    fn side_of(&self, subquery: &Expr) -> Result<usize> {
        let (mut columns, outer) = match subquery {
            Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
                (expr.column_refs().into_iter().cloned().collect(), &subquery.outer_ref_columns)
            }
            Expr::Exists(Exists { subquery, .. }) => (Vec::new(), &subquery.outer_ref_columns),
            _ => (Vec::new(), &Vec::new()),
        };
        for expr in outer {
            if let Expr::OuterReferenceColumn(_, column) = expr {
                columns.push(column.clone());
            }
        }
        let has_all = |input: &LogicalPlan| {
            columns.iter().all(|column| input.schema().index_of_column(column).is_ok())
        };
        match self.inputs.iter().position(has_all) {
            Some(at) => Ok(at),
            None if self.inputs.len() == 1 => Ok(0),
            None => not_impl_err!(
                "a subquery in the ON condition of an outer join that refers to both sides; \
                 compute it for one side first"
            ),
        }
    }
}

fn output(rows: &LogicalPlan) -> Result<Expr> {
    match rows.schema().columns().into_iter().next() {
        Some(column) => Ok(Expr::from(column)),
        None => internal_err!("a subquery without columns"),
    }
}

fn filtered(rows: &LogicalPlan, predicate: Expr) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(rows.clone()).filter(predicate)?.build()
}
