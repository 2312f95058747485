//! Casts to NUMERIC without a precision, which keep the digits of the value, and literals without zeros at their end.
//!
//! ```text
//! 1.25::NUMERIC                '1.25'::DECIMAL(21, 2)
//! '1e-5'::NUMERIC(10, 5)       '0.00001'::DECIMAL(10, 5)
//! 0.1::NUMERIC(10, 5)          '0.1'::DECIMAL(10, 5): not a float on its way
//! n::NUMERIC                   as_numeric(n), whose type is that of n as a decimal
//! $1::NUMERIC                  $1::DECIMAL(38, 16)
//! trim_scale(1.500)            1.5
//! CREATE TABLE … AS SELECT 5::NUMERIC      5::DECIMAL(38, 10), as a column of NUMERIC has
//! ```

use std::ops::ControlFlow;

use atoll_functions::{UNTOLD_SCALE, WrittenNumber};
use datafusion::sql::sqlparser::ast::{
    CastKind, Cte, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, SelectItem, SetExpr, Statement, UnaryOperator, Value,
};

use crate::dialect::tree;
use crate::syntax::walk_expressions_mut;

/// The fewest digits before the point in the type of a constant, so that it also holds other values of its column.
const WHOLE_MIN: usize = 19;

/// Digits of a column of NUMERIC.
const COLUMN: ExactNumberInfo = ExactNumberInfo::PrecisionAndScale(38, 10);

/// Rewrites an expression.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::TypedString(typed) => {
            if let Value::SingleQuotedString(text) = &mut typed.value.value
                && let Some(digits) = digits_of(&mut typed.data_type)
                && let Some(plain) = settled(text, true, digits)
            {
                *text = plain;
            }
        }
        Expr::Cast { kind, expr: value, data_type, .. } => {
            let Some(digits) = digits_of(data_type) else { return };
            if let Some(plain) = constant(value, digits) {
                **value = tree::text(plain);
                return;
            }
            if *digits != ExactNumberInfo::None {
                return;
            }
            let is_tried = matches!(kind, CastKind::TryCast | CastKind::SafeCast);
            match value.as_ref() {
                Expr::Value(literal) if literal.value == Value::Null => {
                    *digits = ExactNumberInfo::PrecisionAndScale(WHOLE_MIN as u64, 0);
                }
                value if is_tried || tree::is_parameter(value) => {
                    *digits = ExactNumberInfo::PrecisionAndScale(38, i64::from(UNTOLD_SCALE));
                }
                _ => {
                    let value = std::mem::replace(value.as_mut(), Expr::value(Value::Null));
                    *expr = tree::call("as_numeric", vec![value]);
                }
            }
        }
        Expr::Function(function) => {
            if let Some(trimmed) = trimmed(function) {
                *expr = trimmed;
            }
        }
        _ => {}
    }
}

/// `trim_scale` of a literal, whose type depends on its digits; other values keep their type.
fn trimmed(function: &Function) -> Option<Expr> {
    if !function.name.to_string().eq_ignore_ascii_case("trim_scale") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = list.args.as_slice() else {
        return None;
    };
    let mut value = value.clone();
    trim(&mut value).then(|| Expr::Nested(Box::new(value)))
}

/// Takes the zeros at the end of a decimal literal away; returns whether it is one.
fn trim(value: &mut Expr) -> bool {
    match value {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => {
            trim(inner)
        }
        Expr::Value(literal) => match &mut literal.value {
            Value::Number(text, _) if text.contains('.') && !text.contains(['e', 'E']) => {
                let digits = text.trim_end_matches('0').trim_end_matches('.');
                *text = if digits.is_empty() { "0".to_owned() } else { digits.to_owned() };
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// Gives columns of a table that is created from a query the digits of NUMERIC columns.
pub(in crate::dialect) fn rewrite_statement(statement: &mut Statement) {
    let Statement::CreateTable(create) = statement else { return };
    let Some(query) = &mut create.query else { return };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(Expr::Cast { data_type, .. })
        | SelectItem::ExprWithAlias { expr: Expr::Cast { data_type, .. }, .. } = item
        {
            settle(data_type);
        }
    }
}

/// The same for the columns of a recursive query, which have the types of its first rows.
pub(crate) fn settle_recursive(cte: &mut Cte) {
    let _ = walk_expressions_mut(cte.query.as_mut(), &mut |expr| {
        match expr {
            Expr::Cast { data_type, .. } => settle(data_type),
            Expr::TypedString(typed) => settle(&mut typed.data_type),
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
}

fn settle(data_type: &mut DataType) {
    if let Some(digits) = digits_of(data_type)
        && *digits == ExactNumberInfo::None
    {
        *digits = COLUMN;
    }
}

/// The digits of such a type.
fn digits_of(data_type: &mut DataType) -> Option<&mut ExactNumberInfo> {
    match data_type {
        DataType::Numeric(digits) | DataType::Decimal(digits) | DataType::Dec(digits) => {
            Some(digits)
        }
        _ => None,
    }
}

/// The text that replaces a constant in its cast, if it must change or the type gets the digits of the value.
fn constant(expr: &Expr, digits: &mut ExactNumberInfo) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => settled(number, false, digits),
            Value::SingleQuotedString(text) => settled(text, true, digits),
            _ => None,
        },
        Expr::Nested(inner) => constant(inner, digits),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => settled(&format!("-{number}"), false, digits),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The text of a number without an exponent. It replaces a text with one, and a number with a point, to avoid a float
/// on the way; and every number if the type has no digits, which it then gets.
fn settled(text: &str, is_text: bool, digits: &mut ExactNumberInfo) -> Option<String> {
    let has_exponent = text.contains(['e', 'E']);
    let is_kept = !has_exponent && (is_text || !text.contains('.'));
    if *digits != ExactNumberInfo::None && is_kept {
        return None;
    }
    let number = WrittenNumber::parse(text)?;
    if *digits == ExactNumberInfo::None {
        let (whole, scale) = number.places();
        let precision = match whole + scale {
            0..=38 => (whole.max(WHOLE_MIN) + scale).min(38),
            precision @ 39..=76 => precision,
            _ => return None,
        };
        *digits = ExactNumberInfo::PrecisionAndScale(precision as u64, scale as i64);
    }
    Some(number.to_string())
}
