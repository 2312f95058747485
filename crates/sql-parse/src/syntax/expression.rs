//! Texts of expressions that the store keeps.

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Parses an expression in the form that definitions are stored in.
pub fn parsed_expr(text: &str) -> Result<Expr> {
    Ok(Parser::new(&GenericDialect {}).try_with_sql(text)?.parse_expr()?)
}

/// An expression without the parentheses around it.
pub fn without_parentheses(expr: Expr) -> Expr {
    match expr {
        Expr::Nested(inner) => without_parentheses(*inner),
        expr => expr,
    }
}
