//! Mixed dates, times and timestamps, before type coercion.
//!
//! ```text
//! date + interval              a TIMESTAMP; DataFusion drops the hours
//! timestamp - timestamp        days and time; DataFusion counts nanoseconds, which end after 292 years
//! date < timestamp, CASE, IN   both as microseconds; DataFusion takes nanoseconds, which end in 2262
//! d BETWEEN '1999-12-31' AND …  literals of the type of the others: the planner of operators does not see these
//! day < date + interval        days where the interval is of whole days, so that the column stays as it is
//! ```

use std::sync::Arc;

use atoll_functions::without_name;
use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, Cast, InList, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Union,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::sibling_types::{union_with_sibling_types, with_sibling_types};
use crate::arithmetic::windows;
use atoll_sql_common::logical::map_named;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Functions whose arguments are coerced to one type.
const ALIKE: [&str; 4] = ["coalesce", "greatest", "least", "nullif"];

/// Plans sums, differences and comparisons; see the module.
#[derive(Debug, Default)]
pub struct PlanDates;

impl ExprPlanner for PlanDates {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, Minus, NotEq, Plus};
        match expr.op {
            Plus | Minus => {
                let (left, right) = (kind(&expr.left, schema), kind(&expr.right, schema));
                match computed(&mut expr, left, right) {
                    Some(planned) => Ok(PlannerResult::Planned(planned)),
                    None => Ok(PlannerResult::Original(expr)),
                }
            }
            Eq | NotEq | Lt | LtEq | Gt | GtEq
                if !is_other(&expr.left, schema) && !is_other(&expr.right, schema) =>
            {
                let mut sides = [expr.left, expr.right];
                make_alike(&mut sides, schema);
                [expr.left, expr.right] = sides;
                Ok(PlannerResult::Original(expr))
            }
            _ => Ok(PlannerResult::Original(expr)),
        }
    }
}

/// Whether an expression is, as far as a shallow look shows, neither a date nor a timestamp.
fn is_other(expr: &Expr, schema: &DFSchema) -> bool {
    let expr = without_name(expr);
    matches!(expr, Expr::Column(_) | Expr::Literal(..) | Expr::Cast(_))
        && kind(expr, schema).is_none()
}

/// Returns the call for a difference; casts the operands of others where necessary.
fn computed(
    expr: &mut RawBinaryExpr,
    left: Option<DataType>,
    right: Option<DataType>,
) -> Option<Expr> {
    use DataType::{Date32, Duration, Interval, Time64, Timestamp};
    let is_sum = expr.op == BinaryOperator::Plus;
    match (left?, right?) {
        (Date32, Interval(_) | Duration(_)) => cast(&mut expr.left, TIMESTAMP),
        (Interval(_) | Duration(_), Date32) if is_sum => cast(&mut expr.right, TIMESTAMP),
        (Date32, Time64(_)) if is_sum => {
            cast(&mut expr.left, TIMESTAMP);
            cast(&mut expr.right, INTERVAL);
        }
        (Time64(_), Date32) if is_sum => {
            cast(&mut expr.left, INTERVAL);
            cast(&mut expr.right, TIMESTAMP);
        }
        (Timestamp(..), Time64(_)) => cast(&mut expr.right, INTERVAL),
        (Time64(_), Timestamp(..)) if is_sum => cast(&mut expr.left, INTERVAL),
        (Timestamp(_, None), Timestamp(_, None) | Date32) | (Date32, Timestamp(_, None))
            if !is_sum =>
        {
            return between(expr, TIMESTAMP);
        }
        (Timestamp(_, zone @ Some(_)), Timestamp(..) | Date32)
        | (Timestamp(_, None) | Date32, Timestamp(_, zone @ Some(_)))
            if !is_sum =>
        {
            return between(expr, Timestamp(TimeUnit::Microsecond, zone));
        }
        _ => {}
    }
    None
}

/// Returns the type of the difference between two values of a type.
fn between(expr: &mut RawBinaryExpr, of: DataType) -> Option<Expr> {
    let function = atoll_functions::timestamp_minus()?;
    cast(&mut expr.left, of.clone());
    cast(&mut expr.right, of);
    Some(function.call(vec![expr.left.clone(), expr.right.clone()]))
}

fn cast(expr: &mut Expr, to: DataType) {
    let value = std::mem::take(expr);
    *expr = match value {
        Expr::Cast(cast) if *cast.field.data_type() == to => Expr::Cast(cast),
        value => Expr::Cast(Cast::new(Box::new(value), to)),
    };
}

/// Returns the type of an expression that is a date, a time, a timestamp or an interval; None for others. Avoids
/// descending into chains of operators more than necessary.
fn kind(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    use DataType::{Date32, Duration, Interval, Time64, Timestamp};
    let temporal = |of: DataType| {
        matches!(of, Date32 | Time64(_) | Timestamp(..) | Interval(_) | Duration(_)).then_some(of)
    };
    match without_name(expr) {
        Expr::Column(column) => {
            let field = schema.field_from_column(column).ok()?;
            temporal(field.data_type().clone())
        }
        Expr::Literal(value, _) => temporal(value.data_type()),
        Expr::Cast(cast) => temporal(cast.field.data_type().clone()),
        Expr::TryCast(cast) => temporal(cast.field.data_type().clone()),
        Expr::Alias(alias) => kind(&alias.expr, schema),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus | Operator::Minus, right }) => {
            match (kind(left, schema), kind(right, schema)) {
                (Some(Date32), Some(Date32)) => None,
                (Some(Interval(_) | Duration(_)), Some(moment @ (Date32 | Timestamp(..)))) => {
                    Some(moment)
                }
                (Some(left), _) => Some(left),
                (None, right) => right,
            }
        }
        Expr::BinaryExpr(_)
        | Expr::Not(_)
        | Expr::Like(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::InList(_)
        | Expr::InSubquery(_)
        | Expr::Exists(_)
        | Expr::Between(_) => None,
        other => other.get_type(schema).ok().and_then(temporal),
    }
}

/// Casts dates next to timestamps to the timestamp type; if the timestamps are dates plus whole days, casts them to
/// dates instead.
fn make_alike(values: &mut [Expr], schema: &DFSchema) {
    let kinds: Vec<_> = values.iter().map(|value| kind(value, schema)).collect();
    if !kinds.iter().any(|kind| matches!(kind, Some(DataType::Date32))) {
        return;
    }
    let Some(wanted) = kinds.iter().flatten().find(|kind| is_wide(kind)).cloned() else { return };
    let dates = values.iter().zip(&kinds).map(|(value, kind)| match kind {
        Some(DataType::Date32) => Some(value.clone()),
        Some(DataType::Timestamp(..)) => whole_days(value, schema),
        _ => None,
    });
    if let Some(dates) = dates.collect::<Option<Vec<_>>>() {
        return values.iter_mut().zip(dates).for_each(|(value, date)| *value = date);
    }
    for (value, kind) in values.iter_mut().zip(kinds) {
        if kind == Some(DataType::Date32) {
            cast(value, wanted.clone());
        }
    }
}

/// Whether timestamps of the type can represent all dates: those in nanoseconds end in 2262.
fn is_wide(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(unit, _) if *unit != TimeUnit::Nanosecond)
}

/// Rewrites `CAST(date AS TIMESTAMP) + interval` of whole days as `date + interval`.
fn whole_days(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) =
        without_name(expr)
    else {
        return None;
    };
    let has_whole_days = matches!(
        right.as_ref(),
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) if interval.nanoseconds == 0
    );
    if !has_whole_days {
        return None;
    }
    let date = match without_name(left) {
        Expr::Cast(Cast { expr, field }) if *field.data_type() == TIMESTAMP => expr.clone(),
        chain => Box::new(whole_days(chain, schema)?),
    };
    (kind(&date, schema) == Some(DataType::Date32))
        .then(|| Expr::BinaryExpr(BinaryExpr::new(date, *op, right.clone())))
}

/// Casts dates next to timestamps where no operator connects them: BETWEEN, IN, CASE, `coalesce`
/// and similar functions, UNION. Runs before type coercion.
#[derive(Debug, Default)]
pub struct DatesBesideTimestamps;

impl AnalyzerRule for DatesBesideTimestamps {
    fn name(&self) -> &str {
        "dates_beside_timestamps"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_place(&plan)? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| {
            let node = match node {
                LogicalPlan::Union(_) => return union(node),
                LogicalPlan::Window(window) => windows(window)?.data,
                node => node,
            };
            let schema = merge_schema(&node.inputs());
            let rewritten =
                map_named(node, |expr| expr.transform_up(|expr| alike_within(expr, &schema)))?;
            // Types may differ from those that the planner assumed for nodes above.
            rewritten.data.recompute_schema().map(Transformed::yes)
        })
        .data()
    }
}

/// Whether anything in the plan could be rewritten.
fn has_place(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Union(_) | LogicalPlan::Window(_));
        if !found {
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    found |= match expr {
                        Expr::Between(_) | Expr::InList(_) | Expr::Case(_) => true,
                        Expr::BinaryExpr(BinaryExpr { op, .. }) => is_null_safe(*op),
                        Expr::ScalarFunction(call) => ALIKE.contains(&call.func.name()),
                        _ => false,
                    };
                    Ok(stop_if(found))
                })
            })?;
        }
        Ok(stop_if(found))
    })?;
    Ok(found)
}

fn is_null_safe(op: Operator) -> bool {
    matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
}

fn stop_if(found: bool) -> TreeNodeRecursion {
    if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue }
}

fn alike_within(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let has_literals = match &expr {
        Expr::Between(_) | Expr::InList(_) => true,
        Expr::BinaryExpr(BinaryExpr { op, .. }) => is_null_safe(*op),
        _ => false,
    };
    let expr = if has_literals { with_sibling_types(expr, schema)? } else { expr };
    if !is_mixed(&expr, schema) {
        return Ok(Transformed::new_transformed(expr, has_literals));
    }
    Ok(Transformed::yes(match expr {
        Expr::Between(Between { expr, negated, low, high }) => {
            let mut values = [*expr, *low, *high];
            make_alike(&mut values, schema);
            let [expr, low, high] = values.map(Box::new);
            Expr::Between(Between { expr, negated, low, high })
        }
        Expr::InList(InList { mut expr, mut list, negated }) => {
            list.push(std::mem::take(&mut *expr));
            make_alike(&mut list, schema);
            if let Some(last) = list.pop() {
                *expr = last;
            }
            Expr::InList(InList { expr, list, negated })
        }
        Expr::Case(case) => Expr::Case(alike_case(case, schema)),
        Expr::ScalarFunction(ScalarFunction { func, mut args }) => {
            make_alike(&mut args, schema);
            Expr::ScalarFunction(ScalarFunction { func, args })
        }
        other => return Ok(Transformed::no(other)),
    }))
}

/// Whether an expression mixes dates and timestamps that need one type.
fn is_mixed(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Between(Between { expr, low, high, .. }) => {
            are_mixed([expr, low, high].map(AsRef::as_ref), schema)
        }
        Expr::InList(InList { expr, list, .. }) => {
            kind(expr, schema).is_some() && are_mixed(list.iter().chain([expr.as_ref()]), schema)
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            let results = when_then_expr.iter().map(|(_, then)| then.as_ref());
            let conditions = when_then_expr.iter().map(|(when, _)| when.as_ref());
            are_mixed(results.chain(else_expr.as_deref()), schema)
                || expr.is_some() && are_mixed(conditions.chain(expr.as_deref()), schema)
        }
        Expr::ScalarFunction(call) => {
            ALIKE.contains(&call.func.name()) && are_mixed(&call.args, schema)
        }
        _ => false,
    }
}

fn are_mixed<'a>(values: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> bool {
    let (mut has_date, mut has_timestamp) = (false, false);
    for value in values {
        match kind(value, schema) {
            Some(DataType::Date32) => has_date = true,
            Some(DataType::Timestamp(..)) => has_timestamp = true,
            _ => {}
        }
    }
    has_date && has_timestamp
}

fn alike_case(case: Case, schema: &DFSchema) -> Case {
    let Case { expr, when_then_expr, else_expr } = case;
    let (whens, thens): (Vec<_>, Vec<_>) = when_then_expr.into_iter().unzip();
    let mut conditions: Vec<Expr> = whens.into_iter().map(|when| *when).collect();
    let mut results: Vec<Expr> = thens.into_iter().map(|then| *then).collect();
    let operand = expr.map(|operand| {
        conditions.push(*operand);
        make_alike(&mut conditions, schema);
        conditions.pop().map(Box::new)
    });
    let otherwise = else_expr.map(|otherwise| results.push(*otherwise)).is_some();
    make_alike(&mut results, schema);
    let else_expr = if otherwise { results.pop().map(Box::new) } else { None };
    let branches = conditions.into_iter().map(Box::new).zip(results.into_iter().map(Box::new));
    Case { expr: operand.flatten(), when_then_expr: branches.collect(), else_expr }
}

/// A UNION in which some inputs have dates where others have timestamps.
fn union(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = node else { return Ok(Transformed::no(node)) };
    let union = union_with_sibling_types(union)?;
    let type_of = |input: &LogicalPlan, at: usize| {
        input.schema().fields().get(at).map(|field| field.data_type().clone())
    };
    let columns = union.schema.fields().len();
    let wanted: Vec<Option<DataType>> = (0..columns)
        .map(|at| {
            let of = || union.inputs.iter().filter_map(|input| type_of(input, at));
            let has_dates = of().any(|of| of == DataType::Date32);
            of().find(is_wide).filter(|_| has_dates)
        })
        .collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(Transformed::yes(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.iter().map(|input| {
        let schema = input.schema();
        let columns = schema.iter().zip(&wanted).map(|((table, field), wanted)| {
            let column = Expr::Column(Column::new(table.cloned(), field.name()));
            match wanted {
                Some(wanted) if *field.data_type() == DataType::Date32 => {
                    Expr::Cast(Cast::new(Box::new(column), wanted.clone()))
                        .alias_qualified(table.cloned(), field.name())
                }
                _ => column,
            }
        });
        let columns: Vec<Expr> = columns.collect();
        LogicalPlanBuilder::from(Arc::clone(input)).project(columns)?.build()
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let inputs = inputs.into_iter().map(Arc::new).collect();
    Union::try_new_with_loose_types(inputs).map(LogicalPlan::Union).map(Transformed::yes)
}
