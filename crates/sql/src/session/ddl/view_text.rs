//! The stored text of a new view: its unqualified names are looked up in the schema that is the default when it is
//! created, so names that the search path finds in another schema are qualified.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::utils::quote_identifier;
use datafusion::common::{Result, TableReference, not_impl_err};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::resolve::resolve_table_references;
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, TableFactor, Visitor};

use crate::catalog::{Catalogs, UnplannedView};
use crate::session::ddl::macros::macro_reference;
use crate::session::ddl::views::{names_in, names_read, query_of};
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_parse::syntax::offset;
use atoll_sql_parse::syntax::walk;

impl StatementPlanner {
    /// The text of a view whose unqualified names mean the same as in the statement that creates it. In a view of the
    /// session they may be those of temporary tables.
    ///
    /// # Errors
    /// If such names cannot be qualified.
    pub(in crate::session) fn bound_view(&self, sql: &str, is_own: bool) -> Result<String> {
        if self.names.path().listed().len() < 2 {
            return Ok(sql.to_owned());
        }
        let statement = query_of(
            crate::session::statement::parsed_statement::parse(sql, &self.state)?.statement,
        );
        let (_, ctes) = resolve_table_references(&statement, self.normalizes())?;
        let later = self.names_of_views(is_own);
        let mut names = FarNames { planner: self, later, ctes, found: Vec::new() };
        if let Parsed::Statement(ast) = &statement {
            let _ = walk(&**ast, &mut names);
        }
        let bound = qualified(sql, names.found)?;
        let (columns, options) = (Arc::new(Schema::empty()), self.state.config_options());
        let view = UnplannedView::new(bound.clone(), columns, options);
        let meant: BTreeSet<_> =
            names_in(self, &self.state, &self.names, statement)?.into_iter().collect();
        let read: BTreeSet<_> = names_read(self, &view, is_own)?.into_iter().collect();
        match meant.symmetric_difference(&read).next() {
            Some(name) => not_impl_err!("{}", unbound(&name.name)),
            None => Ok(bound),
        }
    }

    /// The names from which views are created.
    pub(in crate::session) fn names_of_views(&self, is_own: bool) -> Catalogs {
        match is_own {
            true => self.names.without_path(),
            false => self.names.without_temporary(),
        }
    }
}

/// A text with some of its names qualified.
fn qualified(sql: &str, names: Vec<(Ident, String)>) -> Result<String> {
    let mut places = BTreeSet::new();
    for (ident, schema) in names {
        let written = ident.to_string();
        match offset(sql, ident.span.start) {
            Some(at) if sql[at..].starts_with(&written) => places.insert((at, schema)),
            _ => return not_impl_err!("{}", unbound(&written)),
        };
    }
    let mut qualified = sql.to_owned();
    for (at, schema) in places.iter().rev() {
        qualified.insert_str(*at, &format!("{}.", quote_identifier(schema)));
    }
    Ok(qualified)
}

fn unbound(name: &str) -> String {
    format!(
        "the search path finds '{name}' of the view in another schema; write its schema before it"
    )
}

/// Names with another meaning in a view than in the statement that creates it.
struct FarNames<'a> {
    planner: &'a StatementPlanner,
    /// The names in the view.
    later: Catalogs,
    ctes: Vec<TableReference>,
    /// With their schemas.
    found: Vec<(Ident, String)>,
}

impl FarNames<'_> {
    fn note(&mut self, name: &ObjectName, reference: TableReference) {
        let is_cte = self.ctes.contains(&reference);
        let (TableReference::Bare { .. }, false) = (&reference, is_cte) else { return };
        let options = &self.planner.state.config_options().catalog;
        let now = self.planner.names.resolve(reference.clone(), options);
        if now != self.later.resolve(reference, options)
            && let Some(ident) = name.0.last().and_then(|part| part.as_ident())
        {
            self.found.push((ident.clone(), now.schema.to_string()));
        }
    }

    fn note_macro(&mut self, name: &ObjectName) {
        if let Ok(reference) = macro_reference(&self.planner.state, name) {
            self.note(name, reference);
        }
    }
}

impl Visitor for FarNames<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: None, .. } => {
                if let Ok(reference) = self.planner.name(name) {
                    self.note(name, reference);
                }
            }
            TableFactor::Table { name, .. } => self.note_macro(name),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            self.note_macro(&function.name);
        }
        ControlFlow::Continue(())
    }
}
