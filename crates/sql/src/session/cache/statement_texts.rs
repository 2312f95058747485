//! Cached plans of statements sent as text: the values that conditions compare columns with, and those that are
//! written, become parameters, so that a text is planned once for all values.
//!
//! Statements that find their row by a key, or list their rows, run as if prepared; selections and changes of other
//! rows of one table share scans.

use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_store::database::DatabaseVersion;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, Delete, Expr, FromTable, Insert, OnInsert, Query,
    Select, SelectItem, SetExpr, Statement as Ast, TableFactor, TableObject, TableWithJoins,
    UnaryOperator, Update, Value,
};

use crate::session::Session;
use crate::session::cache::plan_cache::{DeclaredText, KnownText, PlanCache, ValuePlace};
use crate::session::cache::point::{PlannedStatement, Shape, StatementRun};
use crate::session::cache::prepared::PreparedText;
use crate::session::cache::raw_text::{RawText, RawValue};
use crate::session::cache::text_scope::{SHARED_SCAN_KEY, TextScope};
use crate::session::plan::declared_operands::DeclaredType;
use crate::session::statement::query_result::QueryResult;
use crate::shared_scan::{AloneQuery, SharedSelection};
use atoll_sql_common::settings::SharedScan;
use atoll_sql_parse::syntax::{begins_with, sql_text, walk_expressions};

/// Maximum number of values in a text: beyond it planning takes longer than it would save.
const VALUES_MAX: usize = 256;

/// The outcome of a text.
pub(in crate::session) enum TextRide {
    /// It ran.
    Done(Box<QueryResult>),
    /// It runs alone: meanwhile others like it share a scan.
    Alone(AloneQuery),
    /// It does not fit.
    Misfit,
}

impl Session {
    /// Runs a statement that needs no planner, on the caller's thread; `None` for others.
    pub(in crate::session) async fn run_unplanned(&self, sql: &str) -> Result<Option<QueryResult>> {
        match self.run_plain_control(sql).await? {
            Some(done) => Ok(Some(done)),
            None => self.run_known(sql).await,
        }
    }

    /// Runs a statement that differs only in its values from one that was parsed and planned before; `None` for others.
    async fn run_known(&self, sql: &str) -> Result<Option<QueryResult>> {
        let Some(raw) = RawText::parse(sql).filter(|raw| !raw.values.is_empty()) else {
            return Ok(None);
        };
        let published = self.database().store().published();
        let texts = self.texts_of(is_change(sql));
        let Some(known) = texts.known(self.text_scope(), &raw.key, &published) else {
            return Ok(None);
        };
        let Some(plan) = known.planned.get() else { return Ok(None) };
        if !self.sees_names_of(&published).await {
            return Ok(None);
        }
        let literals = known.places.iter().map(|place| place.value_in(&raw));
        let values = literals.zip(&plan.types).map(|(literal, of)| value_of(&literal, of));
        let Some(values) = values.collect::<Option<Vec<_>>>() else { return Ok(None) };
        if let Shape::Shared(selection) = &plan.shape
            && self.alone(selection, &values)?.is_some()
        {
            return Ok(None);
        }
        let run = StatementRun { session: self, sql: &sql.into(), planned: plan };
        run.by_shape(&plan.shape, &values).await
    }

    /// The cache of texts: a session's own for statements that write.
    fn texts_of(&self, writes: bool) -> &PlanCache {
        if writes { &self.texts } else { &self.shared_texts }
    }

    /// Runs a statement by the plan of others that differ from it only in their values, if possible.
    pub(in crate::session) async fn ride_text(
        &self,
        statement: &Parsed,
        sql: &str,
    ) -> Result<TextRide> {
        self.scope.heed(statement);
        let Parsed::Statement(ast) = statement else { return Ok(TextRide::Misfit) };
        if let Ast::Execute { .. } = ast.as_ref() {
            return self.ride_executed(ast, sql).await;
        }
        let Some((text, literals)) = with_parameters(ast) else { return Ok(TextRide::Misfit) };
        let is_query = matches!(ast.as_ref(), Ast::Query(_));
        let text = RiddenText { text: &text, literals: &literals, types: None, is_query };
        self.ride(text, sql).await
    }

    /// Runs EXECUTE by the cached plan of its statement's text, if possible.
    async fn ride_executed(&self, ast: &Ast, sql: &str) -> Result<TextRide> {
        let Some((name, literals)) = executed(ast) else { return Ok(TextRide::Misfit) };
        let Some(PreparedText { text, types, is_query }) = self.prepared.text(&name) else {
            return Ok(TextRide::Misfit);
        };
        let types = Some(&*types);
        self.ride(RiddenText { text: &text, literals: &literals, types, is_query }, sql).await
    }

    async fn ride(&self, ridden: RiddenText<'_>, sql: &str) -> Result<TextRide> {
        let RiddenText { text, literals, types, is_query } = ridden;
        let published = self.database().store().published();
        if !self.sees_names_of(&published).await {
            return Ok(TextRide::Misfit);
        }
        let scope = self.text_scope();
        let texts = self.texts_of(!is_query);
        let text = DeclaredText::new(text, &[]);
        let planned = texts.get(scope, &text, &published);
        let known = planned.get_or_init(|| self.plan_text(&text.text)).await;
        // With parameters of other types it is another statement.
        if types.is_some_and(|types| types != known.types) || literals.len() != known.types.len() {
            return Ok(TextRide::Misfit);
        }
        let values = literals.iter().zip(&known.types).map(|(taken, of)| value_of(taken, of));
        let Some(values) = values.collect::<Option<Vec<_>>>() else { return Ok(TextRide::Misfit) };
        match &known.shape {
            Shape::Planned | Shape::Command => return Ok(TextRide::Misfit),
            Shape::Shared(selection) => {
                if let Some(alone) = self.alone(selection, &values)? {
                    return Ok(TextRide::Alone(alone));
                }
            }
            Shape::Point(_) | Shape::Change(_) => {}
        }
        let run = StatementRun { session: self, sql: &sql.into(), planned: known };
        match run.by_shape(&known.shape, &values).await? {
            Some(result) => {
                // The meaning of a name may change.
                if types.is_none()
                    && let Some((key, places)) = places(sql, literals)
                {
                    let known = KnownText { planned: Arc::clone(&planned), places };
                    texts.remember(scope, &text, key, known);
                }
                Ok(TextRide::Done(Box::new(result)))
            }
            None => {
                let is_asked = self.shared_scan() != SharedScan::Off && !self.is_in_transaction();
                if is_asked || matches!(known.shape, Shape::Point(_)) {
                    texts.forget(scope, &text);
                }
                Ok(TextRide::Misfit)
            }
        }
    }

    /// Whether names mean the same in the session's transaction as for others, as they do before its first statement.
    pub(in crate::session) async fn sees_names_of(&self, published: &DatabaseVersion) -> bool {
        if !self.has_used_transaction() {
            return true;
        }
        // The error is reported when the statement runs.
        let Ok(transaction) = self.statement_transaction() else { return false };
        let version = transaction.statement(false).await;
        version.is_ok_and(|version| version.names().are_those_of(published))
    }

    /// Lets a selection run alone if no other one is waiting.
    fn alone(
        &self,
        selection: &SharedSelection,
        values: &[ScalarValue],
    ) -> Result<Option<AloneQuery>> {
        if self.shared_scan() != SharedScan::Auto || self.is_in_transaction() {
            return Ok(None);
        }
        let values = values.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
        Ok(selection.bind(&values)?.and_then(|bound| bound.alone(self.database(), &self.workers())))
    }

    /// Plans a text. If it cannot be planned with parameters, it may be without.
    async fn plan_text(&self, text: &str) -> PlannedStatement {
        let planned = self.plan_prepared(text, &[]).await;
        planned.unwrap_or_else(|_| PlannedStatement::without_parameters(Shape::Planned))
    }

    /// The cached plan of a statement that was prepared before with the same declared types; `None` if it has to be
    /// planned.
    pub(in crate::session) async fn prepared_before(
        &self,
        sql: &str,
        declared: &[DeclaredType],
        published: &DatabaseVersion,
    ) -> Option<PlannedStatement> {
        let text = DeclaredText::new(sql, declared);
        let texts = self.texts_of(is_change(sql));
        let planned = texts.find(self.text_scope(), &text, published)?;
        let planned = planned.get().filter(|it| it.is_kept() && it.shape.is_current(published))?;
        self.sees_names_of(published).await.then(|| planned.clone())
    }

    /// Caches the plan of a prepared statement: drivers prepare the same text whenever it runs. One without parameters
    /// has its values in its text, and may never repeat.
    pub(in crate::session) async fn keep_prepared(
        &self,
        sql: &str,
        declared: &[DeclaredType],
        published: &DatabaseVersion,
        planned: &PlannedStatement,
    ) {
        if planned.is_kept() && !planned.types.is_empty() && self.sees_names_of(published).await {
            let text = DeclaredText::new(sql, declared);
            let (texts, scope) = (self.texts_of(is_change(sql)), self.text_scope());
            // The cached plan is of a table whose definition changed.
            texts.forget(scope, &text);
            // If another session has just planned it, either plan serves.
            let _ = texts.get(scope, &text, published).set(planned.clone());
        }
    }

    /// The scope of this client's cached texts: its own, or that of all with the same settings.
    pub(in crate::session) fn text_scope(&self) -> TextScope {
        self.scope.get_or_find(|is_own| {
            let texts = &self.shared_texts;
            if is_own {
                return texts.own_scope();
            }
            let state = self.context.state_ref();
            let entries = state.read().config_options().entries();
            let settings = entries.into_iter().filter(|entry| entry.key != SHARED_SCAN_KEY);
            let settings = settings.map(|entry| (entry.key, entry.value));
            // Each user has different rights.
            let user = ("user".to_owned(), Some(self.identity().user.to_string()));
            let path = self.search_path().listed().join(",");
            let path = ("search_path".to_owned(), Some(path));
            let style = ("style".to_owned(), Some(format!("{:?}", self.temporal_style())));
            texts.scope_of(settings.chain([user, path, style]).collect())
        })
    }
}

/// Whether a text begins like a statement that changes rows.
fn is_change(sql: &str) -> bool {
    begins_with(sql, &["insert", "update", "delete"])
}

/// A text with parameters in place of its values.
struct RiddenText<'t> {
    text: &'t str,
    literals: &'t [RawValue],
    /// Declared types of the parameters.
    types: Option<&'t [DataType]>,
    is_query: bool,
}

/// A literal as a value of a type; `None` if it is not exactly representable.
fn value_of(literal: &RawValue, data_type: &DataType) -> Option<ScalarValue> {
    let text = &literal.text;
    match (literal.is_number, data_type) {
        (true, DataType::Float64) => {
            text.parse().ok().map(|value| ScalarValue::Float64(Some(value)))
        }
        (true, DataType::Decimal128(precision, scale)) => {
            let value = decimal(text, u32::try_from(*scale).ok()?)?;
            let fits = value.unsigned_abs() < 10_u128.checked_pow((*precision).into())?;
            fits.then_some(ScalarValue::Decimal128(Some(value), *precision, *scale))
        }
        (true, of) if of.is_integer() => whole(text.parse().ok()?, of),
        (false, DataType::Utf8View) => Some(ScalarValue::Utf8View(Some(text.clone()))),
        (false, DataType::Date32) => ScalarValue::Utf8(Some(text.clone())).cast_to(data_type).ok(),
        _ => None,
    }
}

/// A whole number in a type; `None` if it is out of range. The types that most keys have need no cast.
fn whole(number: i64, of: &DataType) -> Option<ScalarValue> {
    Some(match of {
        DataType::Int64 => ScalarValue::Int64(Some(number)),
        DataType::Int32 => ScalarValue::Int32(Some(number.try_into().ok()?)),
        _ => return ScalarValue::Int64(Some(number)).cast_to(of).ok(),
    })
}

/// A decimal of a scale; `None` if it has more digits after the point.
fn decimal(text: &str, scale: u32) -> Option<i128> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let missing = scale.checked_sub(u32::try_from(rest.len()).ok()?)?;
    let digits: i128 = format!("{whole}{rest}").parse().ok()?;
    digits.checked_mul(10_i128.checked_pow(missing)?)
}

/// The key of a text, and which of its values each parameter is; `None` if a value of the text is not a parameter.
fn places(sql: &str, literals: &[RawValue]) -> Option<(String, Vec<ValuePlace>)> {
    let raw = RawText::parse(sql)?;
    if raw.values.len() != literals.len() {
        return None;
    }
    let place_of = |taken: &RawValue| {
        let at = raw.values.iter().position(|value| value.place == taken.place)?;
        let place = ValuePlace { at, is_negative: taken.is_number && taken.text.starts_with('-') };
        (*place.value_in(&raw) == *taken).then_some(place)
    };
    let places = literals.iter().map(place_of).collect::<Option<Vec<_>>>()?;
    let is_each_taken = (0..places.len()).all(|at| places.iter().any(|place| place.at == at));
    is_each_taken.then_some((raw.key, places))
}

/// The text of a statement over one table with parameters in place of the values of its conditions and of those that it
/// writes, and these values; `None` for other statements.
fn with_parameters(ast: &Ast) -> Option<(String, Vec<RawValue>)> {
    if has_parameters(ast) {
        return None;
    }
    let (mut ast, mut literals) = (ast.clone(), Vec::new());
    match &mut ast {
        Ast::Query(query) => take_of_query(query, &mut literals)?,
        Ast::Update(update) => take_of_update(update, &mut literals)?,
        Ast::Delete(delete) => take_of_delete(delete, &mut literals)?,
        Ast::Insert(insert) => take_of_insert(insert, &mut literals)?,
        _ => return None,
    }
    (1..=VALUES_MAX).contains(&literals.len()).then(|| (sql_text(&ast), literals))
}

/// The name and the values of an EXECUTE; `None` if one is more than a value.
fn executed(ast: &Ast) -> Option<(String, Vec<RawValue>)> {
    let Ast::Execute { name: Some(name), parameters, using, immediate: false, .. } = ast else {
        return None;
    };
    let mut literals = Vec::with_capacity(parameters.len());
    parameters.iter().for_each(|value| take_value(&mut value.clone(), &mut literals));
    let are_all = using.is_empty() && (1..=VALUES_MAX).contains(&parameters.len());
    let name = name.0.last().and_then(|part| part.as_ident()).filter(|_| are_all)?;
    (literals.len() == parameters.len()).then(|| (name.value.clone(), literals))
}

fn take_of_query(query: &mut Query, literals: &mut Vec<RawValue>) -> Option<()> {
    if query.with.is_some() || !query.locks.is_empty() {
        return None;
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    if !is_of_one_table(select) {
        return None;
    }
    take_values(select.selection.as_mut()?, literals)
}

fn take_of_update(update: &mut Update, literals: &mut Vec<RawValue>) -> Option<()> {
    let Update { table, assignments, from: None, selection, returning, or: None, .. } = update
    else {
        return None;
    };
    if !are_columns(returning.as_deref()) {
        return None;
    }
    if !is_table(table) || !update.order_by.is_empty() || update.limit.is_some() {
        return None;
    }
    take_values(selection.as_mut()?, literals)?;
    for Assignment { target, value } in assignments {
        match value {
            // Of the column's type, which bounds the sum either way.
            Expr::BinaryOp { left, op: BinaryOperator::Plus | BinaryOperator::Minus, right }
                if is_target(left, target) =>
            {
                take_value(right, literals);
            }
            value => take_value(value, literals),
        }
    }
    Some(())
}

/// Whether an expression is the column that is assigned to.
fn is_target(expr: &Expr, target: &AssignmentTarget) -> bool {
    let (Expr::Identifier(read), AssignmentTarget::ColumnName(written)) = (expr, target) else {
        return false;
    };
    matches!(&written.0[..], [part] if part.as_ident() == Some(read))
}

fn take_of_delete(delete: &mut Delete, literals: &mut Vec<RawValue>) -> Option<()> {
    let Delete { from, using: None, selection, returning, limit: None, .. } = delete else {
        return None;
    };
    if !are_columns(returning.as_deref()) {
        return None;
    }
    let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = from;
    let [table] = &tables[..] else { return None };
    let is_more = !delete.tables.is_empty() || !delete.order_by.is_empty();
    if is_more || !is_table(table) {
        return None;
    }
    take_values(selection.as_mut()?, literals)
}

/// Only for INSERT … VALUES; ON CONFLICT stays as it is.
fn take_of_insert(insert: &mut Insert, literals: &mut Vec<RawValue>) -> Option<()> {
    let is_more = !matches!(insert.on, None | Some(OnInsert::OnConflict(_)))
        || !are_columns(insert.returning.as_deref())
        || insert.or.is_some();
    if is_more || insert.ignore || insert.overwrite || insert.replace_into {
        return None;
    }
    if !matches!(insert.table, TableObject::TableName(_)) {
        return None;
    }
    let source = insert.source.as_mut()?;
    let SetExpr::Values(values) = source.body.as_mut() else { return None };
    if source.with.is_some() || source.limit_clause.is_some() || source.order_by.is_some() {
        return None;
    }
    let mut cells = values.rows.iter_mut().flat_map(|row| row.iter_mut());
    cells.try_for_each(|cell| {
        take_value(cell, literals);
        (literals.len() <= VALUES_MAX).then_some(())
    })
}

fn is_of_one_table(select: &Select) -> bool {
    let [from] = &select.from[..] else { return false };
    is_table(from) && select.into.is_none()
}

/// Whether it is a name alone.
fn is_table(table: &TableWithJoins) -> bool {
    matches!(table.relation, TableFactor::Table { args: None, .. }) && table.joins.is_empty()
}

/// Whether RETURNING selects only plain columns, if anything: its values are not removed.
fn are_columns(returning: Option<&[SelectItem]>) -> bool {
    returning.unwrap_or_default().iter().all(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => is_column(expr),
        SelectItem::Wildcard(_) => true,
        _ => false,
    })
}

fn has_parameters(ast: &Ast) -> bool {
    let found = walk_expressions(ast, &mut |expr| match expr {
        Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Replaces the values that columns are compared with; `None` if there is another kind of condition, which would not
/// fit.
fn take_values(expr: &mut Expr, literals: &mut Vec<RawValue>) -> Option<()> {
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

/// Replaces a number or a string with a parameter. A minus before a number is part of it.
fn take_value(expr: &mut Expr, literals: &mut Vec<RawValue>) {
    let (value, sign) = match &*expr {
        Expr::Value(value) => (value, ""),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) if matches!(value.value, Value::Number(..)) => (value, "-"),
            _ => return,
        },
        _ => return,
    };
    let (text, is_number) = match &value.value {
        Value::Number(digits, false) => (format!("{sign}{digits}"), true),
        Value::SingleQuotedString(text) => (text.clone(), false),
        _ => return,
    };
    let place = (value.span.start.line, value.span.start.column);
    literals.push(RawValue { text, is_number, place });
    *expr = Expr::Value(Value::Placeholder(format!("${}", literals.len())).into());
}
