//! Numbers that DataFusion's planner misreads.
//!
//! ```text
//! 1e3          1000.                      a decimal, without the negative scale that the planner would give it
//! 1e-3         0.001
//! 1e300        CAST('1e300' AS DOUBLE)    no decimal has that many digits
//! ```

use crate::syntax::walk_expressions_mut;
use std::ops::ControlFlow;

use atoll_functions::WrittenNumber;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{CastKind, DataType, ExactNumberInfo, Expr, Value, VisitMut};

/// Digits of the widest decimal.
const DIGITS_MAX: usize = 76;

/// Writes such numbers of a statement in a form that the planner reads.
pub(super) fn rewrite(statement: &mut Statement, sql: &str) {
    if !has_long_number(sql) && !has_exponent(sql) {
        return;
    }
    match statement {
        Statement::Statement(statement) => in_expressions(statement.as_mut()),
        Statement::Explain(explain) => rewrite(&mut explain.statement, sql),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                in_expressions(query.as_mut());
            }
        }
        _ => {}
    }
}

/// Whether there may be a number of more digits than a decimal has.
fn has_long_number(sql: &str) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'_' | b'.');
    sql.as_bytes().chunk_by(|a, b| is_part(a) && is_part(b)).any(|run| run.len() > DIGITS_MAX)
}

/// Whether there may be a number with an exponent.
fn has_exponent(sql: &str) -> bool {
    let is_mantissa = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    sql.as_bytes().windows(2).any(|pair| is_mantissa(pair[0]) && matches!(pair[1], b'e' | b'E'))
}

fn in_expressions(node: &mut impl VisitMut) {
    let _: ControlFlow<()> = walk_expressions_mut(node, &mut |expr| {
        if let Some(rewritten) = rewritten(expr) {
            *expr = rewritten;
        }
        ControlFlow::Continue(())
    });
}

fn rewritten(expr: &Expr) -> Option<Expr> {
    let Expr::Value(value) = expr else { return None };
    let Value::Number(text, _) = &value.value else { return None };
    let text = text.replace('_', "");
    let has_exponent = text.contains(['e', 'E']);
    if !has_exponent && text.len() <= DIGITS_MAX {
        return None;
    }
    let Some(number) = WrittenNumber::parse(&text) else { return Some(double(text)) };
    let (whole, behind) = number.places();
    if whole.max(1) + behind > DIGITS_MAX {
        return Some(double(text));
    }
    let point = if has_exponent && behind == 0 { "." } else { "" };
    Some(Expr::Value(Value::Number(format!("{number}{point}"), false).with_span(value.span)))
}

fn double(text: String) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::Value(Value::SingleQuotedString(text).with_empty_span())),
        data_type: DataType::Double(ExactNumberInfo::None),
        array: false,
        format: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::sql::parser::DFParser;
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    fn rewritten(sql: &str) -> String {
        let mut statements = DFParser::parse_sql_with_dialect(sql, &GenericDialect {}).unwrap();
        let mut statement = statements.pop_front().expect("there is a statement");
        rewrite(&mut statement, sql);
        statement.to_string()
    }

    #[test]
    fn digits_of_decimals_stay() {
        let digits = "9".repeat(75);
        for same in [
            "SELECT -9223372036854775809",
            "SELECT 12345678901234567890.5",
            &format!("SELECT {digits}.9"),
            &format!("SELECT '{digits}999'"),
        ] {
            assert_eq!(rewritten(same), same);
        }
        let longer = format!("{digits}99");
        assert_eq!(
            rewritten(&format!("SELECT {longer}")),
            format!("SELECT CAST('{longer}' AS DOUBLE)")
        );
    }

    #[test]
    fn numbers_with_an_exponent_are_written_with_all_digits() {
        for (written, expected) in [
            ("1e3", "1000."),
            ("-1.5E1", "-15."),
            ("1.50e1", "15.0"),
            ("1e-3", "0.001"),
            ("1e300", "CAST('1e300' AS DOUBLE)"),
            ("1e-300", "CAST('1e-300' AS DOUBLE)"),
        ] {
            assert_eq!(rewritten(&format!("SELECT {written}")), format!("SELECT {expected}"));
        }
    }
}
