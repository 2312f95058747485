//! Types of arguments that have none, string literals and parameters, where a function takes no text.
//!
//! ```text
//! left(name, $1)      left(name, CAST($1 AS BIGINT))
//! sqrt('4')           sqrt(CAST('4' AS DOUBLE))
//! ```
//!
//! As in PostgreSQL, DOUBLE is preferred where a function takes several types of numbers. A call that takes texts there
//! stays as it is.

use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_sql_common::functions::Functions;
use atoll_sql_parse::syntax::walk_expressions_mut;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::execution::SessionState;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType as AstType, ExactNumberInfo, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, TimezoneInfo, Value,
};

/// The types that an argument may take, the preferred ones first.
const CANDIDATES: [DataType; 7] = [
    DataType::Float64,
    DataType::Int64,
    DataType::Int32,
    DataType::Boolean,
    DataType::Timestamp(TimeUnit::Microsecond, None),
    DataType::Date32,
    DataType::Interval(IntervalUnit::MonthDayNano),
];

/// Casts arguments without a type in the calls of a statement.
pub(super) fn type_arguments(statement: &mut Parsed, state: &SessionState) {
    let ast = match statement {
        Parsed::Statement(ast) => ast,
        Parsed::Explain(explain) => return type_arguments(&mut explain.statement, state),
        _ => return,
    };
    let _: ControlFlow<()> = walk_expressions_mut(ast.as_mut(), &mut |expr| {
        match expr {
            Expr::Function(call) => type_call(call, state),
            Expr::Ceil { expr, .. } | Expr::Floor { expr, .. } => cast(expr, &DataType::Float64),
            // `substring(a FROM 'b')` is about a pattern.
            Expr::Substring { substring_from, substring_for, shorthand: true, .. } => {
                let numbers = [substring_from, substring_for].into_iter().flatten();
                numbers.for_each(|number| cast(number, &DataType::Int64));
            }
            Expr::BinaryOp { left, op: BinaryOperator::Multiply, right } => {
                type_factor(left, right);
                type_factor(right, left);
            }
            Expr::BinaryOp { left, op: BinaryOperator::Divide, right } => type_factor(left, right),
            _ => {}
        }
        ControlFlow::Continue(())
    });
}

/// Casts what an interval is multiplied with.
fn type_factor(interval: &Expr, factor: &mut Expr) {
    let is_interval = matches!(
        interval,
        Expr::Interval(_) | Expr::Cast { data_type: AstType::Interval { .. }, .. }
    );
    if is_interval {
        cast(factor, &DataType::Float64);
    }
}

fn type_call(call: &mut Function, state: &SessionState) {
    let FunctionArguments::List(list) = &mut call.args else { return };
    let mut arguments = Vec::with_capacity(list.args.len());
    for argument in &mut list.args {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument else { return };
        arguments.push(value);
    }
    if !arguments.iter().any(|value| is_untyped(value)) {
        return;
    }
    let name = match call.name.0.last().and_then(|part| part.as_ident()) {
        Some(name) if name.quote_style.is_none() => name.value.to_lowercase(),
        Some(name) => name.value.clone(),
        None => return,
    };
    if let Some((at, wanted)) = number_of_aggregate(&name, call.over.is_some()) {
        if let Some(number) = arguments.get_mut(at) {
            cast(number, &wanted);
        }
        return;
    }
    let Some(function) = Functions::for_session(state).scalar(&name) else { return };
    let known: Vec<Option<DataType>> = arguments.iter().map(|value| known_type(value)).collect();
    for (value, wanted) in arguments.into_iter().zip(wanted(&function, &known)) {
        if let Some(wanted) = wanted {
            cast(value, &wanted);
        }
    }
}

/// The argument of an aggregate or window function that is a number, and its type.
fn number_of_aggregate(name: &str, is_window: bool) -> Option<(usize, DataType)> {
    Some(match name {
        "percentile_cont" | "percentile_disc" => (0, DataType::Float64),
        "lag" | "lead" | "nth_value" if is_window => (1, DataType::Int64),
        "ntile" if is_window => (0, DataType::Int64),
        _ => return None,
    })
}

/// The type of an argument; NULL, which fits everywhere, where it is not known here, and None for an untyped one.
fn known_type(value: &Expr) -> Option<DataType> {
    if is_untyped(value) {
        return None;
    }
    Some(match value {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                DataType::Int64
            }
            Value::Number(..) => DataType::Float64,
            _ => DataType::Null,
        },
        _ => DataType::Null,
    })
}

/// The types that arguments without one are to have; None for those that stay as they are.
fn wanted(function: &ScalarUDF, known: &[Option<DataType>]) -> Vec<Option<DataType>> {
    let none = || vec![None; known.len()];
    let with = |untyped: &dyn Fn(usize) -> DataType| {
        let types = known.iter().enumerate();
        let types = types.map(|(at, known)| known.clone().unwrap_or_else(|| untyped(at)));
        coerced(function, types.collect())
    };
    if with(&|_| DataType::Utf8).is_some() {
        return none();
    }
    let Some(first) = with(&|_| DataType::Null) else { return none() };
    let is_text = |at: usize| first[at].is_string();
    let is_number = |at: usize| known[at].is_none() && !is_text(at);
    for candidate in preferred(function.name(), known.len()).chain(CANDIDATES) {
        let of = |at: usize| if is_text(at) { DataType::Utf8 } else { candidate.clone() };
        let is_taken = with(&of).is_some_and(|types| {
            let taken = |at: usize| !is_number(at) || types[at] == candidate;
            (0..known.len()).all(taken)
        });
        if is_taken {
            let of = |at| is_number(at).then(|| candidate.clone());
            return (0..known.len()).map(of).collect();
        }
    }
    none()
}

/// Two arguments of `round` and `trunc` are a decimal and its number of places in PostgreSQL.
fn preferred(function: &str, arguments: usize) -> impl Iterator<Item = DataType> {
    let is_decimal = matches!(function, "round" | "trunc") && arguments == 2;
    is_decimal.then_some(DataType::Decimal128(38, 10)).into_iter()
}

/// The types to which a function casts arguments of these types; None if it takes none like these.
fn coerced(function: &ScalarUDF, types: Vec<DataType>) -> Option<Vec<DataType>> {
    let field = |of| Arc::new(Field::new("", of, true));
    let fields: Vec<FieldRef> = types.into_iter().map(field).collect();
    let coerced = fields_with_udf(&fields, function).ok()?;
    Some(coerced.iter().map(|field| field.data_type().clone()).collect())
}

fn is_untyped(value: &Expr) -> bool {
    let Expr::Value(value) = value else { return false };
    matches!(value.value, Value::SingleQuotedString(_) | Value::Placeholder(_))
}

fn cast(value: &mut Expr, to: &DataType) {
    if !is_untyped(value) {
        return;
    }
    let data_type = match to {
        DataType::Float64 => AstType::Double(ExactNumberInfo::None),
        DataType::Int64 => AstType::BigInt(None),
        DataType::Int32 => AstType::Integer(None),
        DataType::Boolean => AstType::Boolean,
        DataType::Timestamp(..) => AstType::Timestamp(None, TimezoneInfo::None),
        DataType::Date32 => AstType::Date,
        DataType::Interval(_) => AstType::Interval { fields: None, precision: None },
        _ => AstType::Numeric(ExactNumberInfo::None),
    };
    let expr = Box::new(std::mem::replace(value, Expr::value(Value::Null)));
    *value = Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None };
}
