//! Operators that are functions, and aggregates whose meaning depends on the number of their arguments.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::functions::string::starts_with;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawFieldAccessExpr,
};
use datafusion::logical_expr::{AggregateUDF, Expr, ExprSchemable, GetFieldAccess, ScalarUDF, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::gathered::{self, Gathered};
use super::scalar;

/// `->`, `->>`, `^@`, `interval * number`, `text[2:3]`; `max(x, n)`, `string_agg` without a separator, `json_group_array` in an order.
#[derive(Debug, Default)]
pub struct PlanCalls;

macro_rules! own {
    ($($constant:ident $name:literal;)*) => {$(
        static $constant: LazyLock<Option<Arc<ScalarUDF>>> = LazyLock::new(|| scalar::named($name));
    )*};
}

own! {
    EXTRACT "json_extract";
    EXTRACT_STRING "json_extract_string";
    INTERVAL_DIVIDE "interval_divide";
    INTERVAL_MULTIPLY "interval_multiply";
    TEXT_ELEMENT "text_element";
    TEXT_SLICE "text_slice";
    TO_JSON "to_json";
}

impl ExprPlanner for PlanCalls {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let function = match expr.op {
            BinaryOperator::Multiply if is_scaled(&expr.left, &expr.right, schema) => {
                INTERVAL_MULTIPLY.clone()
            }
            BinaryOperator::Multiply if is_scaled(&expr.right, &expr.left, schema) => {
                std::mem::swap(&mut expr.left, &mut expr.right);
                INTERVAL_MULTIPLY.clone()
            }
            BinaryOperator::Divide if is_scaled(&expr.left, &expr.right, schema) => {
                INTERVAL_DIVIDE.clone()
            }
            BinaryOperator::Arrow => EXTRACT.clone(),
            BinaryOperator::LongArrow => EXTRACT_STRING.clone(),
            BinaryOperator::PGStartsWith => Some(starts_with()),
            _ => None,
        };
        Ok(match function {
            Some(function) => PlannerResult::Planned(function.call(vec![expr.left, expr.right])),
            None => PlannerResult::Original(expr),
        })
    }

    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        if !is_text(&access.expr, schema) {
            return Ok(PlannerResult::Original(access));
        }
        let (function, args) = match &access.field_access {
            GetFieldAccess::ListIndex { key } if !is_text(key, schema) => {
                (TEXT_ELEMENT.clone(), vec![access.expr.clone(), key.as_ref().clone()])
            }
            GetFieldAccess::ListRange { start, stop, stride } => {
                if !matches!(**stride, Expr::Literal(ScalarValue::Int64(Some(1)), _)) {
                    return plan_err!(
                        "a slice of a text has no steps; take one of string_split(text, '')"
                    );
                }
                let (start, stop) = (start.as_ref().clone(), stop.as_ref().clone());
                (TEXT_SLICE.clone(), vec![access.expr.clone(), start, stop])
            }
            _ => (None, vec![]),
        };
        Ok(match function {
            Some(function) => PlannerResult::Planned(function.call(args)),
            None => PlannerResult::Original(access),
        })
    }

    fn plan_aggregate(
        &self,
        mut call: RawAggregateExpr,
    ) -> Result<PlannerResult<RawAggregateExpr>> {
        let instead = match (call.func.name(), call.args.len()) {
            ("max", 2) => "max_n",
            ("min", 2) => "min_n",
            ("arg_max", 3) => "arg_max_n",
            ("arg_min", 3) => "arg_min_n",
            ("string_agg", 1) => {
                call.args.push(lit(","));
                return Ok(PlannerResult::Original(call));
            }
            ("json_group_array", 1) if !call.order_by.is_empty() => {
                return Ok(PlannerResult::Planned(ordered_json(call)));
            }
            _ => return Ok(PlannerResult::Original(call)),
        };
        if let Some(entry) = gathered::entries().find(|entry| entry.name == instead) {
            call.func = Arc::new(AggregateUDF::from(Gathered::new(entry)));
        }
        Ok(PlannerResult::Original(call))
    }
}

/// Whether an interval is multiplied by a number, or divided.
fn is_scaled(interval: &Expr, number: &Expr, schema: &DFSchema) -> bool {
    let is_interval = |of: &DataType| matches!(of, DataType::Interval(_));
    interval.get_type(schema).is_ok_and(|of| is_interval(&of))
        && number.get_type(schema).is_ok_and(|of| of.is_numeric() || of.is_null())
}

fn is_text(expr: &Expr, schema: &DFSchema) -> bool {
    let of = expr.get_type(schema);
    of.is_ok_and(|of| matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View))
}

/// The list in its order, as JSON.
fn ordered_json(call: RawAggregateExpr) -> Expr {
    let RawAggregateExpr { args, distinct, filter, order_by, null_treatment, .. } = call;
    let list = AggregateFunction::new_udf(
        array_agg_udaf(),
        args,
        distinct,
        filter,
        order_by,
        null_treatment,
    );
    let list = Expr::AggregateFunction(list);
    match TO_JSON.clone() {
        Some(to_json) => to_json.call(vec![list]),
        None => list,
    }
}
