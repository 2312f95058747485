//! The conditions and expressions of indexes.
//!
//! The store checks the condition of a unique index and computes its expressions, so these have the few forms that it
//! knows ([`row_condition`], [`key_function`]). An index that is not unique has all rows: its condition can have any form.

use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_functions::sql_name;
use atoll_sql_common::error::stated_err;
use atoll_sql_exec::scan::{key_function, row_condition};
use atoll_sql_parse::syntax::{sql_text, walk, walk_expressions_mut, without_parentheses};
use atoll_store::table::{CONDITION_DEPTH_MAX, IndexCondition, KeyExpression, KeyFunction};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, Function, Ident, ObjectName, ObjectNamePart,
    UnaryOperator, Value,
};

use super::moments::refuse_moments;
use crate::session::ddl::table_definition::{Queries, without_table};
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::table::PlacedTable;

impl StatementPlanner {
    /// The condition of a unique index.
    pub(super) async fn unique_condition(
        &self,
        table: &PlacedTable,
        condition: &Expr,
    ) -> Result<IndexCondition> {
        let (sql, planned) = self.checked_condition(table, condition).await?;
        let rows = row_condition(table.version().codec(), &planned)?;
        match rows.filter(|rows| rows.depth() <= CONDITION_DEPTH_MAX) {
            Some(rows) => Ok(IndexCondition { sql, rows }),
            None => stated_err!(
                FEATURE_NOT_SUPPORTED,
                "a unique index cannot have the condition {sql}; it can have comparisons of columns with constants \
                 and columns of the same type, IN, LIKE, IS NULL and boolean columns, joined by AND, OR and NOT"
            ),
        }
    }

    /// The text of an index's condition, and the condition as planned.
    pub(super) async fn checked_condition(
        &self,
        table: &PlacedTable,
        condition: &Expr,
    ) -> Result<(Arc<str>, Arc<dyn PhysicalExpr>)> {
        const WHAT: &str = "index predicate";
        let normalize = |ident: &Ident| self.normalized(ident);
        let mut condition = condition.clone();
        refuse_queries(&condition, WHAT)?;
        without_table(&mut condition, &table.at().table, &normalize);
        let text = sql_text(&parenthesized(condition.clone()));
        let (planned, of) = self.index_expression(table, condition.clone(), WHAT).await?;
        refuse_moments(&condition, &planned, WHAT)?;
        match of {
            DataType::Boolean => Ok((text.into(), planned)),
            other => stated_err!(
                DATATYPE_MISMATCH,
                "argument of WHERE must be type boolean, not type {}",
                sql_name(&other).to_lowercase()
            ),
        }
    }

    /// The expression of an index, and the column that it is a function of; `None` in its place if the store does not
    /// compute such ones.
    pub(super) async fn checked_expression(
        &self,
        table: &PlacedTable,
        expr: &Expr,
    ) -> Result<(Expr, Option<(usize, KeyFunction)>)> {
        const WHAT: &str = "index expression";
        let normalize = |ident: &Ident| self.normalized(ident);
        let mut expr = without_parentheses(expr.clone());
        refuse_queries(&expr, WHAT)?;
        without_table(&mut expr, &table.at().table, &normalize);
        let (planned, _) = self.index_expression(table, expr.clone(), WHAT).await?;
        refuse_moments(&expr, &planned, WHAT)?;
        if let Expr::Function(function) = &mut expr {
            let name = match name_of(function).as_str() {
                "coalesce" => "COALESCE".to_owned(),
                name => name.to_owned(),
            };
            function.name = ObjectName::from(vec![Ident::new(name)]);
        }
        Ok((expr, key_function(table.version().codec(), &planned)?))
    }
}

/// The expression of an index as the store keeps it, and the number of its column.
pub(super) fn stored_expression(
    expr: Expr,
    function: Option<(usize, KeyFunction)>,
) -> Result<(usize, KeyExpression)> {
    let sql = sql_text(&expr).into();
    match function {
        Some((column, function)) => Ok((column, KeyExpression { sql, function })),
        None => stated_err!(
            FEATURE_NOT_SUPPORTED,
            "a unique index cannot have the expression {sql}; it can have columns, coalesce(column, constant), and lower, \
             upper, trim, ltrim, rtrim, left, substr and md5 of a column or of one another"
        ),
    }
}

/// The text of an expression of an index that holds no rows: in parentheses, unless it is a function.
pub(super) fn catalog_text(expr: Expr) -> Arc<str> {
    match expr {
        Expr::Function(_) => sql_text(&expr).into(),
        expr => sql_text(&Expr::Nested(Box::new(expr))).into(),
    }
}

/// What the default name of an index says of an expression.
pub(super) fn name_part(expr: &Expr) -> String {
    match expr {
        Expr::Function(function) => name_of(function),
        _ => "expr".to_owned(),
    }
}

fn name_of(function: &Function) -> String {
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.map(|name| name.value.to_lowercase()).unwrap_or_default()
}

fn refuse_queries(expr: &Expr, what: &str) -> Result<()> {
    match walk(expr, &mut Queries).is_break() {
        true => stated_err!(FEATURE_NOT_SUPPORTED, "cannot use subquery in {what}"),
        false => Ok(()),
    }
}

/// A condition with parentheses around each of its parts, as PostgreSQL shows it.
fn parenthesized(condition: Expr) -> Expr {
    let inner = match without_parentheses(condition) {
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            Expr::BinaryOp {
                left: Box::new(parenthesized(*left)),
                op,
                right: Box::new(parenthesized(*right)),
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(parenthesized(*expr)) }
        }
        other => other,
    };
    match inner {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Function(_) | Expr::Value(_) => {
            inner
        }
        other => Expr::Nested(Box::new(other)),
    }
}

/// A text that is the same for expressions that differ only in how they are written.
pub(in crate::session) fn comparable_text(
    expr: &Expr,
    normalize: &dyn Fn(&Ident) -> String,
) -> String {
    let mut expr = without_parentheses(expr.clone());
    let _ = walk_expressions_mut(&mut expr, &mut |expr| {
        match expr {
            Expr::Identifier(name) => *name = quoted(&normalize(name)),
            Expr::CompoundIdentifier(parts) => {
                if let Some(name) = parts.last() {
                    *expr = Expr::Identifier(quoted(&normalize(name)));
                }
            }
            Expr::Function(function) => {
                for part in &mut function.name.0 {
                    if let Some(name) = part.as_ident() {
                        *part = ObjectNamePart::Identifier(quoted(&normalize(name)));
                    }
                }
            }
            Expr::Nested(inner) => *expr = Expr::clone(inner),
            // pg_dump casts texts to text.
            Expr::Cast { expr: inner, data_type, .. } if is_text(data_type) => {
                *expr = Expr::clone(inner);
            }
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                if let Expr::Value(value) = &**right
                    && let Value::Boolean(wanted) = value.value
                {
                    *expr = match wanted {
                        true => Expr::clone(left),
                        false => Expr::UnaryOp { op: UnaryOperator::Not, expr: left.clone() },
                    };
                }
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    // Each operand in parentheses: NOT (a OR b) is not (NOT a) OR b.
    let _ = walk_expressions_mut(&mut expr, &mut |expr| {
        if let Expr::BinaryOp { .. } | Expr::UnaryOp { .. } = expr {
            let operation = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = Expr::Nested(Box::new(operation));
        }
        ControlFlow::<()>::Continue(())
    });
    sql_text(&expr)
}

pub(super) fn is_text(data_type: &SqlType) -> bool {
    matches!(data_type, SqlType::Text | SqlType::Varchar(None) | SqlType::CharacterVarying(None))
}

/// The conditions that AND joins.
pub(in crate::session) fn joined_by_and(condition: &Expr) -> Vec<&Expr> {
    match condition {
        Expr::Nested(inner) => joined_by_and(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            let mut all = joined_by_and(left);
            all.extend(joined_by_and(right));
            all
        }
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use atoll_sql_parse::syntax::parsed_expr;

    use super::*;

    #[test]
    fn conditions_are_shown_as_postgresql_shows_them() {
        for (given, shown) in [
            ("a IS NULL", "(a IS NULL)"),
            ("((active))", "active"),
            ("NOT active", "(NOT active)"),
            ("(a = 1 or b IS NULL) AND c", "(((a = 1) OR (b IS NULL)) AND c)"),
        ] {
            assert_eq!(parenthesized(parsed_expr(given).unwrap()).to_string(), shown);
        }
    }

    #[test]
    fn the_same_conditions_have_the_same_text() {
        let lower = |ident: &Ident| match ident.quote_style {
            Some(_) => ident.value.clone(),
            None => ident.value.to_lowercase(),
        };
        let text = |sql: &str| comparable_text(&parsed_expr(sql).unwrap(), &lower);
        for (one, other) in [
            ("T.a IS NULL", "(\"a\" is null)"),
            ("Active = TRUE", "active"),
            ("LOWER(email)", "lower((Email))"),
        ] {
            assert_eq!(text(one), text(other));
        }
        assert_ne!(text("\"A\" IS NULL"), text("a IS NULL"));
        assert_ne!(text("a = 'x'"), text("a = 'X'"));
    }
}
