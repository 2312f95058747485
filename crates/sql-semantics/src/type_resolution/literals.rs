//! A string literal next to a value of another type becomes a value of that type, as in PostgreSQL.
//!
//! ```text
//! n = '010'              n = 10
//! '1' + 1                1 + 1
//! d > '2020-01-01'       d > DATE '2020-01-01'
//! done = 't'             done = true
//! l = '{1,2}'            l = [1, 2]
//! at + '1 day'           at + INTERVAL '1 day'
//! at + $1, d + $1        at + $1 of type INTERVAL, d + $1 of type INTEGER
//! l @> $1, l || $1       $1 of the type of l
//! 7 // 2                 7 / 2, and trunc(a / b) where one of them is not an integer
//! ```
//!
//! A literal keeps its fraction digits next to a decimal: `price = '3.149'` is not rounded. If no operator connects
//! the values, `sibling_types` resolves the types.

use std::sync::Arc;

use super::decimals_beside_floats::{item_type, make_floats};
use super::narrow_numbers::{narrow_operands, takes_narrow};
use super::sibling_marks::{ALIKE, BESIDE};
use super::sibling_types::{is_unknown, typed_beside, with_sibling_types};
use crate::arithmetic::convert;
use atoll_functions::temporal::is_read;
use atoll_functions::{ArrayItem, WrittenNumber, array_items, nested_array_items};
use atoll_sql_parse::dialect::is_quantified;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, IntervalUnit,
};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::expr_fn::trunc;
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::expr::{Cast, Placeholder};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Gives string literals the type of the other operand.
#[derive(Debug, Default)]
pub struct TypedLiterals;

impl ExprPlanner for TypedLiterals {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        match &expr.op {
            BinaryOperator::Custom(op) if op == ALIKE => {
                return with_sibling_types(expr.left, schema).map(PlannerResult::Planned);
            }
            BinaryOperator::Custom(op) if op == BESIDE => {
                let typed = typed_beside(expr.left, &expr.right, schema)?;
                return Ok(PlannerResult::Planned(typed));
            }
            _ => {}
        }
        let is_whole =
            matches!(expr.op, BinaryOperator::DuckIntegerDivide | BinaryOperator::MyIntegerDivide);
        if is_whole {
            return whole_quotient(expr, schema);
        }
        if expr.op == BinaryOperator::Plus {
            type_addend(&mut expr.left, &expr.right, schema);
            type_addend(&mut expr.right, &expr.left, schema);
        }
        if takes_narrow(&expr.op) {
            narrow_operands(&mut expr, schema);
        }
        if may_mix_floats(&expr) {
            make_floats([&mut expr.left, &mut expr.right].into_iter(), schema);
        }
        if relates_lists(&expr.op) {
            type_list(&mut expr.left, &expr.right, schema);
            type_list(&mut expr.right, &expr.left, schema);
        }
        match (text_of(&expr.left), text_of(&expr.right)) {
            (Some(text), None) => {
                expr.left = typed(expr.left, &text, &expr.op, &expr.right, schema);
            }
            (None, Some(text)) => {
                expr.right = typed(expr.right, &text, &expr.op, &expr.left, schema);
            }
            _ => {}
        }
        Ok(PlannerResult::Original(expr))
    }

    fn plan_array_literal(
        &self,
        mut items: Vec<Expr>,
        schema: &DFSchema,
    ) -> Result<PlannerResult<Vec<Expr>>> {
        make_floats(items.iter_mut(), schema);
        if !items.iter().any(is_unknown) {
            return Ok(PlannerResult::Original(items));
        }
        let list = with_sibling_types(make_array(items), schema)?;
        Ok(PlannerResult::Planned(list))
    }
}

/// Whether decimals may be next to floats that DataFusion would turn into decimals: in comparisons, and next to lists.
/// Does not search chains of operators again for each operator.
fn may_mix_floats(expr: &RawBinaryExpr) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let is_chain = |operand: &Expr| matches!(operand, Expr::BinaryExpr(_));
    match &expr.op {
        Eq | NotEq | Lt | LtEq | Gt | GtEq => true,
        op if is_quantified(op) => true,
        op => relates_lists(op) && !is_chain(&expr.left) && !is_chain(&expr.right),
    }
}

/// Whether an operand of an operator is a list if the other one is.
fn relates_lists(op: &BinaryOperator) -> bool {
    use BinaryOperator::{ArrowAt, AtArrow, PGOverlap, StringConcat};
    matches!(op, ArrowAt | AtArrow | PGOverlap | StringConcat)
}

/// A parameter next to a list is a list of the same type.
fn type_list(operand: &mut Expr, other: &Expr, schema: &DFSchema) {
    let Expr::Placeholder(Placeholder { field: unknown @ None, .. }) = operand else { return };
    if let Ok(of @ DataType::List(_)) = other.get_type(schema) {
        *unknown = Some(Arc::new(Field::new("", of, true)));
    }
}

/// A value added to a date or timestamp is not another one, although DataFusion assumes so for a parameter.
fn type_addend(addend: &mut Expr, other: &Expr, schema: &DFSchema) {
    let Expr::Placeholder(Placeholder { field: unknown @ None, .. }) = addend else { return };
    let of = match other.get_type(schema) {
        Ok(DataType::Timestamp(..)) => DataType::Interval(IntervalUnit::MonthDayNano),
        Ok(DataType::Date32) => DataType::Int32,
        _ => return,
    };
    *unknown = Some(Arc::new(Field::new("", of, true)));
}

/// The quotient of integers is an integer; the quotient of other numbers is truncated.
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

/// Returns the text of a plain string literal.
pub(super) fn text_of(expr: &Expr) -> Option<String> {
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

/// Converts a string literal to the type that the other operand requires.
fn typed(literal: Expr, text: &str, op: &BinaryOperator, other: &Expr, schema: &DFSchema) -> Expr {
    let Ok(of) = other.get_type(schema) else { return literal };
    // A text of one dimension less is an item of what it is appended to.
    let item = || match &of {
        DataType::List(item) if *op == BinaryOperator::StringConcat => {
            list_of(text, item.data_type())
        }
        _ => None,
    };
    let list = || text.starts_with('{').then(|| list_of(text, &of).or_else(item)).flatten();
    let found = match wanted(op, &of) {
        Some(decimal) if decimal.is_decimal() => decimal_of(text),
        _ => list(),
    };
    match (found, wanted(op, &of)) {
        (Some(found), _) => found,
        (None, Some(wanted)) => Expr::Cast(Cast::new(Box::new(literal), wanted)),
        (None, None) => literal,
    }
}

/// Returns the type of a literal next to an operand of a type; None if it stays a string.
fn wanted(op: &BinaryOperator, other: &DataType) -> Option<DataType> {
    use BinaryOperator::{
        And, ArrowAt, AtArrow, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Or,
        PGOverlap, Plus,
    };
    let compares = matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq);
    let computes = matches!(op, Plus | Minus | Multiply | Divide | Modulo);
    let is_wanted = match other {
        DataType::Boolean => compares || matches!(op, And | Or),
        DataType::Timestamp(..) if *op == Plus => {
            return Some(DataType::Interval(IntervalUnit::MonthDayNano));
        }
        DataType::Date32 | DataType::Timestamp(..) | DataType::Time64(_) => {
            compares || *op == Minus
        }
        DataType::List(_) => compares || matches!(op, AtArrow | ArrowAt | PGOverlap),
        DataType::Binary | DataType::Interval(_) => compares,
        number => number.is_numeric() && (compares || computes),
    };
    is_wanted.then(|| other.clone())
}

/// Parses a text in PostgreSQL's array form as a list of a type.
pub(super) fn list_of(text: &str, of: &DataType) -> Option<Expr> {
    let DataType::List(item) = of else { return None };
    let item = item.data_type();
    // Their meaning depends on the session.
    if is_read(item_type(item)) {
        return are_items_of(&nested_array_items(text)?, item).then(|| {
            let text = Expr::Literal(ScalarValue::from(text), None);
            Expr::Cast(Cast::new(Box::new(text), of.clone()))
        });
    }
    if item.is_nested() {
        let list = convert(&ScalarValue::from(text).to_array().ok()?, of, false).ok()?;
        return Some(Expr::Literal(ScalarValue::try_from_array(&list, 0).ok()?, None));
    }
    let values = array_items(text)?.into_iter().map(|text| ScalarValue::Utf8(text).cast_to(item));
    let values = values.collect::<Result<Vec<_>>>().ok()?;
    let list = ScalarValue::List(ScalarValue::new_list_nullable(&values, item));
    Some(Expr::Literal(list, None))
}

/// Whether the items of an array have as many dimensions as their type.
fn are_items_of(items: &[ArrayItem], of: &DataType) -> bool {
    items.iter().all(|item| match (item, of) {
        (ArrayItem::Items(items), DataType::List(of)) => are_items_of(items, of.data_type()),
        (ArrayItem::Items(_), _) | (ArrayItem::Text(_), DataType::List(_)) => false,
        _ => true,
    })
}

/// Converts a text to a decimal with the same digits.
pub(super) fn decimal_of(text: &str) -> Option<Expr> {
    let number = WrittenNumber::parse(text)?;
    let (whole, behind) = number.places();
    let precision = u8::try_from((whole + behind).max(1)).ok()?;
    let scale = i8::try_from(behind).ok()?;
    let of = if precision <= DECIMAL128_MAX_PRECISION {
        DataType::Decimal128(precision, scale)
    } else if precision <= DECIMAL256_MAX_PRECISION {
        DataType::Decimal256(precision, scale)
    } else {
        return None;
    };
    let value = ScalarValue::from(number.to_string()).cast_to(&of).ok()?;
    Some(Expr::Literal(value, None))
}
