//! Outer tables that have the same name as a column of a query in between.
//!
//! ```text
//! FROM t WHERE EXISTS (SELECT 1 FROM u WHERE EXISTS (SELECT 1 FROM w WHERE w.x = t.a))
//! ```
//!
//! If u has a column t, DataFusion (55.2, `sql/expr/identifier.rs`) takes `t.a` for a field of that column and fails.
//! Under another name, which no column has, the table is found.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;

use datafusion::common::DataFusionError;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::planner::IdentNormalizer;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    Statement as Ast, TableAlias, TableFactor, TableWithJoins, Visitor, VisitorMut,
};

use atoll_sql_parse::dialect::quoted;
use atoll_sql_parse::syntax::{walk, walk_mut};

/// Tables referenced from at least two query levels below their own: the number of the query, and the table's name.
#[derive(Debug)]
pub(super) struct FarTables {
    tables: BTreeSet<(usize, String)>,
    normalizes: bool,
}

impl FarTables {
    /// Finds them in a statement; None if there are none.
    pub(super) fn from_statement(statement: &Parsed, normalizes: bool) -> Option<Self> {
        match statement {
            Parsed::Statement(ast) if has_values(ast) => None,
            Parsed::Statement(ast) => {
                let scopes = Scopes::new(normalizes);
                let mut search = FarSearch { scopes, found: BTreeSet::new() };
                let _ = walk(ast.as_ref(), &mut search);
                let tables = search.found;
                (!tables.is_empty()).then_some(Self { tables, normalizes })
            }
            Parsed::Explain(explain) => Self::from_statement(&explain.statement, normalizes),
            _ => None,
        }
    }

    /// Whether the statement may have failed because of their names.
    pub(super) fn are_hidden(error: &DataFusionError) -> bool {
        const FAILURE: &str = "Nested identifiers are not yet supported for OuterReferenceColumn";
        matches!(error.find_root(), DataFusionError::NotImplemented(why) if why.starts_with(FAILURE))
    }

    /// Renames them.
    pub(super) fn rename(&self, statement: &mut Parsed) {
        match statement {
            Parsed::Statement(ast) => {
                let mut renaming = Renaming { scopes: Scopes::new(self.normalizes), far: self };
                let _ = walk_mut(ast.as_mut(), &mut renaming);
            }
            Parsed::Explain(explain) => self.rename(&mut explain.statement),
            _ => {}
        }
    }

    fn has(&self, query: usize, name: &str) -> bool {
        self.tables.contains(&(query, name.to_owned()))
    }
}

/// Whether a statement inserts VALUES, which may be very many and have no outer query.
pub(super) fn has_values(ast: &Ast) -> bool {
    let Ast::Insert(insert) = ast else { return false };
    insert.source.as_ref().is_some_and(|source| matches!(*source.body, SetExpr::Values(_)))
}

fn other_name(name: &str) -> Ident {
    quoted(&format!("{name} around"))
}

/// The enclosing queries at some point, with the names of their tables.
struct Scopes {
    open: Vec<Scope>,
    /// Number of queries entered so far; gives each its number.
    seen: usize,
    normalizer: IdentNormalizer,
}

struct Scope {
    query: usize,
    names: HashSet<String>,
    /// Whether all names belong to one SELECT.
    is_select: bool,
}

impl Scopes {
    fn new(normalizes: bool) -> Self {
        Self { open: Vec::new(), seen: 0, normalizer: IdentNormalizer::new(normalizes) }
    }

    fn enter(&mut self, query: &Query) {
        let mut names = HashSet::new();
        self.add_names(&query.body, &mut names);
        let is_select = matches!(*query.body, SetExpr::Select(_));
        self.open.push(Scope { query: self.seen, names, is_select });
        self.seen += 1;
    }

    fn leave(&mut self) {
        self.open.pop();
    }

    fn normalized(&self, name: &Ident) -> String {
        self.normalizer.normalize(name.clone())
    }

    fn add_names(&self, body: &SetExpr, names: &mut HashSet<String>) {
        match body {
            SetExpr::Select(select) => {
                names.extend(
                    all_factors(select)
                        .into_iter()
                        .filter_map(|factor| name_of(factor).map(|name| self.normalized(&name))),
                );
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.add_names(left, names);
                self.add_names(right, names);
            }
            _ => {}
        }
    }

    /// Finds the query that has a table with this name, the number of queries in between, and the name.
    fn find(&self, name: &Ident) -> Option<(&Scope, usize, String)> {
        let name = self.normalized(name);
        let mut scopes = self.open.iter().rev().enumerate();
        let (between, scope) = scopes.find(|(_, scope)| scope.names.contains(&name))?;
        Some((scope, between, name))
    }
}

/// Everything that a SELECT reads from.
fn all_factors(select: &Select) -> Vec<&TableFactor> {
    let (mut found, mut tables) = (Vec::new(), select.from.iter().collect::<Vec<_>>());
    while let Some(TableWithJoins { relation, joins }) = tables.pop() {
        for factor in std::iter::once(relation).chain(joins.iter().map(|join| &join.relation)) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    tables.push(table_with_joins);
                }
                factor => found.push(factor),
            }
        }
    }
    found
}

/// Returns the name of a table in FROM.
pub(super) fn name_of(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::TableFunction { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. }
        | TableFactor::Pivot { alias: Some(alias), .. }
        | TableFactor::Unpivot { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, .. } => name.0.last()?.as_ident().cloned(),
        _ => None,
    }
}

/// Finds tables that are referenced from deep inside.
struct FarSearch {
    scopes: Scopes,
    found: BTreeSet<(usize, String)>,
}

impl Visitor for FarSearch {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.scopes.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.scopes.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let Some(first) = parts.first()
            && let Some((scope, between, name)) = self.scopes.find(first)
            && between >= 2
            && scope.is_select
        {
            self.found.insert((scope.query, name));
        }
        ControlFlow::Continue(())
    }
}

/// Renames these tables in FROM and in all references.
struct Renaming<'a> {
    scopes: Scopes,
    far: &'a FarTables,
}

impl Renaming<'_> {
    fn rename_factor(&self, query: usize, factor: &mut TableFactor) {
        if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
            return self.rename_factors(query, table_with_joins);
        }
        let Some(name) = name_of(factor).map(|name| self.scopes.normalized(&name)) else { return };
        let (TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. }) = factor else {
            return;
        };
        if self.far.has(query, &name) {
            let columns = alias.take().map(|alias| alias.columns).unwrap_or_default();
            let name = other_name(&name);
            *alias = Some(TableAlias { explicit: true, name, columns, at: None });
        }
    }

    fn rename_factors(&self, query: usize, tables: &mut TableWithJoins) {
        self.rename_factor(query, &mut tables.relation);
        for join in &mut tables.joins {
            self.rename_factor(query, &mut join.relation);
        }
    }

    fn rename_star(&self, query: usize, item: &mut SelectItem) {
        let SelectItem::QualifiedWildcard(kind, _) = item else { return };
        let SelectItemQualifiedWildcardKind::ObjectName(table) = kind else { return };
        if let [part] = &table.0[..]
            && let Some(name) = part.as_ident().map(|name| self.scopes.normalized(name))
            && self.far.has(query, &name)
        {
            *table = ObjectName::from(vec![other_name(&name)]);
        }
    }
}

impl VisitorMut for Renaming<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.enter(query);
        let number = self.scopes.seen - 1;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.from.iter_mut().for_each(|tables| self.rename_factors(number, tables));
            select.projection.iter_mut().for_each(|item| self.rename_star(number, item));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let Some(first) = parts.first_mut()
            && let Some((scope, _, name)) = self.scopes.find(first)
            && self.far.has(scope.query, &name)
        {
            *first = other_name(&name);
        }
        ControlFlow::Continue(())
    }
}
