//! WITH RECURSIVE by PostgreSQL's rules, all of which are checked here, before anything is planned.
//!
//! A recursive query is `non-recursive-term UNION [ALL] recursive-term`. Only the recursive term reads the query itself,
//! once, and neither in a subquery of an expression, nor where an outer join adds NULLs, nor where EXCEPT takes rows
//! away, nor under aggregates. DataFusion (55.2) checks none of this: it drops clauses around the UNION, plans
//! other forms as queries that are not recursive, fails where the query is read twice, and runs without end where an
//! aggregate of no rows returns the next row.
//!
//! DataFusion plans the queries of a WITH in their order, so each is moved after those that it reads.

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    LimitClause, Query, SetExpr, SetOperator, SetQuantifier, With,
};

use super::query::changes_rows;
use super::references::{Place, References};
use super::refused;
use crate::dialect::{folded, query_of_body};
use atoll_sql_common::error::{SqlState, stated_err};

/// Checks the queries of a WITH RECURSIVE, and puts them in an order in which each reads earlier ones only.
pub(super) fn check(with: &mut With, state: &SessionState) -> Result<()> {
    for cte in with.cte_tables.iter_mut().filter(|cte| !changes_rows(&cte.query)) {
        unwrap(&mut cte.query);
        let name = folded(&cte.alias.name);
        match References::find_in(cte.query.as_ref(), state).times(&name) {
            0 => keep_clauses(&mut cte.query),
            _ => recursive(&mut cte.query, &name, state)?,
        }
    }
    order(with, state)
}

/// Removes parentheses around a whole query.
fn unwrap(query: &mut Box<Query>) {
    while !has_clauses(query)
        && let SetExpr::Query(inner) = query.body.as_ref()
    {
        *query = inner.clone();
    }
}

/// Whether a query has clauses around its body.
fn has_clauses(query: &Query) -> bool {
    query.with.is_some()
        || query.order_by.is_some()
        || query.limit_clause.is_some()
        || query.fetch.is_some()
        || !query.locks.is_empty()
        || !query.pipe_operators.is_empty()
}

/// A UNION that is not recursive becomes a query inside a query, which keeps its clauses, and its own WITH that
/// defines the same name.
fn keep_clauses(query: &mut Query) {
    if matches!(query.body.as_ref(), SetExpr::SetOperation { .. }) {
        let outer = query_of_body(query.body.as_ref().clone());
        let mut inner = std::mem::replace(query, outer);
        query.locks = std::mem::take(&mut inner.locks);
        *query.body = SetExpr::Query(Box::new(inner));
    }
}

/// Checks a query that reads itself.
fn recursive(query: &mut Query, name: &str, state: &SessionState) -> Result<()> {
    let around = clause_around(query);
    let in_with = query.with.as_ref().map(|with| References::find_in(with, state));
    let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } =
        query.body.as_mut()
    else {
        return stated_err!(
            INVALID_RECURSION,
            "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] \
             recursive-term; write SELECT … UNION ALL SELECT … FROM {name}"
        );
    };
    if in_with.is_some_and(|read| read.times(name) > 0) {
        return Err(misplaced(name, "within a subquery"));
    }
    if References::find_in(left.as_ref(), state).times(name) > 0 {
        return Err(misplaced(name, "within its non-recursive term"));
    }
    if !matches!(set_quantifier, SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None)
    {
        return Err(refused(
            &format!("UNION BY NAME in the recursive query '{name}'"),
            "write the columns of both terms in the same order",
        ));
    }
    if let Some(clause) = around {
        return Err(refused(
            &format!("{clause} inside the recursive query '{name}'"),
            "put it into the query that reads it",
        ));
    }
    term(right, name, state)?;
    match query.with.take() {
        Some(with) => put_into_terms(&with, [left, right], name, state),
        None => Ok(()),
    }
}

/// A clause around the UNION of a recursive query, where PostgreSQL allows none.
fn clause_around(query: &Query) -> Option<&'static str> {
    let limit = query.limit_clause.as_ref().map(|limit| match limit {
        LimitClause::LimitOffset { limit: None, .. } => "OFFSET",
        _ => "LIMIT",
    });
    let order = query.order_by.is_some().then_some("ORDER BY");
    let locks = (!query.locks.is_empty()).then_some("FOR UPDATE or FOR SHARE");
    let pipe = (!query.pipe_operators.is_empty()).then_some("|>");
    order.or(limit).or(query.fetch.is_some().then_some("LIMIT")).or(locks).or(pipe)
}

/// Checks the term of a recursive query that reads it.
fn term(term: &SetExpr, name: &str, state: &SessionState) -> Result<()> {
    let read = References::of_term(term, state);
    match read.misplaced(name) {
        Some(Place::Subquery) => Err(misplaced(name, "within a subquery")),
        Some(Place::OuterJoin) => Err(misplaced(name, "within an outer join")),
        Some(Place::Intersect) => Err(misplaced(name, "within INTERSECT")),
        Some(Place::Except) => Err(misplaced(name, "within EXCEPT")),
        Some(Place::Repeated) => Err(refused(
            &format!("a WITH query that reads the recursive query '{name}' and is read twice"),
            "read it once",
        )),
        _ if read.times(name) > 1 => Err(misplaced(name, "more than once")),
        Some(Place::Aggregates) => Err(SqlState::INVALID_RECURSION.error(
            "aggregate functions are not allowed in a recursive query's recursive term; compute \
             them in the query that reads it",
        )),
        None => Ok(()),
    }
}

fn misplaced(name: &str, place: &str) -> DataFusionError {
    SqlState::INVALID_RECURSION.error(format!(
        "recursive reference to query \"{name}\" must not appear {place}; its second term reads it, \
         once, in FROM"
    ))
}

/// Gives the WITH of a recursive query to the term that reads it. Two terms would compute its queries separately.
fn put_into_terms(
    with: &With,
    terms: [&mut Box<SetExpr>; 2],
    name: &str,
    state: &SessionState,
) -> Result<()> {
    let defined: Vec<String> = with.cte_tables.iter().map(|cte| folded(&cte.alias.name)).collect();
    let reads = |term: &SetExpr| {
        let read = References::find_in(term, state);
        defined.iter().any(|name| read.times(name) > 0)
    };
    let readers: Vec<_> = terms.into_iter().filter(|term| reads(term)).collect();
    if readers.len() > 1 {
        return Err(refused(
            &format!("WITH inside the recursive query '{name}' that both of its terms read"),
            "put it before the recursive query",
        ));
    }
    for term in readers {
        let mut inner = query_of_body(term.as_ref().clone());
        inner.with = Some(with.clone());
        **term = SetExpr::Query(Box::new(inner));
    }
    Ok(())
}

/// Moves each query after those that it reads.
fn order(with: &mut With, state: &SessionState) -> Result<()> {
    let ctes = &with.cte_tables;
    let names: Vec<String> = ctes.iter().map(|cte| folded(&cte.alias.name)).collect();
    let is_twice = |(at, name): (usize, &String)| names[..at].contains(name);
    // Statements that change rows run in their order; the planner reports duplicate names.
    if ctes.iter().any(|cte| changes_rows(&cte.query)) || names.iter().enumerate().any(is_twice) {
        return Ok(());
    }
    let read_by = |(at, cte): (usize, &_)| -> Vec<usize> {
        let read = References::find_in(cte, state);
        (0..names.len()).filter(|&other| other != at && read.times(&names[other]) > 0).collect()
    };
    let reads: Vec<Vec<usize>> = ctes.iter().enumerate().map(read_by).collect();
    if reads.iter().enumerate().all(|(at, read)| read.iter().all(|&other| other < at)) {
        return Ok(());
    }
    let mut sorted: Vec<usize> = Vec::with_capacity(names.len());
    while sorted.len() < names.len() {
        let is_next = |at: &usize| {
            !sorted.contains(at) && reads[*at].iter().all(|other| sorted.contains(other))
        };
        let Some(next) = (0..names.len()).find(is_next) else {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "mutual recursion between WITH items is not implemented; write one recursive query \
                 with a column that distinguishes its parts"
            );
        };
        sorted.push(next);
    }
    with.cte_tables = sorted.into_iter().map(|at| with.cte_tables[at].clone()).collect();
    Ok(())
}
