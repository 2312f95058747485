//! `LIMIT 40%`: a share of the rows, counted once all of them are known.
//!
//! ```text
//! SELECT … ORDER BY a LIMIT 40% OFFSET 1      SELECT * FROM $percent((SELECT … ORDER BY a), 40, 1)
//! ```
//!
//! The relation numbers and counts the rows of its query, in their order.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::functions::expr_fn::trunc;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{Sort, WindowFunction};
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, WindowFunctionDefinition, cast, ident,
    lit,
};
use datafusion::sql::sqlparser::ast::{
    Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments, LimitClause, Query, SetExpr,
    TableFactor, Value,
};

use crate::dialect::tree;

/// The placeholder call for a LIMIT in percent.
pub(in crate::dialect) const CALL: &str = "$percent";

const NUMBER: &str = "$number";
const TOTAL: &str = "$total";

/// A limit that keeps the order and all rows.
const ALL: usize = i64::MAX as usize;

/// Makes such a limit a relation, FETCH FIRST … PERCENT too.
pub(in crate::dialect) fn rewrite(query: &mut Query) -> Result<()> {
    let Some(percent) = take(query)? else { return Ok(()) };
    let offset = match query.limit_clause.take() {
        Some(LimitClause::LimitOffset { offset: Some(offset), .. }) => offset.value,
        _ => number("0"),
    };
    let nothing = tree::select(vec![], vec![]);
    let mut whole = std::mem::replace(query, tree::query(SetExpr::Select(Box::new(nothing))));
    // Below a LIMIT, DataFusion keeps the order of a relation.
    let limit = Some(number(&ALL.to_string()));
    whole.limit_clause = Some(LimitClause::LimitOffset { limit, offset: None, limit_by: vec![] });
    let mut relation = tree::relation_of(CALL, vec![whole]);
    if let TableFactor::Function { args, .. } = &mut relation {
        args.extend([percent, offset].map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))));
    }
    *query.body = SetExpr::Select(Box::new(tree::all_of(relation)));
    Ok(())
}

/// The percentage of a query's limit.
fn take(query: &mut Query) -> Result<Option<Ast>> {
    if query.fetch.as_ref().is_some_and(|fetch| fetch.percent && !fetch.with_ties) {
        if query.limit_clause.as_ref().is_some_and(has_limit) {
            return plan_err!("LIMIT and FETCH FIRST exclude each other");
        }
        let quantity = query.fetch.take().and_then(|fetch| fetch.quantity);
        return Ok(Some(quantity.unwrap_or_else(|| number("1"))));
    }
    let Some(LimitClause::LimitOffset { limit: Some(Ast::Function(call)), .. }) =
        &query.limit_clause
    else {
        return Ok(None);
    };
    if call.name.to_string() != CALL {
        return Ok(None);
    }
    match &call.args {
        FunctionArguments::List(list) => match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(percent))] => Ok(Some(percent.clone())),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn has_limit(clause: &LimitClause) -> bool {
    !matches!(clause, LimitClause::LimitOffset { limit: None, .. })
}

fn number(text: &str) -> Ast {
    Ast::Value(Value::Number(text.to_owned(), false).into())
}

/// The share of a plan's rows.
pub(in crate::dialect) fn plan(input: LogicalPlan, args: &[FunctionArg]) -> Result<LogicalPlan> {
    let [_, percent, offset] = args else {
        return plan_err!("a LIMIT in percent must be a number");
    };
    let percent = constant(percent, "LIMIT 40%")?;
    let offset = constant(offset, "OFFSET 2")?;
    if !(0.0..=100.0).contains(&percent) {
        return plan_err!("invalid limit of {percent} percent; expected 0 to 100");
    }
    share(input, percent, offset)
}

/// A percentage of a plan's rows, after an offset.
pub fn share(input: LogicalPlan, percent: f64, offset: f64) -> Result<LogicalPlan> {
    let Ordered { rows, order, shown } = Ordered::from_plan(input);
    let columns: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
    // DataFusion keeps an order only where it is required: for the numbers, and for the rows at the end.
    let numbers = match order.is_empty() {
        true => row_number(),
        false => row_number().order_by(order.clone()).build()?,
    };
    let windows = [numbers, total()?];
    let named = |window: &Expr, name: &str| ident(window.schema_name().to_string()).alias(name);
    let numbered = [named(&windows[0], NUMBER), named(&windows[1], TOTAL)];
    let double = |name: &str| cast(ident(name), DataType::Float64);
    let kept = trunc(vec![double(TOTAL) * lit(percent) / lit(100.0)]) + lit(offset);
    let mut plan = LogicalPlanBuilder::from(rows);
    for window in windows {
        plan = plan.window([window])?;
    }
    let plan = plan
        .project(columns.iter().cloned().chain(numbered))?
        .filter(double(NUMBER).gt(lit(offset)).and(double(NUMBER).lt_eq(kept)))?;
    let plan = match order.is_empty() {
        true => plan,
        false => plan.sort(order)?.limit(0, Some(ALL))?,
    };
    plan.project(shown.unwrap_or(columns))?.build()
}

/// A plan without the order of its rows, and that order.
struct Ordered {
    rows: LogicalPlan,
    order: Vec<Sort>,
    /// The columns that are shown, if not all.
    shown: Option<Vec<Expr>>,
}

impl Ordered {
    fn from_plan(plan: LogicalPlan) -> Self {
        match plan {
            LogicalPlan::Limit(limit) => Self::from_plan(Arc::unwrap_or_clone(limit.input)),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                Self { rows: Arc::unwrap_or_clone(sort.input), order: sort.expr, shown: None }
            }
            LogicalPlan::Projection(projection) => match projection.input.as_ref() {
                LogicalPlan::Sort(sort) if sort.fetch.is_none() => Self {
                    rows: sort.input.as_ref().clone(),
                    order: sort.expr.clone(),
                    shown: Some(projection.expr),
                },
                _ => {
                    let rows = LogicalPlan::Projection(projection);
                    Self { rows, order: Vec::new(), shown: None }
                }
            },
            rows => Self { rows, order: Vec::new(), shown: None },
        }
    }
}

/// The number of all rows, as a column.
fn total() -> Result<Expr> {
    let Expr::AggregateFunction(count) = count(lit(1_i64)) else {
        return plan_err!("count is an aggregate");
    };
    let function = WindowFunctionDefinition::AggregateUDF(count.func);
    Ok(Expr::from(WindowFunction::new(function, count.params.args)))
}

/// A number literal.
fn constant(arg: &FunctionArg, example: &str) -> Result<f64> {
    let text = match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::Value(value))) => match &value.value {
            Value::Number(text, _) => Some(text),
            _ => None,
        },
        _ => None,
    };
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        plan_datafusion_err!("a LIMIT in percent and its OFFSET must be numbers, as in {example}")
    })
}
