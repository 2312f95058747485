//! Subqueries in branches that SQL evaluates only for some rows.
//!
//! ```text
//! CASE WHEN t.a <> 0 THEN (SELECT 10 / u.x FROM u WHERE u.k = t.k) END
//!
//!   t LEFT JOIN (the subquery, for the values of t.k in rows where t.a <> 0 IS TRUE) ON t.k
//! ```
//!
//! A join evaluates a subquery for all rows of the outer query. If that may fail, or calls functions with
//! side effects, only rows that reach the subquery count: rows for which earlier branches of a CASE are not taken,
//! earlier arguments of COALESCE are NULL, and the left side of AND or OR does not decide. These conditions must not
//! call volatile functions, because they are evaluated twice.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Case, InSubquery, ScalarFunction};
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit,
};

use super::columns::{outer_columns, unused, unwrapped};
use super::gate::{gate, gated};
use super::repeat::{can_repeat, repeatable};
use super::{Asked, has_one_row, inlined, plain, quantified, with_value};
use crate::arithmetic::{Failure, failure};
use crate::volatile::is_volatile;

/// Functions that evaluate an argument only if the previous ones are NULL.
const COALESCING: [&str; 2] = ["coalesce", "nvl"];

/// Whether a node has a subquery to join, or to hide from rows that do not reach it.
pub(super) fn has_some(node: &LogicalPlan) -> Result<bool> {
    let is_computed_for_rows = match node {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Window(_) => true,
        LogicalPlan::Join(join) => join.join_type == JoinType::Inner,
        _ => false,
    };
    let mut found = false;
    node.apply_expressions(|expr| {
        found = found || expr.exists(|expr| is_joined(expr, node, is_computed_for_rows))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

fn is_joined(expr: &Expr, node: &LogicalPlan, is_computed_for_rows: bool) -> Result<bool> {
    let Some(Subquery { subquery, .. }) = subquery_of(expr) else { return Ok(false) };
    Ok(plain::is_dependent(expr, node)
        || (is_computed_for_rows && (is_volatile(subquery)? || is_unsafe(expr, Failure::Never)?)))
}

/// Returns the subquery of an expression.
pub(super) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(membership) => Some(&membership.subquery),
        Expr::SetComparison(comparison) => Some(&comparison.subquery),
        _ => None,
    }
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(subquery_of(expr).is_some())).unwrap_or(true)
}

/// The errors that evaluating a plan may raise.
pub(super) fn failure_of(plan: &LogicalPlan) -> Result<Failure> {
    let mut worst = Failure::Never;
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            worst = worst.max(failure(expr, &schema));
            let has_many = expr.exists(|expr| Ok(is_many(expr)))?;
            worst = if has_many { Failure::Any } else { worst };
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(match worst {
            Failure::Any => TreeNodeRecursion::Stop,
            _ => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(worst)
}

/// Whether an expression is a scalar subquery that may return more than one row.
fn is_many(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(subquery) if !has_one_row(&subquery.subquery))
}

/// Whether evaluating a subquery may raise more errors than this.
pub(super) fn is_unsafe(expr: &Expr, allowed: Failure) -> Result<bool> {
    let Some(Subquery { subquery, .. }) = subquery_of(expr) else { return Ok(false) };
    Ok((allowed == Failure::Never && is_many(expr)) || failure_of(subquery)? > allowed)
}

/// Joins the subqueries of expressions to a plan, and tracks which of its rows evaluate an expression.
pub(super) struct Attached<'a> {
    node: &'a LogicalPlan,
    /// The rows for which the expressions are evaluated, with the values of the subqueries.
    pub(super) input: LogicalPlan,
    /// Conditions that are all true for rows that reach the current expression.
    conditions: Vec<Expr>,
    /// The errors that need no guard.
    allowed: Failure,
    /// Whether the current expression is an IN that filters rows, which DataFusion joins itself.
    is_join: bool,
}

impl<'a> Attached<'a> {
    pub(super) fn to(node: &'a LogicalPlan, input: LogicalPlan) -> Self {
        Self { node, input, conditions: vec![], allowed: Failure::Never, is_join: false }
    }

    /// Rewrites a filter's predicate. Conjuncts without subqueries come first because they are cheaper.
    pub(super) fn predicate(&mut self, predicate: Expr) -> Result<Expr> {
        let (with, mut conjuncts): (Vec<_>, Vec<_>) =
            split_conjunction_owned(predicate).into_iter().partition(has_subquery);
        // Joins of large tables matter more than a guard against overflows.
        self.allowed = Failure::Overflow;
        for conjunct in with {
            let is_join = matches!(&conjunct, Expr::InSubquery(_) | Expr::Exists(_) | Expr::Not(_));
            self.conditions = if is_join { vec![] } else { conjuncts.clone() };
            self.is_join = matches!(&conjunct, Expr::InSubquery(found) if !found.negated);
            conjuncts.push(self.value(conjunct)?);
        }
        self.is_join = false;
        self.conditions.clear();
        self.allowed = Failure::Never;
        Ok(conjunction(conjuncts).unwrap_or_else(|| lit(true)))
    }

    /// Replaces joined subqueries by columns.
    pub(super) fn value(&mut self, expr: Expr) -> Result<Expr> {
        let reached = self.conditions.len();
        let allowed = self.allowed;
        let expr = match expr {
            expr if !has_subquery(&expr) => return Ok(expr),
            Expr::Case(case) => self.case(case),
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: op @ (Operator::And | Operator::Or),
                right,
            }) => self.chain(op, *left, *right),
            Expr::ScalarFunction(call) if COALESCING.contains(&call.func.name()) => {
                self.coalesce(call)
            }
            Expr::AggregateFunction(call) if call.params.filter.is_some() => self.aggregate(call),
            other => {
                let expr =
                    other.map_children(|child| self.value(child).map(Transformed::yes)).data()?;
                return self.subquery(expr);
            }
        };
        self.conditions.truncate(reached);
        self.allowed = allowed;
        expr
    }

    /// Whatever follows this condition is reached if it is true.
    fn only_where(&mut self, condition: Expr) {
        self.allowed = Failure::Never;
        self.conditions.push(condition);
    }

    fn case(&mut self, case: Case) -> Result<Expr> {
        let operand = case.expr.map(|operand| self.value(*operand)).transpose()?;
        let mut branches = Vec::with_capacity(case.when_then_expr.len());
        for (when, then) in case.when_then_expr {
            let when = self.value(*when)?;
            let condition = match &operand {
                Some(operand) => operand.clone().eq(when.clone()),
                None => when.clone(),
            };
            self.only_where(condition.clone().is_true());
            let then = self.value(*then)?;
            self.conditions.pop();
            self.only_where(condition.is_not_true());
            branches.push((Box::new(when), Box::new(then)));
        }
        let otherwise = case.else_expr.map(|otherwise| self.value(*otherwise)).transpose()?;
        Ok(Expr::Case(Case::new(operand.map(Box::new), branches, otherwise.map(Box::new))))
    }

    /// Rewrites a chain of ANDs or ORs, which may be long.
    fn chain(&mut self, op: Operator, left: Expr, right: Expr) -> Result<Expr> {
        let mut rest = vec![right];
        let mut first = left;
        while let Expr::BinaryExpr(BinaryExpr { left, op: inner, right }) = first {
            if inner != op {
                first = Expr::BinaryExpr(BinaryExpr { left, op: inner, right });
                break;
            }
            rest.push(*right);
            first = *left;
        }
        let mut chain = self.value(first)?;
        let mut last = chain.clone();
        while let Some(operand) = rest.pop() {
            self.only_where(match op {
                Operator::And => last.is_not_false(),
                _ => last.is_not_true(),
            });
            let operand = self.value(operand)?;
            last = operand.clone();
            chain = Expr::BinaryExpr(BinaryExpr::new(Box::new(chain), op, Box::new(operand)));
        }
        Ok(chain)
    }

    fn coalesce(&mut self, call: ScalarFunction) -> Result<Expr> {
        let mut args = Vec::with_capacity(call.args.len());
        for arg in call.args {
            let arg = self.value(arg)?;
            self.only_where(arg.clone().is_null());
            args.push(arg);
        }
        Ok(Expr::ScalarFunction(ScalarFunction { func: call.func, args }))
    }

    /// An aggregate reads the rows that pass its FILTER.
    fn aggregate(&mut self, mut call: AggregateFunction) -> Result<Expr> {
        if let Some(filter) = call.params.filter.take() {
            let filter = self.value(*filter)?;
            self.only_where(filter.clone().is_true());
            call.params.filter = Some(Box::new(filter));
        }
        let filter = call.params.filter.take();
        let call = Expr::AggregateFunction(call)
            .map_children(|child| self.value(child).map(Transformed::yes))
            .data()?;
        Ok(match call {
            Expr::AggregateFunction(mut call) => {
                call.params.filter = filter;
                Expr::AggregateFunction(call)
            }
            other => other,
        })
    }

    /// Returns which rows reach the subquery if it must be hidden from the others: only if both the condition and the
    /// rows of the outer plan can be evaluated twice.
    fn reached(&self, expr: &Expr, volatile: bool) -> Result<Option<Expr>> {
        if self.conditions.is_empty()
            || self.conditions.iter().any(Expr::is_volatile)
            || !(volatile || is_unsafe(expr, self.allowed)?)
            || !can_repeat(&self.input)?
        {
            return Ok(None);
        }
        Ok(conjunction(self.conditions.iter().cloned()))
    }

    /// Joins a subquery to the input and returns the column with its value.
    fn subquery(&mut self, expr: Expr) -> Result<Expr> {
        let Some(Subquery { subquery, .. }) = subquery_of(&expr) else { return Ok(expr) };
        let rows = without_output(&expr, subquery);
        let is_correlated = !outer_columns(&rows, None)?.is_empty();
        let volatile = is_volatile(&rows)?;
        let reached = self.reached(&expr, volatile)?;
        let is_dependent = plain::is_dependent(&expr, self.node);
        let stays = !is_dependent && reached.is_none();
        let rows = match expr {
            Expr::ScalarSubquery(subquery) if stays && volatile => return apart(subquery),
            Expr::ScalarSubquery(_) | Expr::SetComparison(_) if stays && !volatile => {
                return Ok(expr);
            }
            Expr::ScalarSubquery(_) => rows,
            Expr::InSubquery(membership) if !is_dependent && (!volatile || self.is_join) => {
                match (&reached, is_correlated) {
                    (None, _) => return Ok(Expr::InSubquery(membership)),
                    (Some(reached), false) if !reached.contains_outer() => {
                        return self.gated_membership(membership, reached);
                    }
                    _ => quantified::counted(Expr::InSubquery(membership), self.input.schema())?,
                }
            }
            Expr::Exists(mut exists) => {
                exists.subquery.subquery = rows.into();
                match stays {
                    true => return Ok(Expr::Exists(exists)),
                    false => quantified::counted(Expr::Exists(exists), self.input.schema())?,
                }
            }
            other => quantified::counted(other, self.input.schema())?,
        };
        if (is_correlated || !volatile)
            && let Some(value) = inlined(&rows)?
        {
            return self.value(unwrapped(value, self.input.schema())?);
        }
        let before = std::mem::take(&mut self.input);
        let asked = Asked { reached, each: volatile && is_correlated };
        let (plan, value) = with_value(before, rows, asked)?;
        self.input = plan;
        Ok(Expr::Column(value))
    }

    /// An IN whose rows are evaluated only if a row needs them.
    fn gated_membership(&mut self, membership: InSubquery, reached: &Expr) -> Result<Expr> {
        let InSubquery { expr, subquery, negated } = membership;
        let rows = LogicalPlan::clone(&subquery.subquery);
        self.input = repeatable(std::mem::take(&mut self.input))?;
        let gate = gate(self.input.clone(), Some(reached.clone()))?;
        let subquery = Subquery { subquery: gated(rows, &gate)?.into(), ..subquery };
        Ok(Expr::InSubquery(InSubquery { expr, subquery, negated }))
    }
}

/// EXISTS does not evaluate the calls that a subquery selects.
fn without_output(expr: &Expr, rows: &LogicalPlan) -> LogicalPlan {
    match (expr, rows) {
        (Expr::Exists(_), LogicalPlan::Projection(projection))
            if projection.expr.iter().any(Expr::is_volatile) =>
        {
            LogicalPlan::clone(&projection.input)
        }
        (_, rows) => rows.clone(),
    }
}

/// Renames the subquery: DataFusion evaluates equal subqueries only once.
fn apart(subquery: Subquery) -> Result<Expr> {
    let rows = LogicalPlanBuilder::from(LogicalPlan::clone(&subquery.subquery));
    let rows = rows.alias(unused("drawn"))?.build()?;
    Ok(Expr::ScalarSubquery(Subquery { subquery: rows.into(), ..subquery }))
}
