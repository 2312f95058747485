//! Intervals compared, ordered and grouped by length, as in PostgreSQL: a month is 30 days and a day is 24 hours, so
//! that one day equals 24 hours. DataFusion compares months, then days, then nanoseconds.
//!
//! ```text
//! a < b, BETWEEN, IN, ANY, CASE a WHEN b  their lengths
//! ORDER BY a, joins on a, DISTINCT ON     likewise
//! array_contains(list, a) and its kin     likewise
//! greatest, least, nullif                 functions that pick by lengths
//! GROUP BY a, DISTINCT                    groups of lengths, each with the first of its intervals
//! ```
//!
//! The same applies to lists and structs that contain intervals.

use std::sync::{Arc, LazyLock};

use atoll_functions::temporal::{measured, measured_type};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, Case, InList, InSubquery, ScalarFunction, SetComparison,
    Sort as SortKey,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, ColumnarValue, Distinct, DistinctOn, Expr, ExprSchemable, GroupingSet,
    Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder, Operator, Projection,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility, Window, lit,
    when,
};

use super::bounds::type_of;
use super::interval_choice::{IntervalChoice, choice_named};

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Length::default())));

/// List functions that compare elements and do not return any.
const OF_LISTS: [&str; 5] =
    ["array_has", "array_has_all", "array_has_any", "array_position", "array_positions"];

/// Returns the length of an interval.
fn length(interval: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&FUNCTION), vec![interval]))
}

/// A function, hidden from SQL, that returns the length of an interval in nanoseconds, also inside nested values.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Length {
    signature: Signature,
}

impl Default for Length {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Length {
    fn name(&self) -> &str {
        "interval_length"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        match given {
            [of] => Ok(measured_type(of).unwrap_or_else(|| of.clone())),
            other => exec_err!("the length of {} intervals", other.len()),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &arguments.args[..] {
            [ColumnarValue::Array(intervals)] => ColumnarValue::Array(measured(intervals)?),
            [ColumnarValue::Scalar(interval)] => {
                let lengths = measured(&interval.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&lengths, 0)?)
            }
            other => return exec_err!("the length of {} intervals", other.len()),
        })
    }
}

/// Rewrites a comparison of intervals; None for other expressions.
pub(super) fn compared(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let is_interval = |expr: &Expr| type_of(expr, schema).map(|of| measured_type(&of).is_some());
    let of = |expr: &Expr| Box::new(length(expr.clone()));
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(*op) && is_interval(right)? && is_interval(left)? =>
        {
            Some(Expr::BinaryExpr(BinaryExpr::new(of(left), *op, of(right))))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_interval(expr)? => {
            Some(Expr::Between(Between::new(of(expr), *negated, of(low), of(high))))
        }
        Expr::InList(InList { expr, list, negated }) if is_interval(expr)? => {
            let list = list.iter().cloned().map(length).collect();
            Some(Expr::InList(InList::new(of(expr), list, *negated)))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) if is_interval(expr)? => {
            let subquery = lengths_of(subquery)?;
            Some(Expr::InSubquery(InSubquery::new(of(expr), subquery, *negated)))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })
            if is_interval(expr)? =>
        {
            let subquery = lengths_of(subquery)?;
            let compared = SetComparison::new(of(expr), subquery, *op, *quantifier);
            Some(Expr::SetComparison(compared))
        }
        Expr::Case(Case { expr: Some(operand), when_then_expr, else_expr })
            if is_interval(operand)? =>
        {
            let branches = when_then_expr.iter().map(|(when, then)| (of(when), then.clone()));
            Some(Expr::Case(Case::new(Some(of(operand)), branches.collect(), else_expr.clone())))
        }
        Expr::ScalarFunction(call) if OF_LISTS.contains(&call.func.name()) => {
            with_lengths(call, schema)?
        }
        Expr::ScalarFunction(call) => match (choice_named(call.func.name()), call.args.first()) {
            (Some(choice), Some(first)) if is_interval(first)? => {
                let function = Arc::new(ScalarUDF::from(IntervalChoice::new(choice)));
                let call = ScalarFunction::new_udf(function, call.args.clone());
                Some(Expr::ScalarFunction(call))
            }
            _ => None,
        },
        _ => None,
    })
}

/// Replaces interval arguments of a call by their lengths; `None` if no argument is an interval.
fn with_lengths(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let mut found = false;
    let mut args = Vec::with_capacity(call.args.len());
    for argument in &call.args {
        let is_interval = measured_type(&type_of(argument, schema)?).is_some();
        args.push(if is_interval { length(argument.clone()) } else { argument.clone() });
        found |= is_interval;
    }
    Ok(found.then(|| Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&call.func), args))))
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Replaces a subquery's single column by its length.
fn lengths_of(subquery: &Subquery) -> Result<Subquery> {
    let columns = subquery.subquery.schema().columns().into_iter();
    let columns = columns.map(|column| length(Expr::Column(column))).collect();
    let plan = Projection::try_new(columns, Arc::clone(&subquery.subquery))?;
    Ok(subquery.with_plan(Arc::new(LogicalPlan::Projection(plan))))
}

/// Rewrites a node to sort, group and join intervals by their lengths.
pub(super) fn by_length(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Sort(mut sort) => {
            let mut found = false;
            sort.expr = keys(sort.expr, sort.input.schema(), &mut found);
            let plan = LogicalPlan::Sort(sort);
            Ok(if found { Transformed::yes(plan) } else { Transformed::no(plan) })
        }
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
        LogicalPlan::Distinct(Distinct::On(mut distinct)) => {
            let found = distinct_on(&mut distinct);
            let plan = LogicalPlan::Distinct(Distinct::On(distinct));
            Ok(if found { Transformed::yes(plan) } else { Transformed::no(plan) })
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let mut fields = input.schema().fields().iter();
            if !fields.any(|field| measured_type(field.data_type()).is_some()) {
                return Ok(Transformed::no(LogicalPlan::Distinct(Distinct::All(input))));
            }
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            grouped(Aggregate::try_new(input, columns, vec![])?)
        }
        LogicalPlan::Join(join) => joined(join),
        other => Ok(Transformed::no(other)),
    }
}

/// Whether an expression is an interval or contains intervals.
fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| measured_type(&of).is_some())
}

/// Compares rows for DISTINCT ON by lengths; returns whether there are intervals among the keys.
fn distinct_on(distinct: &mut DistinctOn) -> bool {
    let mut found = false;
    let schema = Arc::clone(distinct.input.schema());
    let on = std::mem::take(&mut distinct.on_expr).into_iter();
    distinct.on_expr = on.map(|expr| key(expr, &schema, &mut found)).collect();
    if let Some(sort) = distinct.sort_expr.take() {
        distinct.sort_expr = Some(keys(sort, &schema, &mut found));
    }
    found
}

/// Returns the expression, or its length if it is an interval.
fn key(expr: Expr, schema: &DFSchema, found: &mut bool) -> Expr {
    if !is_interval(&expr, schema) {
        return expr;
    }
    *found = true;
    length(expr.unalias())
}

fn keys(keys: Vec<SortKey>, schema: &DFSchema, found: &mut bool) -> Vec<SortKey> {
    keys.into_iter().map(|of| SortKey { expr: key(of.expr, schema, found), ..of }).collect()
}

/// Whether a key, a function's argument or its sort key is an interval.
fn has_intervals(expr: &Expr, schema: &DFSchema) -> bool {
    let is_one = |expr: &Expr| is_interval(expr, schema);
    match expr {
        Expr::Alias(alias) => has_intervals(&alias.expr, schema),
        Expr::GroupingSet(set) => set.distinct_expr().into_iter().any(is_one),
        Expr::AggregateFunction(function) => {
            let params = &function.params;
            params.args.iter().any(is_one) || params.order_by.iter().any(|key| is_one(&key.expr))
        }
        Expr::WindowFunction(function) => {
            let params = &function.params;
            params.partition_by.iter().any(is_one)
                || params.order_by.iter().any(|key| is_one(&key.expr))
                || params.distinct && params.args.iter().any(is_one)
        }
        key => is_one(key),
    }
}

/// Rewrites windows with interval keys to use their lengths. Runs before type coercion, since DataFusion has no RANGE
/// frames over intervals.
pub(crate) fn windows(mut window: Window) -> Result<Transformed<LogicalPlan>> {
    let schema = window.input.schema();
    if !window.window_expr.iter().any(|function| has_intervals(function, schema)) {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    fn by_length(function: Expr, schema: &DFSchema, found: &mut bool) -> Expr {
        match function {
            Expr::Alias(mut alias) => {
                *alias.expr = by_length(*alias.expr, schema, found);
                Expr::Alias(alias)
            }
            Expr::WindowFunction(mut function) => {
                let is_count = function.fun.name() == "count";
                let params = &mut function.params;
                if params.distinct && is_count {
                    let args = std::mem::take(&mut params.args).into_iter();
                    params.args = args.map(|argument| key(argument, schema, found)).collect();
                }
                let parts = std::mem::take(&mut params.partition_by).into_iter();
                params.partition_by = parts.map(|part| key(part, schema, found)).collect();
                params.order_by = keys(std::mem::take(&mut params.order_by), schema, found);
                Expr::WindowFunction(function)
            }
            other => other,
        }
    }
    let (mut found, names) = (false, NamePreserver::new_for_projection());
    let schema = Arc::clone(window.input.schema());
    let functions = std::mem::take(&mut window.window_expr).into_iter().map(|function| {
        let name = names.save(&function);
        name.restore(by_length(function, &schema, &mut found))
    });
    window.window_expr = functions.collect();
    Ok(match found {
        true => {
            let window = Window::try_new(window.window_expr, window.input)?;
            Transformed::yes(LogicalPlan::Window(window))
        }
        false => Transformed::no(LogicalPlan::Window(window)),
    })
}

fn joined(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let mut found = false;
    for (left, right) in &mut join.on {
        if is_interval(left, join.left.schema()) && is_interval(right, join.right.schema()) {
            *left = length(std::mem::take(left));
            *right = length(std::mem::take(right));
            found = true;
        }
    }
    if found {
        // The keys of USING must be columns.
        join.join_constraint = JoinConstraint::On;
    }
    let plan = LogicalPlan::Join(join);
    Ok(if found { Transformed::yes(plan) } else { Transformed::no(plan) })
}

/// Groups by length; each group keeps the first of its intervals.
fn grouped(mut aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let mut exprs = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
    if !exprs.any(|expr| has_intervals(expr, aggregate.input.schema())) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let schema = Arc::clone(aggregate.input.schema());
    let (mut found, names) = (false, NamePreserver::new_for_projection());
    let functions = std::mem::take(&mut aggregate.aggr_expr).into_iter().map(|function| {
        let name = names.save(&function);
        name.restore(counted(function, &schema, &mut found))
    });
    let mut functions: Vec<Expr> = functions.collect();
    let before = functions.len();
    // The key columns come first, then, with grouping sets, the grouping ID, then the aggregates.
    let keys = aggregate.schema.fields().len() - before;
    let mut firsts = vec![None; keys];
    for (place, expr) in grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter().enumerate() {
        if is_interval(expr, &schema) {
            firsts[place] = Some(keys + functions.len());
            functions.push(first(expr.clone().unalias()));
        }
    }
    let has_sets = matches!(&aggregate.group_expr[..], [Expr::GroupingSet(_)]);
    let group = aggregate.group_expr.into_iter().map(|expr| group_key(expr, &schema));
    let is_grouped = functions.len() > before;
    let made = Aggregate::try_new(aggregate.input, group.collect(), functions)?;
    if !is_grouped {
        let plan = LogicalPlan::Aggregate(made);
        return Ok(if found { Transformed::yes(plan) } else { Transformed::no(plan) });
    }
    let column = |place: usize| Expr::Column(Column::from(made.schema.qualified_field(place)));
    let mut columns = Vec::with_capacity(keys + before);
    for (place, (table, field)) in aggregate.schema.iter().enumerate() {
        let value = match firsts.get(place).copied().flatten() {
            // The key is NULL in the grouping sets that omit it.
            Some(first) if has_sets => {
                let null = lit(ScalarValue::try_new_null(field.data_type())?);
                when(column(place).is_null(), null).otherwise(column(first))?
            }
            Some(first) => column(first),
            None => column(place),
        };
        columns.push(value.alias_qualified(table.cloned(), field.name()));
    }
    LogicalPlanBuilder::from(LogicalPlan::Aggregate(made))
        .project(columns)?
        .build()
        .map(Transformed::yes)
}

/// Replaces intervals in a key by their lengths, also in grouping sets.
fn group_key(expr: Expr, schema: &DFSchema) -> Expr {
    let of = |exprs: Vec<Expr>| -> Vec<Expr> {
        exprs.into_iter().map(|expr| key(expr, schema, &mut false)).collect()
    };
    match expr {
        Expr::GroupingSet(GroupingSet::Rollup(exprs)) => {
            Expr::GroupingSet(GroupingSet::Rollup(of(exprs)))
        }
        Expr::GroupingSet(GroupingSet::Cube(exprs)) => {
            Expr::GroupingSet(GroupingSet::Cube(of(exprs)))
        }
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
            let sets = sets.into_iter().map(of).collect();
            Expr::GroupingSet(GroupingSet::GroupingSets(sets))
        }
        expr => key(expr, schema, &mut false),
    }
}

fn first(interval: Expr) -> Expr {
    let function =
        AggregateFunction::new_udf(first_value_udaf(), vec![interval], false, None, vec![], None);
    Expr::AggregateFunction(function)
}

/// Rewrites `count(DISTINCT a)` and an aggregate's sort keys to use lengths; for `array_agg(DISTINCT …)` the aggregate
/// itself keeps the order.
fn counted(function: Expr, schema: &DFSchema, found: &mut bool) -> Expr {
    match function {
        Expr::Alias(mut alias) => {
            *alias.expr = counted(*alias.expr, schema, found);
            Expr::Alias(alias)
        }
        Expr::AggregateFunction(mut function) => {
            let params = &mut function.params;
            if params.distinct && function.func.name() == "count" {
                let args = std::mem::take(&mut params.args).into_iter();
                params.args = args.map(|argument| key(argument, schema, found)).collect();
            }
            if !(params.distinct && function.func.name() == "array_agg") {
                params.order_by = keys(std::mem::take(&mut params.order_by), schema, found);
            }
            Expr::AggregateFunction(function)
        }
        other => other,
    }
}
