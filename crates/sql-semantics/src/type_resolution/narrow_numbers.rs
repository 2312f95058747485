//! An integer literal next to integers of at most 32 bits has 32 bits, as in PostgreSQL; DataFusion makes it BIGINT.
//!
//! ```text
//! n + 1, -n * 2, n / 2       INTEGER where n is SMALLINT or INTEGER; what does not fit is an error
//! 1 + 1, $1 + 1              INTEGER
//! n = 5                      no cast of the column
//! coalesce(n, 0)             INTEGER
//! ```

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Whether an operator takes integers of one type.
pub(super) fn takes_narrow(op: &BinaryOperator) -> bool {
    use BinaryOperator::{
        BitwiseAnd, BitwiseOr, BitwiseXor, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply,
        NotEq, PGBitwiseXor, Plus,
    };
    matches!(
        op,
        Plus | Minus
            | Multiply
            | Divide
            | Modulo
            | BitwiseAnd
            | BitwiseOr
            | BitwiseXor
            | PGBitwiseXor
            | Eq
            | NotEq
            | Lt
            | LtEq
            | Gt
            | GtEq
    )
}

/// Narrows a literal operand if the other operand is as narrow.
pub(super) fn narrow_operands(expr: &mut RawBinaryExpr, schema: &DFSchema) {
    let RawBinaryExpr { left, right, .. } = expr;
    match (small(left), small(right)) {
        (Some(_), Some(_)) => {
            narrow(left);
            narrow(right);
        }
        (Some(_), None) if type_as_narrow(right, schema) => narrow(left),
        (None, Some(_)) if type_as_narrow(left, schema) => narrow(right),
        _ => {}
    }
}

/// Narrows literals among values of one type if the others are as narrow.
pub(super) fn narrow_alike<'a>(values: impl Iterator<Item = &'a mut Expr>, schema: &DFSchema) {
    let values: Vec<_> = values.collect();
    let is_other = |value: &Expr| small(value).is_none() && !is_untyped(value);
    let has_numbers = values.iter().any(|value| small(value).is_some());
    if has_numbers && values.iter().filter(|value| is_other(value)).all(|of| is_narrow(of, schema))
    {
        values.into_iter().for_each(narrow);
    }
}

/// Whether an operand is as narrow; an untyped parameter becomes so.
fn type_as_narrow(operand: &mut Expr, schema: &DFSchema) -> bool {
    if let Expr::Placeholder(Placeholder { field: unknown @ None, .. }) = operand {
        *unknown = Some(Arc::new(Field::new("", DataType::Int32, true)));
        return true;
    }
    is_narrow(operand, schema)
}

/// Whether a value adopts the type of others.
fn is_untyped(value: &Expr) -> bool {
    match value {
        Expr::Placeholder(Placeholder { field, .. }) => field.is_none(),
        Expr::Literal(value, _) => value.is_null() || value.data_type().is_string(),
        _ => false,
    }
}

/// Returns the value of a literal that fits 32 bits; as in PostgreSQL the digits must fit without their sign.
fn small(expr: &Expr) -> Option<i32> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => {
            i32::try_from(*number).ok().filter(|number| *number != i32::MIN)
        }
        _ => None,
    }
}

fn narrow(expr: &mut Expr) {
    if let Some(number) = small(expr) {
        *expr = Expr::Literal(ScalarValue::Int32(Some(number)), None);
    }
}

/// Whether every value of an expression's type fits 32 bits. For a chain of operators this checks the operands, not
/// the type of each part, which would be recomputed for every operator.
fn is_narrow(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_arithmetic(*op) => {
            is_narrow(right, schema) && is_narrow(left, schema)
        }
        Expr::Negative(value) => is_narrow(value, schema),
        other => other.get_type(schema).is_ok_and(|of| is_narrow_type(&of)),
    }
}

fn is_arithmetic(op: Operator) -> bool {
    matches!(
        op,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
    )
}

fn is_narrow_type(of: &DataType) -> bool {
    use DataType::{Int8, Int16, Int32, UInt8, UInt16};
    matches!(of, Int8 | Int16 | Int32 | UInt8 | UInt16)
}
