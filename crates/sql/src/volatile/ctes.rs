//! Names of WITH that stand for volatile calls.
//!
//! DataFusion 55 computes the query of a WITH once for each place that names it, so that `random()` in it
//! gives other values in each. They should be the same, so it is computed once for all.

use crate::parse::walk;
use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Query, Visitor};

/// Whether a statement names such a query twice. `is_volatile` tells it of functions by name.
pub(crate) fn has_shared_ctes(statement: &Parsed, is_volatile: &dyn Fn(&str) -> bool) -> bool {
    CteCheck { is_volatile }.visit(statement).is_break()
}

struct CteCheck<'a> {
    is_volatile: &'a dyn Fn(&str) -> bool,
}

impl CteCheck<'_> {
    fn visit(&mut self, statement: &Parsed) -> ControlFlow<()> {
        match statement {
            Parsed::Statement(ast) => walk(ast, self),
            Parsed::Explain(explain) => self.visit(&explain.statement),
            Parsed::CopyTo(copy) => match &copy.source {
                CopyToSource::Query(query) => walk(query, self),
                CopyToSource::Relation(_) => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for CteCheck<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let Some(with) = &query.with else { return ControlFlow::Continue(()) };
        let mut volatile = HashSet::new();
        for cte in &with.cte_tables {
            let name = normalized(&cte.alias.name);
            let mut calls = VolatileCallFinder { is_volatile: self.is_volatile, ctes: &volatile };
            if walk(&cte.query, &mut calls).is_continue() {
                continue;
            }
            // It names itself where it is recursive: that place does not plan it again.
            let mut places = TableUses { name: &name, count: 0 };
            let _ = walk(query, &mut places);
            let mut own = TableUses { name: &name, count: 0 };
            let _ = walk(&cte.query, &mut own);
            let times = places.count - own.count;
            if times > 1 {
                return ControlFlow::Break(());
            }
            volatile.insert(name);
        }
        ControlFlow::Continue(())
    }
}

/// Breaks at the first volatile call, or name of a query with one.
struct VolatileCallFinder<'a> {
    is_volatile: &'a dyn Fn(&str) -> bool,
    ctes: &'a HashSet<String>,
}

impl Visitor for VolatileCallFinder<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(call) if single(&call.name).is_some_and(|n| (self.is_volatile)(&n)) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        match single(relation).is_some_and(|name| self.ctes.contains(&name)) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Counts the places that name a table.
struct TableUses<'a> {
    name: &'a str,
    count: usize,
}

impl Visitor for TableUses<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.count += usize::from(single(relation).is_some_and(|name| name == self.name));
        ControlFlow::Continue(())
    }
}

fn single(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(normalized),
        _ => None,
    }
}

fn normalized(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}
