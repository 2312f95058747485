//! Marks on expressions whose literals and parameters adopt the types of their siblings, which only the planner
//! knows.
//!
//! ```text
//! coalesce(d, '2024-01-01')              coalesce(d, '2024-01-01') $alike true
//! CASE WHEN a THEN d ELSE $1 END         (CASE … END) $alike true
//! coalesce(n, 0)                         coalesce(n, 0) $alike true
//! VALUES (now()), ('2024-01-01')         VALUES (now()), ('2024-01-01' $beside now())
//! ```
//!
//! The marks are operators because the operator planner sees planned operands and their columns. They are added
//! right before planning, so that no text contains them. `sibling_types` resolves them.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Query, SetExpr, Statement, UnaryOperator, Value, Values, VisitorMut,
};

use super::sibling_types::takes_alike;
use atoll_sql_parse::dialect::tree;
use atoll_sql_parse::syntax::{walk_expressions, walk_mut};

/// Follows an expression whose parts have one type.
pub(super) const ALIKE: &str = "$alike";

/// Separates a value in a column of VALUES from the others.
pub(super) const BESIDE: &str = "$beside";

/// Maximum number of values that are inspected to find the type of a column of VALUES.
const SIBLINGS_MAX: usize = 8;

/// Marks such expressions in a statement.
pub(crate) fn mark_siblings(statement: &mut Parsed) {
    let mut marks = Marks { inserts: false };
    let _: ControlFlow<()> = match statement {
        Parsed::Statement(statement) => walk_mut(statement, &mut marks),
        Parsed::Explain(explain) => return mark_siblings(&mut explain.statement),
        Parsed::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => walk_mut(query, &mut marks),
            CopyToSource::Relation(_) => return,
        },
        _ => return,
    };
}

/// Marks such expressions inside an expression.
pub(crate) fn mark_siblings_within(expr: &mut Expr) {
    let _: ControlFlow<()> = walk_mut(expr, &mut Marks { inserts: false });
}

struct Marks {
    /// Whether the next query is the source of an INSERT: its values have the types of the table's columns.
    inserts: bool,
}

impl VisitorMut for Marks {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        self.inserts = matches!(statement, Statement::Insert(insert) if insert.source.is_some());
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if !std::mem::take(&mut self.inserts) {
            mark_values(&mut query.body);
        }
        ControlFlow::Continue(())
    }

    /// Outer expressions after inner ones: a mark is not visited again.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if is_marked(expr) {
            let marked = std::mem::replace(expr, Expr::value(Value::Null));
            let alike = BinaryOperator::Custom(ALIKE.to_owned());
            *expr = tree::binary(marked, alike, Expr::value(Value::Boolean(true)));
        }
        ControlFlow::Continue(())
    }
}

fn is_marked(expr: &Expr) -> bool {
    match expr {
        Expr::Case { operand, conditions, else_result, .. } => {
            let results =
                || conditions.iter().map(|when| &when.result).chain(else_result.as_deref());
            let compared = || conditions.iter().map(|when| &when.condition);
            is_mixed(results())
                || operand.as_deref().is_some_and(|operand| is_mixed(compared().chain([operand])))
        }
        Expr::Function(function) => is_call_marked(function),
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            is_unknown(left) != is_unknown(right)
        }
        // Other literals are handled in the plan, whose types they do not change.
        Expr::Between { expr, .. } | Expr::InList { expr, .. } => tree::is_parameter(expr),
        _ => false,
    }
}

fn is_call_marked(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    if list.args.len() < 2 || function.over.is_some() {
        return false;
    }
    let values = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    });
    is_mixed(values) && takes_alike(&function.name.to_string().to_ascii_lowercase())
}

/// Whether there are literals or parameters among other values, or numbers.
fn is_mixed<'a>(values: impl Iterator<Item = &'a Expr>) -> bool {
    let (mut has_unknown, mut has_other) = (false, false);
    for value in values {
        match is_unknown(value) {
            true => has_unknown = true,
            false if is_number(value) => return true,
            false => has_other |= !tree::is_null(value),
        }
    }
    has_unknown && has_other
}

/// Whether a value has no type of its own: a string literal or a parameter.
fn is_unknown(value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) => is_unknown(inner),
        Expr::Value(value) => matches!(
            value.value,
            Value::SingleQuotedString(_)
                | Value::DollarQuotedString(_)
                | Value::EscapedStringLiteral(_)
                | Value::Placeholder(_)
        ),
        _ => false,
    }
}

/// Whether a value is a numeric literal, possibly signed.
fn is_number(value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => {
            is_number(inner)
        }
        value => matches!(value, Expr::Value(value) if matches!(value.value, Value::Number(..))),
    }
}

/// Whether a value contains a number with a decimal point: next to floats it is a float.
fn has_point(value: &Expr) -> bool {
    let is_decimal = |value: &Expr| match value {
        Expr::Value(value) => {
            matches!(&value.value, Value::Number(digits, _) if digits.contains('.'))
        }
        _ => false,
    };
    walk_expressions(value, &mut |value| match is_decimal(value) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })
    .is_break()
}

fn mark_values(body: &mut SetExpr) {
    match body {
        SetExpr::Values(values) => mark_columns(values),
        SetExpr::SetOperation { left, right, .. } => {
            mark_values(left);
            mark_values(right);
        }
        _ => {}
    }
}

/// Marks literals and parameters in columns of VALUES that also have other values.
fn mark_columns(values: &mut Values) {
    if values.rows.len() < 2 {
        return;
    }
    let columns = values.rows.iter().map(|row| row.content.len()).min().unwrap_or(0);
    for column in 0..columns {
        let cells = || values.rows.iter().map(|row| &row.content[column]);
        let has_parameters = cells().any(tree::is_parameter);
        if !cells().any(|cell| is_unknown(cell) || has_point(cell)) {
            continue;
        }
        let others = siblings(cells());
        // If all others are numbers, DataFusion converts the texts to numbers.
        if others.is_empty() || !has_parameters && others.iter().all(is_number) {
            continue;
        }
        let others = one_of(others);
        let cells = values.rows.iter_mut().map(|row| &mut row.content[column]);
        for cell in cells.filter(|cell| is_unknown(cell) || has_point(cell)) {
            let own = std::mem::replace(cell, Expr::value(Value::Null));
            let beside = BinaryOperator::Custom(BESIDE.to_owned());
            *cell = tree::binary(own, beside, others.clone());
        }
    }
}

/// Returns values that may determine the type of a column: of numbers the first integer and the first decimal.
fn siblings<'a>(cells: impl Iterator<Item = &'a Expr>) -> Vec<Expr> {
    let (mut found, mut has_whole, mut has_fraction) = (Vec::new(), false, false);
    for cell in cells.filter(|cell| !is_unknown(cell) && !tree::is_null(cell)) {
        if let Expr::Value(value) = cell
            && let Value::Number(digits, _) = &value.value
        {
            let is_whole = digits.bytes().all(|digit| digit.is_ascii_digit());
            let known = if is_whole { &mut has_whole } else { &mut has_fraction };
            if std::mem::replace(known, true) {
                continue;
            }
        }
        if found.len() < SIBLINGS_MAX && !found.contains(cell) {
            found.push(cell.clone());
        }
    }
    found
}

/// Builds an expression whose planned form contains all of these.
fn one_of(mut values: Vec<Expr>) -> Expr {
    let Some(last) = values.pop() else { return Expr::value(Value::Null) };
    if values.is_empty() {
        return last;
    }
    let conditions = values
        .into_iter()
        .map(|result| CaseWhen { condition: Expr::value(Value::Boolean(true)), result });
    Expr::Case {
        case_token: tree::no_token(),
        end_token: tree::no_token(),
        operand: None,
        conditions: conditions.collect(),
        else_result: Some(Box::new(last)),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn marked(sql: &str) -> String {
        let mut statement = DFParser::parse_sql(sql).expect(sql).pop_front().expect(sql);
        mark_siblings(&mut statement);
        statement.to_string()
    }

    #[test]
    fn literals_next_to_other_values_are_marked() {
        for (sql, expected) in [
            ("SELECT coalesce(a, 'x')", "SELECT coalesce(a, 'x') $alike true"),
            (
                "SELECT CASE WHEN a THEN b ELSE $1 END",
                "SELECT CASE WHEN a THEN b ELSE $1 END $alike true",
            ),
            ("SELECT array_append(a, $1)", "SELECT array_append(a, $1) $alike true"),
            ("SELECT $1 IN (a, b)", "SELECT $1 IN (a, b) $alike true"),
            ("SELECT a IS DISTINCT FROM 'x'", "SELECT a IS DISTINCT FROM 'x' $alike true"),
            ("VALUES (now()), ('x'), (NULL)", "VALUES (now()), ('x' $beside now()), (NULL)"),
        ] {
            assert_eq!(marked(sql), expected);
        }
    }

    #[test]
    fn other_expressions_stay_as_they_are() {
        for sql in [
            "SELECT coalesce('x', 'y')",
            "SELECT coalesce(a, b)",
            "SELECT f(a, 'x')",
            "SELECT a IN ('x', 'y')",
            "VALUES (1), ('2')",
            "INSERT INTO t VALUES (now()), ('x')",
        ] {
            assert_eq!(marked(sql), sql);
        }
    }
}
