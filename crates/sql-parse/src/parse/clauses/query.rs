//! Clauses around a query: WITH, ORDER BY ALL, FETCH, and those at its end.

use crate::dialect::{self, settle_recursive};
use atoll_sql_common::error::SqlState;
use datafusion::common::{Result, plan_err};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, LimitClause, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, PipeOperator,
    Query, SetExpr, Value,
};

use super::{recursive, refuse};

/// Whether a query in WITH is a statement that changes rows.
pub fn changes_rows(query: &Query) -> bool {
    matches!(
        query.body.as_ref(),
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
    )
}

/// Refuses statements that change rows in the WITH of a query, if there is a reason.
pub(super) fn check_changes(query: &Query, refused: Option<&str>) -> Result<()> {
    let mut ctes = query.with.iter().flat_map(|with| &with.cte_tables);
    match refused {
        Some(refused) if ctes.any(|cte| changes_rows(&cte.query)) => {
            Err(SqlState::FEATURE_NOT_SUPPORTED.error(refused))
        }
        _ => Ok(()),
    }
}

/// `locks` is whether the statement may lock rows.
pub(super) fn check(query: &mut Query, locks: bool, state: &SessionState) -> Result<()> {
    refuse(
        !locks && !query.locks.is_empty(),
        "FOR UPDATE or FOR SHARE here",
        "queries, INSERT, UPDATE and DELETE lock rows",
    )?;
    refuse(query.for_clause.is_some(), "FOR XML, FOR JSON or FOR BROWSE", "")?;
    refuse(query.settings.is_some(), "SETTINGS", "use SET before the query")?;
    refuse(query.format_clause.is_some(), "FORMAT", "use COPY … TO or the shell's .mode")?;
    if let Some(LimitClause::LimitOffset { limit_by, .. }) = &query.limit_clause {
        let instead = "use row_number() in a sub-query and a condition on it";
        refuse(!limit_by.is_empty(), "LIMIT … BY", instead)?;
    }
    fetch(query)?;
    limits(query)?;
    dialect::order_by_all(query)?;
    for operator in &query.pipe_operators {
        pipe(operator)?;
    }
    let Some(with) = &mut query.with else { return Ok(()) };
    for cte in &mut with.cte_tables {
        refuse(cte.from.is_some(), "FROM after a WITH query", "")?;
        if with.recursive {
            settle_recursive(cte);
        }
    }
    if with.recursive { recursive::check(with, state) } else { Ok(()) }
}

/// The rows of a statement with DISTINCT ON come in the order of its keys, as in PostgreSQL, which sorts by them; tools
/// rely on it. In ORDER BY, the keys may come first in any order, which DataFusion takes for theirs.
pub(super) fn order_distinct(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let Some(Distinct::On(keys)) = &mut select.distinct else { return };
    if let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = &query.order_by {
        // As texts: equal constants in two places differ.
        let order: Vec<String> = order.iter().map(|by| by.expr.to_string()).collect();
        let place = |key: &Expr| order.iter().position(|by| *by == key.to_string());
        keys.sort_by_cached_key(|key| place(key).unwrap_or(usize::MAX));
    }
    let options = OrderByOptions { asc: None, nulls_first: None };
    let key = |expr: &Expr| OrderByExpr { expr: expr.clone(), options, with_fill: None };
    let kind = OrderByKind::Expressions(keys.iter().map(key).collect());
    query.order_by.get_or_insert(OrderBy { kind, interpolate: None });
}

/// `LIMIT '1'` is `LIMIT 1`: a text literal takes the type of its context.
fn limits(query: &mut Query) -> Result<()> {
    let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause else {
        return Ok(());
    };
    for number in limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value)) {
        let Expr::Value(value) = number else { continue };
        let Value::SingleQuotedString(text) = &value.value else { continue };
        match text.trim().parse::<i64>() {
            Ok(rows) => value.value = Value::Number(rows.to_string(), false),
            Err(_) => {
                let why = format!("invalid input syntax for type BIGINT: '{text}'");
                return Err(SqlState::INVALID_TEXT_REPRESENTATION.error(why));
            }
        }
    }
    Ok(())
}

/// `FETCH FIRST n ROWS ONLY` is `LIMIT n`.
fn fetch(query: &mut Query) -> Result<()> {
    let Some(fetch) = query.fetch.take() else { return Ok(()) };
    refuse(fetch.percent, "FETCH … PERCENT", "")?;
    let one = || Expr::Value(Value::Number("1".to_owned(), false).into());
    let rows = fetch.quantity.unwrap_or_else(one);
    if fetch.with_ties {
        return dialect::with_ties(query, rows);
    }
    let rows = Some(rows);
    match &mut query.limit_clause {
        None => {
            query.limit_clause =
                Some(LimitClause::LimitOffset { limit: rows, offset: None, limit_by: vec![] });
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = rows,
        Some(_) => return plan_err!("LIMIT and FETCH FIRST exclude each other"),
    }
    Ok(())
}

fn pipe(operator: &PipeOperator) -> Result<()> {
    let PipeOperator::Aggregate { full_table_exprs, group_by_expr } = operator else {
        return Ok(());
    };
    let has_order = full_table_exprs
        .iter()
        .chain(group_by_expr)
        .any(|expr| expr.order_by.asc.is_some() || expr.order_by.nulls_first.is_some());
    refuse(has_order, "an order inside |> AGGREGATE", "use |> ORDER BY")
}
