//! Row values: `(a, b)` and `ROW(a, b)` are compared field by field, and NULL among the fields makes the answer NULL
//! where it could be either.
//!
//! ```text
//! (a, b) = (c, d)                     a = c AND b = d
//! (a, b) <> (c, d)                    a <> c OR b <> d
//! (a, b) < (c, d)                     a <= c AND (a < c OR b < d)
//! (f(), b) < (c, d)                   row(f(), b) "<" row(c, d)
//! (a, b) IS DISTINCT FROM (c, d)      a IS DISTINCT FROM c OR b IS DISTINCT FROM d
//! (a, b) IS NOT NULL                  a IS NOT NULL AND b IS NOT NULL
//! (a, b) BETWEEN (1, 2) AND (3, 4)    (a, b) >= (1, 2) AND (a, b) <= (3, 4)
//! (a, b) IN ((1, 2), (3, 4))          (a, b) = (1, 2) OR (a, b) = (3, 4)
//! (a, b) = (SELECT x, y FROM t)       row(a, b) "=" (SELECT row(x, y) FROM (…) q)
//! (a, b) IN (SELECT x, y FROM t)      CASE WHEN EXISTS (SELECT 1 FROM (…) q WHERE x = a AND y = b) THEN true
//!                                          WHEN EXISTS (SELECT 1 FROM (…) q WHERE (x = a AND y = b) IS NULL) THEN NULL
//!                                          ELSE false END
//! (a, b) < ALL (SELECT x, y FROM t)   CASE WHEN EXISTS (SELECT 1 FROM (…) q WHERE NOT …) THEN false … ELSE true END
//! ```
//!
//! `"<"` is an operator that [`PlanCalls`](atoll_functions::PlanCalls) plans: it computes each field once,
//! and a CHECK that has it is stored as its original text. Rows within rows are records, as in PostgreSQL: NULL equals
//! NULL there, and is the largest value. In the condition of a filter, where NULL is false, the first EXISTS is enough.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    Query, Select, SelectItem, SetExpr, SetQuantifier, TableFactor, UnaryOperator, Value,
};

use crate::dialect::tree;
use crate::syntax::walk_expressions;
use atoll_sql_common::error::{SqlState, stated_err};

/// A longer list of constants is searched as rows of a relation.
const LISTED_MAX: usize = 10_000;

/// The comparisons in the condition of a SELECT.
pub(in crate::dialect) fn rewrite_select(select: &mut Select) -> Result<()> {
    select.selection.as_mut().map_or(Ok(()), rewrite_condition)
}

/// Comparisons with subqueries that are a condition, or a conjunct of one.
fn rewrite_condition(condition: &mut Expr) -> Result<()> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            rewrite_condition(left)?;
            rewrite_condition(right)?;
        }
        Expr::Nested(inner) => rewrite_condition(inner)?,
        Expr::InSubquery { expr, subquery, negated: false } => {
            if let Some(row) = fields(expr) {
                *condition = exists(subquery, row, &BinaryOperator::Eq, |holds| holds)?;
            }
        }
        Expr::AnyOp { left, compare_op, right, .. } if is_comparison(compare_op) => {
            if let (Some(row), Expr::Subquery(query)) = (fields(left), right.as_ref()) {
                *condition = exists(query, row, compare_op, |holds| holds)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Expands a comparison of rows.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) -> Result<()> {
    if let Some(written) = written(expr)? {
        *expr = nested(written);
        return Ok(());
    }
    if let Expr::Tuple(values) = expr
        && !is_planned(values)
    {
        *expr = row(std::mem::take(values));
    }
    Ok(())
}

fn written(expr: &Expr) -> Result<Option<Expr>> {
    match expr {
        Expr::BinaryOp { left, op, right } if is_comparison(op) => compared(left, op, right),
        Expr::IsDistinctFrom(left, right) => distinct(left, right, true),
        Expr::IsNotDistinctFrom(left, right) => distinct(left, right, false),
        Expr::IsNull(value) => Ok(every_field(value, Expr::IsNull)),
        Expr::IsNotNull(value) => Ok(every_field(value, Expr::IsNotNull)),
        Expr::Between { expr, negated, low, high } if fields(expr).is_some() => {
            let from = tree::binary(expr.as_ref().clone(), BinaryOperator::GtEq, *low.clone());
            let to = tree::binary(expr.as_ref().clone(), BinaryOperator::LtEq, *high.clone());
            Ok(Some(negated_if(*negated, tree::and(from, to))))
        }
        Expr::InList { expr, list, negated } => {
            let Some(row) = fields(expr) else { return Ok(None) };
            listed(expr, &row, list).map(|any| any.map(|any| negated_if(*negated, any)))
        }
        Expr::InSubquery { expr, subquery, negated } => {
            let Some(row) = fields(expr) else { return Ok(None) };
            let any = quantified(row, &BinaryOperator::Eq, subquery, false)?;
            Ok(Some(negated_if(*negated, any)))
        }
        Expr::AnyOp { left, compare_op: op, right, .. } if is_comparison(op) => {
            match (fields(left), right.as_ref()) {
                (Some(row), Expr::Subquery(query)) => quantified(row, op, query, false).map(Some),
                _ => Ok(None),
            }
        }
        Expr::AllOp { left, compare_op: op, right } if is_comparison(op) => {
            match (fields(left), right.as_ref()) {
                (Some(row), Expr::Subquery(query)) => quantified(row, op, query, true).map(Some),
                _ => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Whether DataFusion plans a row of these: it expects a name or a literal first.
fn is_planned(values: &[Expr]) -> bool {
    match values.first() {
        Some(Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)) | None => true,
        Some(_) => false,
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The fields of `(a, b)`, `ROW(a, b)` and `ROW(a)`.
pub(super) fn fields(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(values) if values.len() > 1 => Some(values.clone()),
        Expr::Nested(inner) => fields(inner),
        Expr::Function(call) if call.over.is_none() && call.filter.is_none() => {
            let [name] = call.name.0.as_slice() else { return None };
            let name = name.as_ident()?;
            let is_row = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("row");
            let FunctionArguments::List(list) = &call.args else { return None };
            let values = list.args.iter().map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
                _ => None,
            });
            if is_row { values.collect() } else { None }
        }
        _ => None,
    }
}

/// A row that is compared as one value.
fn row(fields: Vec<Expr>) -> Expr {
    tree::call("row", fields.into_iter().map(field).collect())
}

/// A row as a value.
pub(super) fn record(fields: Vec<Expr>) -> Expr {
    tree::call("struct", fields.into_iter().map(field).collect())
}

/// A field of a row that is compared: a row in it is a record.
fn field(expr: Expr) -> Expr {
    match fields(&expr) {
        Some(inner) if !inner.is_empty() => record(inner),
        _ => nested(expr),
    }
}

/// `row op row`, `row op (SELECT …)` and `row op NULL`.
fn compared(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    Ok(Some(match (fields(left), fields(right)) {
        (Some(left), Some(right)) => of_rows(left, op, right)?,
        (Some(row), None) => match right {
            other if tree::is_null(other) => unknown(),
            Expr::Subquery(query) => of_subquery(row, op, query)?,
            _ => return Ok(None),
        },
        (None, Some(_)) if tree::is_null(left) => unknown(),
        _ => return Ok(None),
    }))
}

fn of_rows(left: Vec<Expr>, op: &BinaryOperator, right: Vec<Expr>) -> Result<Expr> {
    let of_pair = |(left, right), op: BinaryOperator| tree::binary(left, op, right);
    let is_order = !matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq);
    if is_order && left.len() > 1 {
        let computed = |row: &[Expr]| row[..row.len() - 1].iter().any(is_computed);
        if left.len() == right.len() && (computed(&left) || computed(&right)) {
            return Ok(tree::binary(row(left), in_one(op), row(right)));
        }
    }
    let mut pairs = pairs(left, right)?;
    let joined = match op {
        BinaryOperator::Eq => {
            pairs.into_iter().map(|pair| of_pair(pair, op.clone())).reduce(tree::and)
        }
        BinaryOperator::NotEq => pairs.into_iter().map(|pair| of_pair(pair, op.clone())).reduce(or),
        _ => pairs.pop().map(|last| ordered(pairs, op, of_pair(last, op.clone()))),
    };
    joined.ok_or_else(no_fields)
}

/// `a <= c AND (a < c OR rest)` for each of the pairs: the first part makes scans skip pages.
fn ordered(pairs: Vec<(Expr, Expr)>, op: &BinaryOperator, last: Expr) -> Expr {
    let (strict, loose) = match op {
        BinaryOperator::Lt | BinaryOperator::LtEq => (BinaryOperator::Lt, BinaryOperator::LtEq),
        _ => (BinaryOperator::Gt, BinaryOperator::GtEq),
    };
    pairs.into_iter().rev().fold(last, |rest, (left, right)| {
        let before = tree::binary(left.clone(), strict.clone(), right.clone());
        let within = tree::binary(left, loose.clone(), right);
        tree::and(within, nested(or(before, nested(rest))))
    })
}

/// Whether an expression should be computed once: it calls a function, which may return another value each time, or has
/// a subquery.
fn is_computed(expr: &Expr) -> bool {
    let mut is_call = |expr: &Expr| match expr {
        Expr::Function(_) | Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    walk_expressions(expr, &mut is_call).is_break()
}

/// The operator that compares rows as one value.
fn in_one(op: &BinaryOperator) -> BinaryOperator {
    BinaryOperator::Custom(op.to_string())
}

fn pairs(left: Vec<Expr>, right: Vec<Expr>) -> Result<Vec<(Expr, Expr)>> {
    if left.len() != right.len() {
        return stated_err!(
            SYNTAX_ERROR,
            "unequal number of entries in row expressions: {} and {}",
            left.len(),
            right.len()
        );
    }
    if left.is_empty() {
        return Err(no_fields());
    }
    Ok(left.into_iter().map(field).zip(right.into_iter().map(field)).collect())
}

fn no_fields() -> DataFusionError {
    SqlState::FEATURE_NOT_SUPPORTED.error("cannot compare rows of zero length")
}

/// `row IS [NOT] DISTINCT FROM row`
fn distinct(left: &Expr, right: &Expr, is_distinct: bool) -> Result<Option<Expr>> {
    let (left, right) = match (fields(left), fields(right)) {
        (Some(left), Some(right)) => (left, right),
        (Some(_), None) if tree::is_null(right) => {
            return Ok(Some(boolean(Value::Boolean(is_distinct))));
        }
        (None, Some(_)) if tree::is_null(left) => {
            return Ok(Some(boolean(Value::Boolean(is_distinct))));
        }
        _ => return Ok(None),
    };
    let pairs =
        pairs(left, right)?.into_iter().map(|(left, right)| (Box::new(left), Box::new(right)));
    Ok(match is_distinct {
        true => pairs.map(|(left, right)| Expr::IsDistinctFrom(left, right)).reduce(or),
        false => pairs.map(|(left, right)| Expr::IsNotDistinctFrom(left, right)).reduce(tree::and),
    })
}

/// Whether all fields of a row are NULL, or none of them is.
fn every_field(value: &Expr, holds: fn(Box<Expr>) -> Expr) -> Option<Expr> {
    let tests = fields(value)?.into_iter().map(|of_row| holds(Box::new(field(of_row))));
    Some(tests.reduce(tree::and).unwrap_or_else(|| boolean(Value::Boolean(true))))
}

/// Whether a row is among those of a list.
fn listed(value: &Expr, row: &[Expr], list: &[Expr]) -> Result<Option<Expr>> {
    if list.len() * row.len() > LISTED_MAX
        && let Some(rows) = list.iter().map(fields).collect::<Option<Vec<_>>>()
        && rows.iter().flatten().all(is_constant)
        && rows.iter().all(|other| other.len() == row.len())
    {
        return quantified(row.to_vec(), &BinaryOperator::Eq, &tree::values(rows), false).map(Some);
    }
    let equal = list
        .iter()
        .map(|item| nested(tree::binary(value.clone(), BinaryOperator::Eq, item.clone())));
    Ok(balanced(equal.collect()))
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => !matches!(value.value, Value::Placeholder(_)),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => is_constant(expr),
        Expr::Nested(inner) => is_constant(inner),
        Expr::TypedString(_) => true,
        Expr::Cast { expr, .. } => is_constant(expr),
        _ => false,
    }
}

/// A row compared with the one that a subquery returns; NULL if it returns none.
fn of_subquery(fields: Vec<Expr>, op: &BinaryOperator, query: &Query) -> Result<Expr> {
    let (columns, rows) = named_rows(query, fields.len())?;
    let one = tree::item(row(columns), "row");
    let select = tree::select(vec![one], vec![tree::alone(rows)]);
    let query = Box::new(tree::query(SetExpr::Select(Box::new(select))));
    Ok(tree::binary(row(fields), in_one(op), Expr::Subquery(query)))
}

/// `row op ANY (SELECT …)` and `row op ALL (SELECT …)`
fn quantified(row: Vec<Expr>, op: &BinaryOperator, query: &Query, is_all: bool) -> Result<Expr> {
    let decides = |holds| if is_all { negated_if(true, holds) } else { holds };
    let decided = exists(query, row.clone(), op, decides)?;
    let unknown = exists(query, row, op, |holds| Expr::IsNull(Box::new(nested(holds))))?;
    Ok(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![
            CaseWhen { condition: decided, result: boolean(Value::Boolean(!is_all)) },
            CaseWhen { condition: unknown, result: boolean(Value::Null) },
        ],
        else_result: Some(Box::new(boolean(Value::Boolean(is_all)))),
    })
}

/// Whether a subquery has a row for which something holds of its comparison with this one.
fn exists(
    subquery: &Query,
    row: Vec<Expr>,
    op: &BinaryOperator,
    asked: impl Fn(Expr) -> Expr,
) -> Result<Expr> {
    let (columns, rows) = named_rows(subquery, row.len())?;
    let one = tree::item(Expr::Value(Value::Number("1".to_owned(), false).into()), "one");
    let mut select = tree::select(vec![one], vec![tree::alone(rows)]);
    select.selection = Some(asked(of_rows(columns, &mirrored(op), row)?));
    let subquery = Box::new(tree::query(SetExpr::Select(Box::new(select))));
    Ok(Expr::Exists { subquery, negated: false })
}

/// The operator that says the same of the operands in the other order.
fn mirrored(op: &BinaryOperator) -> BinaryOperator {
    match op {
        BinaryOperator::Lt => BinaryOperator::Gt,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        other => other.clone(),
    }
}

/// The rows of a subquery, and the names of their fields.
fn named_rows(query: &Query, count: usize) -> Result<(Vec<Expr>, TableFactor)> {
    match width(&query.body) {
        Some(width) if width < count => {
            return stated_err!(
                SYNTAX_ERROR,
                "subquery has too few columns: expected {count}, found {width}"
            );
        }
        Some(width) if width > count => {
            return stated_err!(
                SYNTAX_ERROR,
                "subquery has too many columns: expected {count}, found {width}"
            );
        }
        _ => {}
    }
    let names: Vec<String> = (0..count).map(|at| format!("$part{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let columns = names.iter().map(|name| Expr::Identifier(tree::quoted(name))).collect();
    Ok((columns, tree::derived(query.clone(), Some(tree::alias("$rows", &names)))))
}

/// The number of columns of a query, if visible.
fn width(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let is_one = |item: &SelectItem| match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    !is_many(expr)
                }
                _ => false,
            };
            select.projection.iter().all(is_one).then_some(select.projection.len())
        }
        SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
        SetExpr::Query(query) => width(&query.body),
        SetExpr::SetOperation { left, set_quantifier, .. } => match set_quantifier {
            SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => {
                None
            }
            _ => width(left),
        },
        _ => None,
    }
}

/// Whether an expression may expand to several columns: COLUMNS, and the fields of a struct that is unnested.
fn is_many(expr: &Expr) -> bool {
    let mut is_such = |expr: &Expr| {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let name = call.name.to_string();
        match ["columns", "unnest"].iter().any(|other| name.eq_ignore_ascii_case(other)) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    walk_expressions(expr, &mut is_such).is_break()
}

fn boolean(value: Value) -> Expr {
    Expr::Value(value.into())
}

/// NULL as the result of a comparison.
fn unknown() -> Expr {
    tree::cast(boolean(Value::Null), DataType::Boolean)
}

fn negated_if(negated: bool, expr: Expr) -> Expr {
    match negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(expr)) },
        false => nested(expr),
    }
}

fn or(left: Expr, right: Expr) -> Expr {
    tree::binary(left, BinaryOperator::Or, right)
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

/// A disjunction that is not deep.
fn balanced(mut exprs: Vec<Expr>) -> Option<Expr> {
    while exprs.len() > 1 {
        let mut pairs = exprs.into_iter();
        let mut joined = Vec::new();
        while let Some(left) = pairs.next() {
            joined.push(match pairs.next() {
                Some(right) => or(left, right),
                None => left,
            });
        }
        exprs = joined;
    }
    exprs.pop()
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::DuckDbDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn rewritten(text: &str) -> Result<String> {
        let mut parser = Parser::new(&DuckDbDialect {}).try_with_sql(text).expect("valid tokens");
        let mut expr = parser.parse_expr().expect("it is an expression");
        rewrite(&mut expr)?;
        Ok(expr.to_string())
    }

    #[test]
    fn rows_are_compared_field_by_field() {
        for (text, written) in [
            ("(a, b) = ROW(c, d)", "((a) = (c) AND (b) = (d))"),
            ("(a, b) <> (c, d)", "((a) <> (c) OR (b) <> (d))"),
            ("(a, b) < (c, d)", "((a) <= (c) AND ((a) < (c) OR ((b) < (d))))"),
            ("(f(a), b) < (c, d)", "(row((f(a)), (b)) < row((c), (d)))"),
            ("(a, f(b)) >= (c, d)", "((a) >= (c) AND ((a) > (c) OR ((f(b)) >= (d))))"),
            ("(a, (b, c)) = (1, (2, 3))", "((a) = (1) AND struct((b), (c)) = struct((2), (3)))"),
            ("(a, b) IS NOT NULL", "((a) IS NOT NULL AND (b) IS NOT NULL)"),
            ("(a, b) = NULL", "(NULL::BOOLEAN)"),
            ("(a, b) IS DISTINCT FROM NULL", "(true)"),
            ("(a, b) IN ((1, 2), c)", "((((a, b) = (1, 2)) OR ((a, b) = c)))"),
            ("(a + 1, b)", "row((a + 1), (b))"),
            // Other parentheses and functions stay.
            ("(a, b)", "(a, b)"),
            ("(a) = (b)", "(a) = (b)"),
            ("s = (1, 2)", "s = (1, 2)"),
            ("\"row\"(a) = \"row\"(b)", "\"row\"(a) = \"row\"(b)"),
        ] {
            assert_eq!(rewritten(text).expect("valid rows"), written, "{text}");
        }
    }

    #[test]
    fn a_long_list_of_constants_is_a_relation() {
        let list = |item: &str| vec![item; LISTED_MAX / 2 + 1].join(", ");
        let long = rewritten(&format!("(a, b) IN ({})", list("(1, -2)"))).expect("valid rows");
        assert!(long.contains("FROM (VALUES (1, -2), (1, -2)"), "{}", &long[..300]);
        let of_columns = rewritten(&format!("(a, b) IN ({})", list("(1, c)")));
        assert!(of_columns.expect("valid rows").starts_with("((((a, b) = (1, c)) OR"));
    }

    #[test]
    fn rows_of_other_lengths_are_refused() {
        for text in [
            "(1, 2) = (1, 2, 3)",
            "(1, 2) IS DISTINCT FROM ROW(1)",
            "(1, 2) IN (SELECT 1)",
            "(1, 2) = (SELECT 1, 2, 3)",
            "(1, 2) < ALL (SELECT 1, 2, 3)",
        ] {
            assert!(rewritten(text).is_err(), "{text}");
        }
        for text in ["(1, 2) = (SELECT * FROM t)", "(1, 2) IN (SELECT COLUMNS('a') FROM t)"] {
            assert!(rewritten(text).is_ok(), "{text}");
        }
    }
}
