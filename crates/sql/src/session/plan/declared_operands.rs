//! Casts of parameters with declared types where their operands imply others.
//!
//! ```text
//! at - $1            at - CAST($1 AS INTERVAL)           where $1 is declared as one
//! unnest($1)         unnest(CAST($1 AS INTEGER[]))
//! '{1,2}' = $1       '{1,2}' = CAST($1 AS INTEGER[])
//! r @> $1            r @> CAST($1 AS INTEGER)            a value, not a range
//! ```
//!
//! Elsewhere a parameter has the type of what it is compared with, so that a number finds its row by a key in any
//! width.

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use atoll_sql_parse::dialect::column_type;
use atoll_sql_parse::syntax::walk_expressions_mut;

/// Casts parameters to their declared types.
pub(in crate::session) fn cast_operands(
    statement: &mut Parsed,
    declared: &[Option<DataType>],
) -> Result<()> {
    let is_told = |of: &Option<DataType>| of.as_ref().is_some_and(|of| is_bound(of) || is_list(of));
    let (Parsed::Statement(ast), true) = (statement, declared.iter().any(is_told)) else {
        return Ok(());
    };
    let visited = walk_expressions_mut(ast.as_mut(), &mut |expr| match operands(expr, declared) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    });
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

fn operands(expr: &mut Expr, declared: &[Option<DataType>]) -> Result<()> {
    use BinaryOperator::{
        ArrowAt, AtArrow, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Multiply, NotEq, Plus,
    };
    match expr {
        Expr::BinaryOp { left, op: Plus | Minus | Multiply | Divide, right } => {
            cast(left, declared, is_time)?;
            cast(right, declared, is_time)
        }
        Expr::BinaryOp { left, op: Eq | NotEq | Lt | LtEq | Gt | GtEq, right } => {
            match (is_text(left), is_text(right)) {
                (true, false) => cast(right, declared, is_list),
                (false, true) => cast(left, declared, is_list),
                _ => Ok(()),
            }
        }
        Expr::BinaryOp { left, op: AtArrow | ArrowAt, right } => {
            cast(left, declared, is_bound)?;
            cast(right, declared, is_bound)
        }
        Expr::Function(call) => {
            let FunctionArguments::List(list) = &mut call.args else { return Ok(()) };
            list.args.iter_mut().try_for_each(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => {
                    cast(value, declared, is_list)
                }
                _ => Ok(()),
            })
        }
        _ => Ok(()),
    }
}

/// Whether a value is a text that becomes one of the type of the other operand.
fn is_text(value: &Expr) -> bool {
    matches!(value, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

/// Casts an operand that is a parameter of such a type.
fn cast(
    operand: &mut Expr,
    declared: &[Option<DataType>],
    is_cast: fn(&DataType) -> bool,
) -> Result<()> {
    let Expr::Value(value) = operand else { return Ok(()) };
    let Value::Placeholder(name) = &value.value else { return Ok(()) };
    let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
    let of = number.and_then(|number| declared.get(number.checked_sub(1)?)?.as_ref());
    let Some(of) = of.filter(|of| is_cast(of)) else { return Ok(()) };
    let data_type =
        Parser::new(&GenericDialect {}).try_with_sql(&name_of(of))?.parse_data_type()?;
    let expr = Box::new(operand.clone());
    *operand = Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None };
    Ok(())
}

fn is_time(data_type: &DataType) -> bool {
    use DataType::{Date32, Interval, Time64, Timestamp};
    matches!(data_type, Date32 | Interval(_) | Time64(_) | Timestamp(..))
}

/// Whether values of the type may be in ranges.
fn is_bound(data_type: &DataType) -> bool {
    is_time(data_type) || data_type.is_integer() || data_type.is_decimal()
}

fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_))
}

/// The name of a type, with microseconds for timestamps.
fn name_of(data_type: &DataType) -> String {
    match data_type {
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP(6) WITH TIME ZONE".to_owned(),
        DataType::List(item) => format!("{}[]", name_of(item.data_type())),
        other => column_type(other),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::IntervalUnit;
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn cast_in(sql: &str, declared: &[Option<DataType>]) -> String {
        let mut statement = DFParser::parse_sql(sql).expect(sql).pop_front().expect(sql);
        cast_operands(&mut statement, declared).expect(sql);
        statement.to_string()
    }

    #[test]
    fn operands_have_their_declared_types() {
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let declared = [Some(interval), None, Some(DataType::new_list(DataType::Int32, true))];
        assert_eq!(
            cast_in("SELECT a - $1, a - $2, unnest($3), f($1)", &declared),
            "SELECT a - CAST($1 AS INTERVAL), a - $2, unnest(CAST($3 AS INTEGER[])), f($1)"
        );
        assert_eq!(
            cast_in("SELECT '{1}' = $3, a = $3", &declared),
            "SELECT '{1}' = CAST($3 AS INTEGER[]), a = $3"
        );
        let whole = [Some(DataType::Int32)];
        assert_eq!(cast_in("SELECT a - $1", &whole), "SELECT a - $1");
        assert_eq!(cast_in("SELECT r @> $1", &whole), "SELECT r @> CAST($1 AS INTEGER)");
    }
}
