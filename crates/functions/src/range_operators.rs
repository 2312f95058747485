//! Operators of ranges, as functions.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::failure::FunctionFailure;
use crate::marked::marked_field;
use crate::named_part::without_name;
use crate::scalar;
use crate::scalar::ranges::{RangeForm, form_of};
use crate::scalar::{JSON_MARK, MARK_PREFIX};
use crate::type_name::postgres_name;

/// Returns the call of an operator with an operand that is a range or multirange; None for other operators.
pub(crate) fn of_ranges(expr: &RawBinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    let form = |side: &Expr| marked_field(side, schema).and_then(|field| form_of(&field));
    let (of_left, of_right) = (form(&expr.left), form(&expr.right));
    let Some(form) = of_left.or(of_right) else { return Ok(None) };
    let is_swapped =
        matches!(expr.op, BinaryOperator::ArrowAt | BinaryOperator::PGBitwiseShiftRight);
    let Some(name) = function_of(&expr.op) else {
        return match (of_left, of_right) {
            (Some(left), Some(right)) if left != right && is_comparison(&expr.op) => {
                Err(no_operator(expr, schema))
            }
            _ => Ok(None),
        };
    };
    let is_result = matches!(name, "range_union" | "range_intersect" | "range_minus");
    let side = |side: &Expr, of_side: Option<RangeForm>| match of_side {
        Some(of_side) if of_side.of != form.of || is_result && of_side != form => None,
        Some(of_side) => Some((marked(side, of_side, schema), Some(of_side))),
        None if is_untyped(side) => Some((cast(side, form), Some(form))),
        None => Some((side.clone(), None)),
    };
    let sides = (side(&expr.left, of_left), side(&expr.right, of_right));
    let (Some(left), Some(right)) = sides else { return Err(no_operator(expr, schema)) };
    let (first, second) = if is_swapped { (right, left) } else { (left, right) };
    let name = match (name, first.1, second.1) {
        (name, Some(_), Some(_)) => name,
        ("range_contains", Some(_), None) => "range_contains_elem",
        _ => return Err(no_operator(expr, schema)),
    };
    Ok(scalar::named(name).map(|function| function.call(vec![first.0, second.0])))
}

/// The function of an operator, with its operands swapped for `<@` and `>>`.
fn function_of(op: &BinaryOperator) -> Option<&'static str> {
    Some(match op {
        BinaryOperator::AtArrow | BinaryOperator::ArrowAt => "range_contains",
        BinaryOperator::PGOverlap => "range_overlaps",
        BinaryOperator::PGBitwiseShiftLeft | BinaryOperator::PGBitwiseShiftRight => "range_before",
        BinaryOperator::AndLt => "range_overleft",
        BinaryOperator::AndGt => "range_overright",
        BinaryOperator::Custom(op) if op == "-|-" => "range_adjacent",
        BinaryOperator::Plus => "range_union",
        BinaryOperator::Minus => "range_minus",
        BinaryOperator::Multiply => "range_intersect",
        _ => return None,
    })
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Whether a value becomes one of the type of the other operand.
fn is_untyped(value: &Expr) -> bool {
    match without_name(value) {
        Expr::Literal(value, metadata) => {
            metadata.is_none()
                && (value.is_null()
                    || matches!(value, ScalarValue::Utf8(_) | ScalarValue::Utf8View(_)))
        }
        Expr::Placeholder(Placeholder { field, .. }) => field
            .as_ref()
            .is_none_or(|field| field.metadata().is_empty() && field.data_type().is_string()),
        _ => false,
    }
}

fn cast(value: &Expr, form: RangeForm) -> Expr {
    let mut value = value.clone();
    if let Expr::Placeholder(Placeholder { field: unknown @ None, .. }) = &mut value {
        let mark = (JSON_MARK.0.to_owned(), format!("{MARK_PREFIX}{}", form.name()));
        let field = Field::new("", DataType::Utf8View, true).with_metadata([mark].into());
        *unknown = Some(Arc::new(field));
    }
    match scalar::named(form.cast(false)) {
        Some(function) => function.call(vec![value]),
        None => value,
    }
}

/// The value with the mark of its type, which CASE and similar expressions lose.
fn marked(value: &Expr, form: RangeForm, schema: &DFSchema) -> Expr {
    let has_mark = value.to_field(schema).is_ok_and(|(_, field)| form_of(&field) == Some(form))
        && !matches!(without_name(value), Expr::ScalarSubquery(_));
    if has_mark { value.clone() } else { cast(value, form) }
}

fn no_operator(expr: &RawBinaryExpr, schema: &DFSchema) -> DataFusionError {
    let name = |side: &Expr| match marked_field(side, schema) {
        Some(field) => match form_of(&field) {
            Some(form) => form.name().to_owned(),
            None => postgres_name(field.data_type()),
        },
        None => "unknown".to_owned(),
    };
    let message = format!(
        "operator does not exist: {} {} {}; cast an operand",
        name(&expr.left),
        expr.op,
        name(&expr.right)
    );
    FunctionFailure::error("42883", message)
}
