//! `a ASOF JOIN b ON a.k = b.k AND a.t >= b.t`: joins each row with the nearest row of the other side.
//!
//! ```text
//! both sides in the order of t, with the greatest t of b so far      a window over a UNION ALL
//! a, each row with that t                                            a join on the numbers of its rows
//! joined to the rows of b that have it                               a join on k and t
//! ```
//!
//! One of several rows of `b` with the same `k` and `t` is used. With USING the last column is the one that is
//! compared by `>=`.

use datafusion::common::{Column, JoinType, Result, plan_err};
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{Sort, WindowFunction};
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprFunctionExt, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
    WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, lit,
};
use datafusion::prelude::ident;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Join, JoinConstraint, JoinOperator, ObjectName};

const ROW: &str = "$row";
const SIDE: &str = "$side";
const AT: &str = "$at";
const NEAREST: &str = "$nearest";
const DUPLICATE: &str = "$duplicate";

/// The condition of an ASOF JOIN.
struct Condition {
    /// Equal expressions of the left and the right side.
    keys: Vec<(Expr, Expr)>,
    /// The ordered ones.
    at: (Expr, Expr),
    op: Operator,
}

pub(in crate::dialect) fn plan(
    left: LogicalPlan,
    right: LogicalPlan,
    join: &Join,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let (kind, constraint) = match &join.join_operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            (JoinType::Inner, constraint)
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            (JoinType::Left, constraint)
        }
        _ => return plan_err!("ASOF JOIN is an inner or a LEFT join; change the sides for RIGHT"),
    };
    let mut dropped = Vec::new();
    let condition = match constraint {
        JoinConstraint::On(on) => {
            let schema = left.schema().join(right.schema())?;
            let on = context.sql_to_expr(on.clone(), &schema)?;
            Condition::from_on(on, &left, &right)?
        }
        JoinConstraint::Using(names) => {
            let condition = using(names, &left, &right, context)?;
            dropped.extend(condition.keys.iter().map(|(_, right)| right.clone()));
            dropped.push(condition.at.1.clone());
            condition
        }
        _ => return plan_err!("ASOF JOIN needs a condition: ON a.k = b.k AND a.t >= b.t"),
    };
    let right_columns = right.schema().columns().into_iter().map(Expr::Column);
    let right_columns = right_columns.filter(|column| !dropped.contains(column));
    let columns: Vec<Expr> =
        left.schema().columns().into_iter().map(Expr::Column).chain(right_columns).collect();
    condition.join(left, right, kind)?.project(columns)?.build()
}

fn using(
    names: &[ObjectName],
    left: &LogicalPlan,
    right: &LogicalPlan,
    context: &mut dyn RelationPlannerContext,
) -> Result<Condition> {
    let mut pairs = Vec::new();
    for name in names {
        let Some(name) = name.0.last().and_then(|part| part.as_ident()) else {
            return plan_err!("USING takes columns; {name} is not one");
        };
        let name = context.normalize_ident(name.clone());
        let of = |plan: &LogicalPlan| {
            plan.schema()
                .qualified_field_with_unqualified_name(&name)
                .map(|field| Expr::Column(Column::from(field)))
        };
        pairs.push((of(left)?, of(right)?));
    }
    match pairs.pop() {
        Some(at) => Ok(Condition { keys: pairs, at, op: Operator::GtEq }),
        None => plan_err!("USING names at least one column"),
    }
}

impl Condition {
    fn from_on(on: Expr, left: &LogicalPlan, right: &LogicalPlan) -> Result<Self> {
        let (mut keys, mut ordered) = (Vec::new(), None);
        let is_of = |expr: &Expr, plan: &LogicalPlan| {
            expr.column_refs().into_iter().all(|column| plan.schema().has_column(column))
        };
        for conjunct in split_conjunction_owned(on) {
            let Expr::BinaryExpr(BinaryExpr { left: one, op, right: other }) = conjunct else {
                return plan_err!("ASOF JOIN compares columns: ON a.k = b.k AND a.t >= b.t");
            };
            let (one, op, other) = match (is_of(&one, left), is_of(&other, right)) {
                (true, true) => (*one, op, *other),
                _ if is_of(&other, left) && is_of(&one, right) => match op.swap() {
                    Some(op) => (*other, op, *one),
                    None => return plan_err!("ASOF JOIN cannot compare by {op}"),
                },
                _ => {
                    return plan_err!(
                        "each comparison of an ASOF JOIN must compare one side with the other"
                    );
                }
            };
            match op {
                Operator::Eq => keys.push((one, other)),
                Operator::Gt | Operator::GtEq | Operator::Lt | Operator::LtEq
                    if ordered.is_none() =>
                {
                    ordered = Some(((one, other), op));
                }
                _ => return plan_err!("ASOF JOIN takes equalities and one of <, <=, > and >="),
            }
        }
        match ordered {
            Some((at, op)) => Ok(Self { keys, at, op }),
            None => plan_err!("ASOF JOIN needs one comparison by <, <=, > or >="),
        }
    }

    fn join(
        self,
        left: LogicalPlan,
        right: LogicalPlan,
        kind: JoinType,
    ) -> Result<LogicalPlanBuilder> {
        let Self { keys, at, op } = self;
        let (left, right) = (numbered(left, ROW, vec![])?, at_once(right, &keys, &at.1)?);
        let names: Vec<String> = (0..keys.len()).map(|key| format!("$key{key}")).collect();
        let type_of = |expr: &Expr, plan: &LogicalPlan| expr.get_type(plan.schema());
        let number = type_of(&ident(ROW), &left)?;
        let instant = type_of(&at.1, &right)?;
        // Both sides as keys, instant, row of the left one, instant of the right one.
        let named = |exprs: Vec<&Expr>| -> Vec<Expr> {
            exprs.into_iter().zip(&names).map(|(expr, name)| expr.clone().alias(name)).collect()
        };
        let mut of_left = named(keys.iter().map(|(key, _)| key).collect());
        of_left.push(at.0.clone().alias(AT));
        of_left.push(ident(ROW));
        of_left.push(lit(ScalarValue::try_from(&instant)?).alias(NEAREST));
        of_left.push(lit(1_i32).alias(SIDE));
        let mut of_right = named(keys.iter().map(|(_, key)| key).collect());
        of_right.push(at.1.clone().alias(AT));
        of_right.push(lit(ScalarValue::try_from(&number)?).alias(ROW));
        of_right.push(at.1.clone().alias(NEAREST));
        of_right.push(lit(0_i32).alias(SIDE));
        let upwards = matches!(op, Operator::Gt | Operator::GtEq);
        let right_first = matches!(op, Operator::GtEq | Operator::LtEq);
        let nearest = if upwards { max(ident(NEAREST)) } else { min(ident(NEAREST)) };
        let Expr::AggregateFunction(nearest) = nearest else {
            return plan_err!("max and min are aggregates");
        };
        let function = WindowFunctionDefinition::AggregateUDF(nearest.func);
        let window = Expr::from(WindowFunction::new(function, nearest.params.args))
            .partition_by(names.iter().map(ident).collect())
            .order_by(vec![
                Sort::new(ident(AT), upwards, true),
                Sort::new(ident(SIDE), right_first, true),
            ])
            .window_frame(WindowFrame::new_bounds(
                WindowFrameUnits::Rows,
                WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
                WindowFrameBound::CurrentRow,
            ))
            .build()?;
        let found = ident(window.schema_name().to_string()).alias("$found");
        let times = LogicalPlanBuilder::from(left.clone()).project(of_left)?;
        let others = LogicalPlanBuilder::from(right.clone()).project(of_right)?.build()?;
        let times = times
            .union(others)?
            .window([window])?
            .filter(ident(SIDE).eq(lit(1_i32)))?
            .project([ident(ROW).alias("$of_row"), found])?
            .build()?;
        let rows = (vec![Column::from_name(ROW)], vec![Column::from_name("$of_row")]);
        let mut on: Vec<Expr> = keys.into_iter().map(|(one, other)| one.eq(other)).collect();
        on.push(ident("$found").eq(at.1));
        LogicalPlanBuilder::from(left)
            .join(times, JoinType::Inner, rows, None)?
            .join_on(right, kind, on)
    }
}

/// A plan with numbered rows, partitioned by some columns or over all rows.
fn numbered(plan: LogicalPlan, name: &str, within: Vec<Expr>) -> Result<LogicalPlan> {
    let mut columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let number = match within.is_empty() {
        true => row_number(),
        false => row_number().partition_by(within).build()?,
    };
    columns.push(ident(number.schema_name().to_string()).alias(name));
    LogicalPlanBuilder::from(plan).window([number])?.project(columns)?.build()
}

/// One row of those with equal keys.
fn at_once(right: LogicalPlan, keys: &[(Expr, Expr)], at: &Expr) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = right.schema().columns().into_iter().map(Expr::Column).collect();
    let within = keys.iter().map(|(_, key)| key.clone()).chain([at.clone()]).collect();
    LogicalPlanBuilder::from(numbered(right, DUPLICATE, within)?)
        .filter(ident(DUPLICATE).eq(lit(1_u64)))?
        .project(columns)?
        .build()
}
