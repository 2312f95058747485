//! Rewrites or refuses clauses that the planner would ignore.

mod frame_parameters;
mod frames;
mod function;
mod group_by;
mod joins;
mod query;
mod recursive;
mod references;
mod select;
mod statement;
mod table;
mod windows;

use crate::syntax::{flow, walk_mut};
use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result, not_impl_datafusion_err};
use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    Expr, Query, Select, SelectInto, SetExpr, Statement, TableFactor, VisitorMut, WindowType,
};

use super::depth::{DEPTH_MAX, too_deep};
use crate::dialect;
pub use frame_parameters::{FrameOffset, FrameParameter, replace_frame_parameters};
pub use query::changes_rows;
use windows::Windows;

/// Visits the statement and everything inside it.
pub(super) fn apply(statement: &mut Parsed, state: &SessionState) -> Result<()> {
    let (depth, queries, windows, into) = Default::default();
    let no_changes = Some("COPY must not contain data-modifying statements in WITH");
    let mut clauses = Clauses { state, depth, queries, windows, into, locks: false, no_changes };
    let visited = match statement {
        Parsed::Statement(statement) => {
            clauses.locks = locks_rows(statement);
            clauses.no_changes = no_changes_in(statement);
            walk_mut(statement, &mut clauses)
        }
        Parsed::Explain(explain) => return apply(&mut explain.statement, state),
        Parsed::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => walk_mut(query, &mut clauses),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Parsed::CreateExternalTable(_) | Parsed::Reset(_) => ControlFlow::Continue(()),
    };
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Whether the session locks rows for the queries of a statement, before it runs or is planned to be
/// explained.
fn locks_rows(statement: &Statement) -> bool {
    match statement {
        Statement::Query(_) | Statement::Insert(_) => true,
        Statement::Update(_) | Statement::Delete(_) => true,
        Statement::Prepare { statement, .. } | Statement::Explain { statement, .. } => {
            locks_rows(statement)
        }
        _ => false,
    }
}

/// Why WITH of the outermost query of a statement must not change rows; `None` if it may.
fn no_changes_in(statement: &Statement) -> Option<&'static str> {
    match statement {
        Statement::Query(_) => None,
        Statement::Prepare { statement, .. } | Statement::Explain { statement, .. } => {
            no_changes_in(statement)
        }
        Statement::CreateView(_) => {
            Some("views must not contain data-modifying statements in WITH")
        }
        Statement::CreateTable(_) => {
            Some("CREATE TABLE AS must not contain data-modifying statements in WITH")
        }
        Statement::Copy { .. } => Some("COPY must not contain data-modifying statements in WITH"),
        _ => Some(NOT_AT_TOP),
    }
}

/// PostgreSQL's message.
const NOT_AT_TOP: &str =
    "WITH clause containing a data-modifying statement must be at the top level";

/// The error for a clause that has no effect here; `instead` names the alternative.
fn refused(clause: &str, instead: &str) -> DataFusionError {
    match instead {
        "" => not_impl_datafusion_err!("{clause} is not supported"),
        instead => not_impl_datafusion_err!("{clause} is not supported; {instead}"),
    }
}

/// Refuses a clause if it is present.
fn refuse(is_there: bool, clause: &str, instead: &str) -> Result<()> {
    if is_there { Err(refused(clause, instead)) } else { Ok(()) }
}

struct Clauses<'a> {
    state: &'a SessionState,
    /// Expressions around the visited one.
    depth: usize,
    /// Queries around the visited node.
    queries: usize,
    windows: Windows,
    /// Taken out while the query that has it is visited.
    into: Option<SelectInto>,
    /// Whether its queries may lock rows.
    locks: bool,
    /// Why its outermost query has no statements in WITH that change rows, if it may not.
    no_changes: Option<&'static str>,
}

impl Clauses<'_> {
    fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_deep(None));
        }
        dialect::rewrite_expr(expr)?;
        match expr {
            Expr::Function(function) => {
                self.windows.resolve(function)?;
                if let Some(WindowType::WindowSpec(spec)) = &mut function.over {
                    frames::check(spec)?;
                }
                function::check(function, self.state)
            }
            Expr::CompoundFieldAccess { access_chain, .. } if access_chain.len() > DEPTH_MAX => {
                Err(too_deep(None))
            }
            _ => Ok(()),
        }
    }

    fn statement(&mut self, statement: &mut Statement) -> Result<()> {
        if let Some(into) = statement::take_into(statement)? {
            self.into = Some(into);
        }
        dialect::rewrite_statement(statement, self.state)?;
        statement::check(statement)
    }

    fn query(&mut self, query: &mut Query) -> Result<()> {
        self.queries += 1;
        let no_changes = if self.queries == 1 { self.no_changes } else { Some(NOT_AT_TOP) };
        query::check_changes(query, no_changes)?;
        if self.queries == 1 && no_changes.is_none() {
            query::order_distinct(query);
        }
        dialect::rewrite_query(query)?;
        match query.body.as_ref() {
            SetExpr::Select(select) => self.windows.enter(&select.named_window),
            _ => self.windows.enter(&[]),
        }
        query::check(query, self.locks, self.state)
    }

    fn select(&mut self, select: &mut Select) -> Result<()> {
        self.windows.enter(&select.named_window);
        dialect::rewrite_select(select, self.state)?;
        select::check(select)
    }
}

impl VisitorMut for Clauses<'_> {
    type Break = DataFusionError;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Self::Break> {
        flow(self.statement(statement))
    }

    fn post_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Self::Break> {
        if let Some(into) = statement::into_of(statement) {
            *into = self.into.take();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        flow(self.query(query))
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Self::Break> {
        self.queries -= 1;
        self.windows.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        flow(self.select(select))
    }

    fn post_visit_select(&mut self, _select: &mut Select) -> ControlFlow<Self::Break> {
        self.windows.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        flow(dialect::rewrite_table(factor).and_then(|()| table::check(factor)))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        flow(self.expr(expr))
    }

    fn post_visit_expr(&mut self, _expr: &mut Expr) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}
