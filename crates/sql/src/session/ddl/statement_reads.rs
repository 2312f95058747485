//! The columns that a statement reads besides its tables, as far as its text shows.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::{ResolvedTableReference, Result};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, SetExpr, Statement as Ast, TableFactor, Visit, Visitor,
};

use crate::role::rights::Right;
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_parse::syntax::{walk, walk_expressions};

impl StatementPlanner {
    /// Checks the rights that a change of rows needs besides the one of its name.
    pub(in crate::session) fn check_change(
        &self,
        ast: &Ast,
        at: &ResolvedTableReference,
    ) -> Result<()> {
        let reads = match ast {
            Ast::Update(update) => {
                self.check_right(Right::Update, at)?;
                let reads = update.from.is_some() || update.returning.is_some();
                let mut reads = reads || update.selection.is_some();
                for assigned in &update.assignments {
                    reads =
                        reads || self.reads_changed(&assigned.value, &update.table.relation, at)?;
                }
                reads
            }
            Ast::Delete(delete) => {
                self.check_right(Right::Delete, at)?;
                delete.selection.is_some() || delete.using.is_some() || delete.returning.is_some()
            }
            _ => false,
        };
        if reads { self.check_right(Right::Select, at) } else { Ok(()) }
    }

    /// Whether a value reads a column of the changed table, as far as its text shows: within a subquery a name that the
    /// table has too counts as its column.
    fn reads_changed(
        &self,
        value: &Expr,
        changed: &TableFactor,
        at: &ResolvedTableReference,
    ) -> Result<bool> {
        let TableFactor::Table { name, alias, .. } = changed else { return Ok(true) };
        let last = name.0.last().and_then(|part| part.as_ident());
        let called = alias.as_ref().map(|alias| &alias.name).or(last);
        let (Some(called), Some(table)) = (called, self.names.table(at)?) else { return Ok(true) };
        let schema = table.schema();
        let columns = schema.fields().iter().map(|field| field.name().clone()).collect();
        let normalize = |ident: &Ident| self.normalized(ident);
        let called = normalize(called);
        let mut reads = ReadsChanged { called, columns, normalize: &normalize, depth: 0 };
        Ok(walk(value, &mut reads).is_break())
    }
}

/// Stops at the name of a column of the changed table.
struct ReadsChanged<'a> {
    /// The name of the table in the statement.
    called: String,
    /// Its columns.
    columns: HashSet<String>,
    normalize: &'a dyn Fn(&Ident) -> String,
    /// The number of enclosing queries.
    depth: usize,
}

impl Visitor for ReadsChanged<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let reads = match expr {
            Expr::Identifier(name) if name.value.eq_ignore_ascii_case("default") => false,
            Expr::Identifier(name) => {
                self.depth == 0 || self.columns.contains(&(self.normalize)(name))
            }
            Expr::CompoundIdentifier(parts) if self.depth > 0 => {
                parts.iter().any(|part| (self.normalize)(part) == self.called)
            }
            Expr::CompoundIdentifier(_) => true,
            _ => false,
        };
        if reads { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The query of an INSERT, all that it reads, if it has one; `None` for other statements.
pub(in crate::session) fn inserted_query(statement: &Parsed) -> Option<Option<Query>> {
    match statement {
        Parsed::Statement(ast) => inserted_query_of(ast),
        Parsed::Explain(explain) => inserted_query(&explain.statement),
        _ => None,
    }
}

fn inserted_query_of(ast: &Ast) -> Option<Option<Query>> {
    match ast {
        Ast::Insert(insert) => Some(insert.source.as_deref().cloned()),
        Ast::Prepare { statement, .. } | Ast::Explain { statement, .. } => {
            inserted_query_of(statement)
        }
        Ast::Query(query) => match query.body.as_ref() {
            SetExpr::Insert(statement) => {
                let source = inserted_query_of(statement)?;
                // It may read names of a WITH before it.
                Some(source.map(|source| Query { with: query.with.clone(), ..source }))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether the computed parts of a statement name a column, as far as the text shows.
pub(in crate::session) fn reads_columns(part: &impl Visit) -> bool {
    let visited = walk_expressions(part, &mut |expr| match expr {
        Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        Expr::Identifier(name) if !name.value.eq_ignore_ascii_case("default") => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    visited.is_break()
}
