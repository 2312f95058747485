//! The stored text of a view. Its unqualified names are looked up in the schema that is the default when it is created,
//! so names that the search path finds in another schema are qualified. A relation that is renamed is renamed in it too.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use atoll_store::database::{CatalogChange, Relation, RelationName};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::utils::quote_identifier;
use datafusion::common::{Result, TableReference, not_impl_err};
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::resolve::resolve_table_references;
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, TableFactor, Visitor};

use crate::catalog::{Catalogs, UnplannedView};
use crate::session::ddl::macros::macro_reference;
use crate::session::ddl::sequence::dependents::full_name;
use crate::session::ddl::views::{names_in, names_read, query_of};
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::names::relation_name;
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

    /// The texts of the stored views that read a relation directly, with its new name: they read it by identity.
    ///
    /// # Errors
    /// If a text names it in a way that cannot follow.
    pub(in crate::session) fn views_after_rename(
        &self,
        from: &RelationName,
        to: &RelationName,
    ) -> Result<Vec<CatalogChange>> {
        let mut changes = Vec::new();
        for (name, relation) in self.names.stored_version().relations() {
            let Relation::View(stored) = relation else { continue };
            let mut view = UnplannedView::from_stored(stored)?;
            // A view that cannot be parsed any more follows nothing.
            let reads = |view: &UnplannedView| names_read(self, view, false).unwrap_or_default();
            if !reads(&view).contains(from) {
                continue;
            }
            view.sql = self.text_after_rename(&view, from, to)?;
            let read = reads(&view);
            if read.contains(from) || !read.contains(to) {
                return not_impl_err!(
                    "view '{}' names '{}' in a way that cannot follow a new name; drop the view, rename, and \
                     create it again",
                    name.name,
                    from.name
                );
            }
            let statement = Arc::new(view.stored());
            changes.push(CatalogChange::CreateView { name: name.clone(), statement });
        }
        Ok(changes)
    }

    fn text_after_rename(
        &self,
        view: &UnplannedView,
        from: &RelationName,
        to: &RelationName,
    ) -> Result<String> {
        let mut state = self.state.clone();
        view.set_options(state.config_mut().options_mut());
        let statement = query_of(
            crate::session::statement::parsed_statement::parse(&view.sql, &state)?.statement,
        );
        let (_, ctes) = resolve_table_references(&statement, self.normalizes())?;
        let (names, found) = (self.names_of_views(false), Vec::new());
        let mut renamed = RenamedTables { planner: self, state: &state, names, ctes, from, found };
        if let Parsed::Statement(ast) = &statement {
            let _ = walk(&**ast, &mut renamed);
        }
        let mut text = view.sql.clone();
        let mut places: Vec<_> =
            renamed.found.into_iter().filter_map(|it| it.place(&view.sql)).collect();
        places.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        for (range, alias) in places {
            let name = full_name(to);
            let alias = alias.map(|alias| format!(" AS {alias}")).unwrap_or_default();
            text.replace_range(range, &format!("{name}{alias}"));
        }
        Ok(text)
    }

    /// The names from which views are created.
    pub(in crate::session) fn names_of_views(&self, is_own: bool) -> Catalogs {
        match is_own {
            true => self.names.without_path(),
            false => self.names.without_temporary(),
        }
    }
}

/// A table in the text of a view.
struct NamedTable {
    first: Ident,
    last: Ident,
    has_alias: bool,
}

impl NamedTable {
    /// The place of its name, and the alias that it needs for a new name.
    fn place(&self, sql: &str) -> Option<(Range<usize>, Option<String>)> {
        let start = offset(sql, self.first.span.start)?;
        let (end, last) = (offset(sql, self.last.span.start)?, self.last.to_string());
        if !sql[end..].starts_with(&last) {
            return None;
        }
        Some((start..end + last.len(), (!self.has_alias).then_some(last)))
    }
}

/// The tables in a view that have a name.
struct RenamedTables<'a> {
    planner: &'a StatementPlanner,
    state: &'a SessionState,
    /// The names in the view.
    names: Catalogs,
    ctes: Vec<TableReference>,
    from: &'a RelationName,
    found: Vec<NamedTable>,
}

impl Visitor for RenamedTables<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor
            && let Ok(reference) = self.planner.name(name)
            && !self.ctes.contains(&reference)
            && let (Some(first), Some(last)) = (name.0.first(), name.0.last())
            && let (Some(first), Some(last)) = (first.as_ident(), last.as_ident())
        {
            let options = &self.state.config_options().catalog;
            if relation_name(&self.names.resolve(reference, options)) == *self.from {
                let (first, last) = (first.clone(), last.clone());
                self.found.push(NamedTable { first, last, has_alias: alias.is_some() });
            }
        }
        ControlFlow::Continue(())
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
