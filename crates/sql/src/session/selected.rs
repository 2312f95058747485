//! Selections sent as text that share scans: the values that conditions compare columns with become parameters,
//! so that a text is planned once, whatever values it comes with.

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SetExpr, Statement as Ast, TableFactor, UnaryOperator,
    Value,
};

use super::Session;
use super::execute::QueryResult;
use super::point::{PlannedStatement, Shape};
use super::text_scope::SHARED_SCAN_KEY;
use crate::settings::SharedScan;
use crate::shared_scan::{AloneQuery, TextScope, TextSelection};

/// Values that a text has at most: planning takes longer with each of them than sharing a scan would save.
const VALUES_MAX: usize = 256;

/// What comes of a text.
pub(super) enum TextRide {
    /// Its rows.
    Rows(QueryResult),
    /// It runs the ordinary way: while it does, others like it share a scan.
    Alone(AloneQuery),
    /// It does not fit.
    Misfit,
}

impl Session {
    /// Answers a selection together with others, where it fits and others run.
    pub(super) async fn ride_text(&self, statement: &Parsed, sql: &str) -> Result<TextRide> {
        self.scope.heed(statement);
        let Parsed::Statement(ast) = statement else { return Ok(TextRide::Misfit) };
        let Ast::Query(query) = ast.as_ref() else { return Ok(TextRide::Misfit) };
        let mode = self.shared_scan();
        if mode == SharedScan::Off || self.is_in_transaction() {
            return Ok(TextRide::Misfit);
        }
        let Some((text, literals)) = with_parameters(query) else { return Ok(TextRide::Misfit) };
        let scope = self.text_scope();
        let texts = self.database().shared_scans().texts();
        let version = self.database().store().published();
        let planned = texts.get(scope, &text, &version);
        let known = planned.get_or_init(|| self.plan_text(&text)).await;
        let Some(selection) = &known.selection else { return Ok(TextRide::Misfit) };
        let values = literals.iter().zip(&known.types).map(|(literal, of)| literal.value(of));
        let Some(values) = values.collect::<Option<Vec<_>>>() else { return Ok(TextRide::Misfit) };
        let values = values.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
        let Some(bound) = selection.bind(&values)? else { return Ok(TextRide::Misfit) };
        if mode == SharedScan::Auto
            && let Some(alone) = bound.alone(self)
        {
            return Ok(TextRide::Alone(alone));
        }
        match bound.ride(self).await? {
            Some(rows) => Ok(TextRide::Rows(QueryResult::of_scan(selection.schema(), rows, sql))),
            None => {
                texts.forget(scope, &text);
                Ok(TextRide::Misfit)
            }
        }
    }

    /// Plans a text. One that cannot be planned with parameters may be planned without.
    async fn plan_text(&self, text: &str) -> TextSelection {
        match self.plan_prepared(text, &[]).await {
            Ok(PlannedStatement { types, shape: Shape::Shared(selection), .. }) => {
                TextSelection { types, selection: Some(selection) }
            }
            _ => TextSelection { types: Vec::new(), selection: None },
        }
    }

    /// Where the texts of this session are kept.
    fn text_scope(&self) -> TextScope {
        self.scope.get_or_find(|is_own| {
            let texts = self.database().shared_scans().texts();
            if is_own {
                return texts.own_scope();
            }
            let state = self.context.state_ref();
            let entries = state.read().config_options().entries();
            let settings = entries.into_iter().filter(|entry| entry.key != SHARED_SCAN_KEY);
            texts.scope_of(settings.map(|entry| (entry.key, entry.value)).collect())
        })
    }
}

/// A value as it was written.
#[derive(Debug, PartialEq)]
enum Literal {
    Number(String),
    Text(String),
}

impl Literal {
    /// The value in the type of its column; none where it is not exactly one of that type.
    fn value(&self, data_type: &DataType) -> Option<ScalarValue> {
        match (self, data_type) {
            (Self::Number(text), DataType::Float64) => {
                text.parse().ok().map(|value| ScalarValue::Float64(Some(value)))
            }
            (Self::Number(text), DataType::Decimal128(precision, scale)) => {
                let value = decimal(text, u32::try_from(*scale).ok()?)?;
                let fits = value.unsigned_abs() < 10_u128.checked_pow((*precision).into())?;
                fits.then_some(ScalarValue::Decimal128(Some(value), *precision, *scale))
            }
            (Self::Number(text), of) if of.is_integer() => {
                ScalarValue::Int64(Some(text.parse().ok()?)).cast_to(of).ok()
            }
            (Self::Text(text), DataType::Utf8View) => {
                Some(ScalarValue::Utf8View(Some(text.clone())))
            }
            (Self::Text(text), DataType::Date32) => {
                ScalarValue::Utf8(Some(text.clone())).cast_to(data_type).ok()
            }
            _ => None,
        }
    }
}

/// A decimal of a scale; none where it has more digits behind the point.
fn decimal(text: &str, scale: u32) -> Option<i128> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let missing = scale.checked_sub(u32::try_from(rest.len()).ok()?)?;
    let digits: i128 = format!("{whole}{rest}").parse().ok()?;
    digits.checked_mul(10_i128.checked_pow(missing)?)
}

/// The text of a selection from one table with parameters in place of the values of its conditions, and these;
/// none where it is more than that.
fn with_parameters(query: &Query) -> Option<(String, Vec<Literal>)> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let is_more = query.with.is_some() || !query.locks.is_empty();
    if is_more || select.selection.is_none() || !is_of_one_table(select) {
        return None;
    }
    let (mut query, mut literals) = (query.clone(), Vec::new());
    if let SetExpr::Select(select) = query.body.as_mut() {
        take_values(select.selection.as_mut()?, &mut literals)?;
    }
    (1..=VALUES_MAX).contains(&literals.len()).then(|| (query.to_string(), literals))
}

fn is_of_one_table(select: &Select) -> bool {
    let [from] = &select.from[..] else { return false };
    matches!(from.relation, TableFactor::Table { args: None, .. })
        && from.joins.is_empty()
        && select.into.is_none()
        && !has_parameters(select)
}

fn has_parameters(select: &Select) -> bool {
    use datafusion::sql::sqlparser::ast::visit_expressions;
    let found = visit_expressions(select, |expr| match expr {
        Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Takes the values that columns are compared with; none where there is another kind of condition, which
/// would not fit.
fn take_values(expr: &mut Expr, literals: &mut Vec<Literal>) -> Option<()> {
    match expr {
        Expr::Nested(inner) => take_values(inner, literals),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            take_values(left, literals)?;
            take_values(right, literals)
        }
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            if is_column(left) {
                take_value(right, literals);
            } else if is_column(right) {
                take_value(left, literals);
            }
            Some(())
        }
        Expr::Between { expr, low, high, negated: false } if is_column(expr) => {
            take_value(low, literals);
            take_value(high, literals);
            Some(())
        }
        Expr::InList { expr, list, .. } if is_column(expr) && list.len() <= VALUES_MAX => {
            list.iter_mut().for_each(|value| take_value(value, literals));
            Some(())
        }
        Expr::Like { any: false, expr, .. } | Expr::IsNull(expr) | Expr::IsNotNull(expr)
            if is_column(expr) =>
        {
            Some(())
        }
        _ => None,
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// Puts a parameter in the place of a number or a string.
fn take_value(expr: &mut Expr, literals: &mut Vec<Literal>) {
    let literal = match expr {
        Expr::Value(value) => literal(&value.value),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, false) => Some(Literal::Number(format!("-{digits}"))),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    if let Some(literal) = literal {
        literals.push(literal);
        *expr = Expr::Value(Value::Placeholder(format!("${}", literals.len())).into());
    }
}

fn literal(value: &Value) -> Option<Literal> {
    match value {
        Value::Number(digits, false) => Some(Literal::Number(digits.clone())),
        Value::SingleQuotedString(text) => Some(Literal::Text(text.clone())),
        _ => None,
    }
}
