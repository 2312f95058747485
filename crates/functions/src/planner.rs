//! Operators that are functions, and aggregates whose meaning depends on the number of their arguments.

use std::sync::{Arc, LazyLock};

use datafusion::common::{DFSchema, Result};
use datafusion::functions::string::starts_with;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr,
};
use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::gathered::{self, Gathered};
use super::scalar;

/// `->`, `->>`, `^@`; `max(x, n)`, `string_agg` without a separator, `json_group_array` in an order.
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
    TO_JSON "to_json";
}

impl ExprPlanner for PlanCalls {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        _: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let function = match expr.op {
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
