//! Whole numbers that BIGINT does not hold are decimals.
//!
//! DataFusion reads what exceeds 64 bits as DOUBLE: 38 nines come out as 99999999999999997748….

use crate::parse::walk_expressions_mut;
use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, UnaryOperator, Value, VisitMut,
};

/// Digits of the least number that 64 bits do not hold with either sign.
const LONG: usize = 19;

/// Digits of the widest decimal.
const DIGITS_MAX: usize = 76;

/// Writes such numbers of a statement as casts of their digits.
pub(super) fn keep_digits(statement: &mut Statement, sql: &str) {
    if !has_long_number(sql) {
        return;
    }
    match statement {
        Statement::Statement(statement) => in_expressions(statement.as_mut()),
        Statement::Explain(explain) => keep_digits(&mut explain.statement, sql),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                in_expressions(query.as_mut());
            }
        }
        _ => {}
    }
}

fn has_long_number(sql: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'_';
    sql.as_bytes().chunk_by(|a, b| is_digit(a) && is_digit(b)).any(|run| run.len() >= LONG)
}

fn in_expressions(node: &mut impl VisitMut) {
    let _: ControlFlow<()> = walk_expressions_mut(node, &mut |expr| {
        replace(expr);
        ControlFlow::Continue(())
    });
}

fn replace(expr: &mut Expr) {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: value } => {
            if let Some(digits) = digits_of(value)
                && format!("-{digits}").parse::<i64>().is_err()
            {
                **value = decimal(digits);
            }
        }
        value => {
            if let Some(digits) = digits_of(value)
                && digits.parse::<u64>().is_err()
            {
                *value = decimal(digits);
            }
        }
    }
}

/// The digits of a whole number that some decimal holds.
fn digits_of(expr: &Expr) -> Option<String> {
    let Expr::Value(value) = expr else { return None };
    let Value::Number(text, _) = &value.value else { return None };
    let digits = text.replace('_', "");
    let digits = digits.trim_start_matches('0');
    let whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    (whole && (LONG..=DIGITS_MAX).contains(&digits.len())).then(|| digits.to_owned())
}

fn decimal(digits: String) -> Expr {
    let precision = digits.len() as u64;
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::Value(Value::SingleQuotedString(digits).with_empty_span())),
        data_type: DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, 0)),
        array: false,
        format: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::sql::parser::DFParser;
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    fn kept(sql: &str) -> String {
        let mut statements = DFParser::parse_sql_with_dialect(sql, &GenericDialect {}).unwrap();
        let mut statement = statements.pop_front().expect("there is a statement");
        keep_digits(&mut statement, sql);
        statement.to_string()
    }

    #[test]
    fn only_what_64_bits_do_not_hold_becomes_a_decimal() {
        for same in [
            "SELECT 18446744073709551615",
            "SELECT -9223372036854775808",
            "SELECT 1e30",
            "SELECT 12345678901234567890.5",
            "SELECT '99999999999999999999'",
        ] {
            assert_eq!(kept(same), same);
        }
        assert_eq!(
            kept("SELECT 18446744073709551616 + -9223372036854775809"),
            "SELECT CAST('18446744073709551616' AS DECIMAL(20,0)) + \
             -CAST('9223372036854775809' AS DECIMAL(19,0))"
        );
    }
}
