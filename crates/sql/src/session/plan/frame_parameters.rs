//! Parameters as offsets of window frames: their types while a statement is prepared, and their values when it runs.

use datafusion::arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, ResolvedTableReference, Result, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr as PlanExpr, ExprSchemable, LogicalPlan, WindowFrameBound};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Expr, Interval, Value, WindowFrameUnits};
use futures::future::BoxFuture;

use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::error::SqlState;
use atoll_sql_parse::parse::{FrameOffset, FrameParameter, replace_frame_parameters};

/// The offset that stands for the first parameter while the keys of frames are looked for; no other offset is as large.
const FIRST_STAND_IN: i64 = i64::MAX - 1_000_000;

impl StatementPlanner {
    /// Writes the values of parameters into the frames of windows. While the statement is prepared it has none: then
    /// other offsets take their places, and their types are noted.
    ///
    /// Boxed, since planning a statement begins with it.
    pub(in crate::session) fn bind_frames<'a>(
        &'a self,
        state: &'a SessionState,
        statement: &'a mut Parsed,
        within: &'a [ResolvedTableReference],
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.try_bind_frames(state, statement, within))
    }

    async fn try_bind_frames(
        &self,
        state: &SessionState,
        statement: &mut Parsed,
        within: &[ResolvedTableReference],
    ) -> Result<()> {
        if let Some(values) = &self.values {
            let mut value = |parameter| value_of(values, &parameter).map(FrameOffset::Value);
            return replace_frame_parameters(statement, &mut value);
        }
        let (mut parameters, mut trial) = (Vec::new(), statement.clone());
        replace_frame_parameters(&mut trial, &mut |parameter| {
            let number = FIRST_STAND_IN + parameters.len() as i64;
            parameters.push(parameter);
            Ok(FrameOffset::Probe(written_number(number)))
        })?;
        if parameters.is_empty() {
            return Ok(());
        }
        let mut types: Vec<_> = parameters.iter().map(known_type).collect();
        if types.iter().any(Option::is_none) {
            // Only the plan knows the key of a frame.
            note_keys(&self.plan_within(state, trial, within).await?, &mut types)?;
        }
        let types: Vec<_> = types.into_iter().map(|of| of.unwrap_or(DataType::Int64)).collect();
        for (parameter, of) in parameters.iter().zip(&types) {
            self.rule_parameters.note(&parameter.name, Some(of.clone()));
        }
        let mut types = types.iter();
        replace_frame_parameters(statement, &mut |_| {
            let is_interval = matches!(types.next(), Some(DataType::Interval(_)));
            let none = if is_interval { written_interval("0 days") } else { written_number(0) };
            Ok(FrameOffset::StandIn(none))
        })
    }
}

/// The type of a parameter, unless it is that of the frame's key.
fn known_type(parameter: &FrameParameter) -> Option<DataType> {
    match parameter.units {
        _ if parameter.is_interval => Some(INTERVAL),
        WindowFrameUnits::Range => None,
        WindowFrameUnits::Rows | WindowFrameUnits::Groups => Some(DataType::Int64),
    }
}

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Finds the keys of the frames whose offsets stand for parameters, and the types of their offsets.
fn note_keys(plan: &LogicalPlan, types: &mut [Option<DataType>]) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::Window(window) = node else { return Ok(TreeNodeRecursion::Continue) };
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                let PlanExpr::WindowFunction(function) = expr else {
                    return Ok(TreeNodeRecursion::Continue);
                };
                let (frame, order) = (&function.params.window_frame, &function.params.order_by);
                for bound in [&frame.start_bound, &frame.end_bound] {
                    let found = stand_in(bound).and_then(|at| types.get_mut(at));
                    if let (Some(found @ None), [key]) = (found, &order[..]) {
                        let key = key.expr.get_type(window.input.schema().as_ref())?;
                        *found = Some(offset_type(&key));
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// The number of the parameter for which an offset stands.
fn stand_in(bound: &WindowFrameBound) -> Option<usize> {
    let (WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset)) = bound else {
        return None;
    };
    let ScalarValue::Int64(Some(number)) = offset.cast_to(&DataType::Int64).ok()? else {
        return None;
    };
    usize::try_from(number.checked_sub(FIRST_STAND_IN)?).ok()
}

/// The type of offsets from a key: an interval from a moment, else the key's own.
fn offset_type(key: &DataType) -> DataType {
    match key {
        key if key.is_temporal() => INTERVAL,
        key if key.is_numeric() => key.clone(),
        _ => DataType::Int64,
    }
}

/// The value of a parameter, in SQL.
fn value_of(values: &ParamValues, parameter: &FrameParameter) -> Result<Expr> {
    let value = values.get_placeholders_with_values(&parameter.name).map_err(|_| {
        let message = format!("there is no parameter {}", parameter.name);
        SqlState::UNDEFINED_PARAMETER.error(message)
    })?;
    Ok(match value.value {
        value if value.is_null() => Expr::Value(Value::Null.into()),
        ScalarValue::IntervalMonthDayNano(Some(interval)) => {
            let (months, days, nanoseconds) =
                (interval.months, interval.days, interval.nanoseconds);
            written_interval(&format!("{months} months {days} days {nanoseconds} nanoseconds"))
        }
        value => match value.cast_to(&DataType::Utf8)? {
            ScalarValue::Utf8(Some(text)) => Expr::Value(Value::SingleQuotedString(text).into()),
            _ => Expr::Value(Value::Null.into()),
        },
    })
}

fn written_number(number: i64) -> Expr {
    Expr::Value(Value::Number(number.to_string(), false).into())
}

fn written_interval(text: &str) -> Expr {
    Expr::Interval(Interval {
        value: Box::new(Expr::Value(Value::SingleQuotedString(text.to_owned()).into())),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    })
}
