//! The text of syntax trees, which is parsed again.

use std::fmt::Display;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Value, ValueWithSpan, VisitMut, VisitorMut};

/// The text of a statement, a query or an expression, which means the same when it is parsed.
///
/// sqlparser prints two quotes in a string, and one after a backslash, as if they were escaped already: `'it''''s'` would
/// become `'it''s'`, and `'\'''` would end before its last quote. Quotes that are all doubled are printed as they are.
pub fn sql_text<T: Display + Clone + VisitMut>(node: &T) -> String {
    let mut node = node.clone();
    let _ = node.visit(&mut QuoteDoubler);
    node.to_string()
}

struct QuoteDoubler;

impl VisitorMut for QuoteDoubler {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        if let Value::SingleQuotedString(text) = &mut value.value
            && text.contains('\'')
        {
            *text = text.replace('\'', "''");
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn quotes_stay_what_they_are() {
        for sql in [
            "SELECT ''",
            "SELECT ''''",
            "SELECT 'it''s', 'it''''s', '''''', ''''''''",
            "SELECT '\\''', '\\''''', '''\\'''",
            "SELECT a FROM t WHERE b LIKE '%k''''l' AND c = DATE '2024-01-01'",
            "UPDATE e SET b = concat('\\''', 1) WHERE id = ') WHERE id >= 1 --'",
        ] {
            let parsed = Parser::parse_sql(&GenericDialect {}, sql).expect(sql);
            assert_eq!(sql_text(&parsed[0]), sql);
        }
    }
}
