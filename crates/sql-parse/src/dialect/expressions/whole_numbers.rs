//! A whole number literal that a statement returns is INTEGER if it fits, as in PostgreSQL, because drivers rely on it;
//! elsewhere it has the type of its operands (`narrow_numbers`), or BIGINT.
//!
//! ```text
//! SELECT 1, -(2) AS a                        SELECT CAST(1 AS INTEGER), CAST(-(2) AS INTEGER) AS a
//! SELECT CASE WHEN a THEN 1 ELSE 0 END       SELECT CAST(CASE WHEN a THEN 1 ELSE 0 END AS INTEGER)
//! VALUES (1, 5000000000), (NULL, 2)          VALUES (CAST(1 AS INTEGER), 5000000000), (NULL, 2)
//! SELECT ROW(1, a)                           SELECT with_type(struct(CAST(1 AS INTEGER), a), 'record')
//! ```

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, SelectItem, SetExpr, Statement, UnaryOperator, Value, Values,
};

use super::object_names::with_type;
use super::tuples::{fields, record};
use crate::dialect::columns::names::{makes_table, returning};
use crate::dialect::tree;

/// Casts such numbers of the rows that a statement returns.
pub(in crate::dialect) fn cast_whole_numbers(statement: &mut Statement) {
    match statement {
        Statement::Query(query) if !makes_table(query) => in_body(&mut query.body),
        Statement::Prepare { statement, .. } => cast_whole_numbers(statement),
        other => {
            if let Some(items) = returning(other) {
                in_items(items);
            }
        }
    }
}

fn in_body(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => in_items(&mut select.projection),
        SetExpr::Query(query) => in_body(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            in_body(left);
            in_body(right);
        }
        SetExpr::Values(values) => in_values(values),
        SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => {
            cast_whole_numbers(statement);
        }
        _ => {}
    }
}

fn in_items(items: &mut [SelectItem]) {
    for item in items {
        let (SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr)) = item else {
            continue;
        };
        let expr = match expr {
            Expr::Named { expr, .. } => expr.as_mut(),
            expr => expr,
        };
        if is_small(expr) {
            cast(expr);
        } else if let Some(fields) = fields(expr) {
            *expr = as_record(fields);
        }
    }
}

/// A row of these values as PostgreSQL's clients see it.
fn as_record(mut fields: Vec<Expr>) -> Expr {
    for field in &mut fields {
        match self::fields(field) {
            Some(inner) => *field = as_record(inner),
            None if is_small(field) => cast(field),
            None => {}
        }
    }
    with_type(record(fields), "record")
}

/// A column has one type, so all of its values must fit.
fn in_values(values: &mut Values) {
    let columns = values.rows.iter().map(|row| row.content.len()).min().unwrap_or(0);
    for column in 0..columns {
        let mut cells = values.rows.iter().map(|row| &row.content[column]);
        if cells.all(|cell| is_small(cell) || tree::is_null(cell)) {
            let cells = values.rows.iter_mut().map(|row| &mut row.content[column]);
            cells.filter(|cell| is_small(cell)).for_each(cast);
        }
    }
}

/// Whether it is a number that INTEGER holds, or a CASE of such numbers. As in PostgreSQL the digits have to fit without
/// their sign.
fn is_small(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => {
            is_small(inner)
        }
        Expr::Value(value) => match &value.value {
            Value::Number(digits, false) => digits.replace('_', "").parse::<i32>().is_ok(),
            _ => false,
        },
        Expr::Case { conditions, else_result, .. } => {
            let results =
                || conditions.iter().map(|when| &when.result).chain(else_result.as_deref());
            results().all(|result| is_small(result) || tree::is_null(result))
                && results().any(is_small)
        }
        _ => false,
    }
}

fn cast(expr: &mut Expr) {
    let own = std::mem::replace(expr, Expr::value(Value::Null));
    *expr = Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(own),
        data_type: DataType::Integer(None),
        array: false,
        format: None,
    };
}
