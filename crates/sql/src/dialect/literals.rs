//! A string literal beside a value of another type is a value of that type, as in PostgreSQL.
//!
//! ```text
//! n = '010'              n = 10
//! '1' + 1                1 + 1
//! d > '2020-01-01'       d > DATE '2020-01-01'
//! done = 't'             done = true
//! l = '{1,2}'            l = [1, 2]
//! at + '1 day'           at + INTERVAL '1 day'
//! at + $1, d + $1        at + $1 of type INTERVAL, d + $1 of type INTEGER
//! 7 // 2                 7 / 2, and trunc(a / b) where one of them is not an integer
//! ```
//!
//! A literal with digits behind the point keeps them beside a decimal: `price = '3.149'` rounds nothing.

use std::sync::Arc;

use super::array_text::array_items;
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::expr_fn::trunc;
use datafusion::logical_expr::expr::{Cast, Placeholder};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Gives string literals the type of the other operand.
#[derive(Debug, Default)]
pub(crate) struct TypedLiterals;

impl ExprPlanner for TypedLiterals {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_whole =
            matches!(expr.op, BinaryOperator::DuckIntegerDivide | BinaryOperator::MyIntegerDivide);
        if is_whole {
            return whole_quotient(expr, schema);
        }
        if expr.op == BinaryOperator::Plus {
            type_addend(&mut expr.left, &expr.right, schema);
            type_addend(&mut expr.right, &expr.left, schema);
        }
        match (text(&expr.left), text(&expr.right)) {
            (Some(text), None) => {
                if let Some(list) = list(&text, &expr.right, schema) {
                    expr.left = list;
                } else if let Some(wanted) = wanted(&expr.op, &expr.right, schema, &text) {
                    expr.left = cast(expr.left, wanted);
                }
            }
            (None, Some(text)) => {
                if let Some(list) = list(&text, &expr.left, schema) {
                    expr.right = list;
                } else if let Some(wanted) = wanted(&expr.op, &expr.left, schema, &text) {
                    expr.right = cast(expr.right, wanted);
                }
            }
            _ => {}
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// What is added to a moment or a date is not another one, which DataFusion takes a parameter for.
fn type_addend(addend: &mut Expr, other: &Expr, schema: &DFSchema) {
    let Expr::Placeholder(Placeholder { field: unknown @ None, .. }) = addend else { return };
    let of = match other.get_type(schema) {
        Ok(DataType::Timestamp(..)) => DataType::Interval(IntervalUnit::MonthDayNano),
        Ok(DataType::Date32) => DataType::Int32,
        _ => return,
    };
    *unknown = Some(Arc::new(Field::new("", of, true)));
}

/// The quotient of integers is an integer; that of other numbers loses its fraction.
fn whole_quotient(
    mut expr: RawBinaryExpr,
    schema: &DFSchema,
) -> Result<PlannerResult<RawBinaryExpr>> {
    let is_integer = |side: &Expr| side.get_type(schema).is_ok_and(|of| of.is_integer());
    if is_integer(&expr.left) && is_integer(&expr.right) {
        expr.op = BinaryOperator::Divide;
        return Ok(PlannerResult::Original(expr));
    }
    Ok(PlannerResult::Planned(trunc(vec![expr.left / expr.right])))
}

/// The text of a literal that is nothing but a string.
fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
            _,
        ) => Some(text.clone()),
        _ => None,
    }
}

fn cast(expr: Expr, wanted: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), wanted))
}

/// The type of a literal beside another operand; none where it stays a string.
fn wanted(op: &BinaryOperator, other: &Expr, schema: &DFSchema, text: &str) -> Option<DataType> {
    use BinaryOperator::{
        And, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Or, Plus,
    };
    let other = other.get_type(schema).ok()?;
    let compares = matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq);
    let computes = matches!(op, Plus | Minus | Multiply | Divide | Modulo);
    match &other {
        DataType::Boolean => (compares || matches!(op, And | Or)).then_some(DataType::Boolean),
        _ if other.is_integer() || other.is_floating() => {
            (compares || computes).then(|| other.clone())
        }
        _ if other.is_decimal() => (compares || computes).then(|| decimal(text)).flatten(),
        DataType::Timestamp(..) if *op == Plus => {
            Some(DataType::Interval(IntervalUnit::MonthDayNano))
        }
        DataType::Date32 | DataType::Timestamp(..) | DataType::Time64(_) => {
            (compares || *op == Minus).then(|| other.clone())
        }
        DataType::Interval(_) => compares.then(|| other.clone()),
        _ => None,
    }
}

/// The list that a text is beside another list.
fn list(text: &str, other: &Expr, schema: &DFSchema) -> Option<Expr> {
    let text = Some(text).filter(|text| text.starts_with('{'))?;
    let DataType::List(item) = other.get_type(schema).ok()? else { return None };
    let item = item.data_type();
    let values = array_items(text)?.into_iter().map(|text| ScalarValue::Utf8(text).cast_to(item));
    let values = values.collect::<Result<Vec<_>>>().ok()?;
    let list = ScalarValue::List(ScalarValue::new_list_nullable(&values, item));
    Some(Expr::Literal(list, None))
}

/// A decimal with the digits of a text.
fn decimal(text: &str) -> Option<DataType> {
    let behind = text.trim().split_once('.').map_or(0, |(_, behind)| behind.len());
    let whole = text.trim().trim_start_matches(['-', '+']).split('.').next().map_or(0, str::len);
    let precision = u8::try_from(whole + behind).ok().filter(|digits| (1..=38).contains(digits))?;
    Some(DataType::Decimal128(precision, i8::try_from(behind).ok()?))
}
