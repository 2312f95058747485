//! Quotients of decimals get their type during SQL planning, before other expressions depend on it.

use std::sync::Arc;

use atoll_functions::null_where_an_argument_is;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DFSchema, Result, plan_datafusion_err, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::divide;
use super::operation::{Arithmetic, Operation, schema_name};

/// Plans `/` of decimals as [`DecimalDivision`].
#[derive(Debug, Default)]
pub struct PlanDivision;

impl ExprPlanner for PlanDivision {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if expr.op != BinaryOperator::Divide {
            return Ok(PlannerResult::Original(expr));
        }
        // An operand without a type (such as a parameter) keeps the operator.
        let types = (expr.left.get_type(schema), expr.right.get_type(schema));
        let (Ok(left), Ok(right)) = types else { return Ok(PlannerResult::Original(expr)) };
        if divide::result_type(&left, &right).is_none() {
            return Ok(PlannerResult::Original(expr));
        }
        let function = Arc::new(ScalarUDF::from(DecimalDivision::default()));
        let arguments = vec![expr.left, expr.right];
        let call = ScalarFunction::new_udf(function, arguments);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }
}

/// `/` of decimals, and of a decimal and an integer, before type coercion.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct DecimalDivision {
    signature: Signature,
}

impl Default for DecimalDivision {
    fn default() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for DecimalDivision {
    fn name(&self) -> &str {
        "divide"
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        schema_name(Operation::Divide, arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (left, right) = pair(types)?;
        let types = divide::operand_types(left, right);
        let (left, right) = types.ok_or_else(|| not_decimals(left, right))?;
        Ok(vec![left, right])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let (left, right) = pair(types)?;
        divide::result_type(left, right).ok_or_else(|| not_decimals(left, right))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        null_where_an_argument_is(self, &arguments)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let result = arguments.return_type().clone();
        Arithmetic::new(Operation::Divide, result).invoke_with_args(arguments)
    }
}

fn pair(types: &[DataType]) -> Result<(&DataType, &DataType)> {
    match types {
        [left, right] => Ok((left, right)),
        _ => plan_err!("'/' of {} operands", types.len()),
    }
}

fn not_decimals(left: &DataType, right: &DataType) -> datafusion::error::DataFusionError {
    plan_datafusion_err!("'/' of {left} and {right}, of which neither is a decimal")
}
