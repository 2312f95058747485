//! GROUP BY of a table's whole primary key, which determines the table's other columns.
//!
//! ```text
//! SELECT t.id, t.name, count(*) FROM t JOIN o ON … GROUP BY t.id      … GROUP BY t.id, t.name
//! ```
//!
//! The columns that the query names are added to GROUP BY, which leaves the groups as they are. As in PostgreSQL, only
//! tables that FROM itself names have a key: not views, subqueries and WITH queries, and no UNIQUE constraint counts.
//! DataFusion could derive as much from constraints, but would keep the keys through subqueries, and leave out DISTINCT
//! and keys of GROUP BY because of them.

use std::collections::HashSet;
use std::ops::ControlFlow;

use atoll_sql_common::error::stated_err;
use atoll_sql_parse::dialect::quoted;
use atoll_sql_parse::syntax::{flow, walk, walk_expressions, walk_mut};
use atoll_store::table::Unique;
use datafusion::common::{DataFusionError, Result, TableReference};
use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, ObjectName,
    OrderBy, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor,
    TableWithJoins, Value, Visitor, VisitorMut,
};

use crate::session::plan::planner::StatementPlanner;
use crate::table::PlacedTable;

/// A table of a FROM, and a column of it.
type ColumnOf = (usize, usize);

impl StatementPlanner {
    /// Adds the columns that grouped primary keys determine to each GROUP BY; `ctes` are the names of WITH queries.
    pub(super) fn group_determined(
        &self,
        state: &SessionState,
        statement: &mut Parsed,
        ctes: &[TableReference],
    ) -> Result<()> {
        let mut grouping = Grouping { planner: self, state, ctes };
        let visited = match statement {
            Parsed::Statement(ast) => walk_mut(ast, &mut grouping),
            Parsed::Explain(explain) => {
                return self.group_determined(state, &mut explain.statement, ctes);
            }
            Parsed::CopyTo(copy) => match &mut copy.source {
                CopyToSource::Query(query) => walk_mut(query, &mut grouping),
                CopyToSource::Relation(_) => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        };
        match visited {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }
}

struct Grouping<'a> {
    planner: &'a StatementPlanner,
    state: &'a SessionState,
    ctes: &'a [TableReference],
}

impl VisitorMut for Grouping<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        flow(self.body(&mut query.body, query.order_by.as_ref()))
    }
}

impl Grouping<'_> {
    fn body(&self, body: &mut SetExpr, order: Option<&OrderBy>) -> Result<()> {
        match body {
            SetExpr::Select(select) => self.select(select, order),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, None)?;
                self.body(right, None)
            }
            _ => Ok(()),
        }
    }

    fn select(&self, select: &mut Select, order: Option<&OrderBy>) -> Result<()> {
        let GroupByExpr::Expressions(keys, _) = &select.group_by else { return Ok(()) };
        if keys.is_empty() {
            return Ok(());
        }
        let tables = self.tables(&select.from)?;
        // What is beside grouping sets is a key of each of them.
        let is_set =
            |key: &&Expr| matches!(key, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
        let plain = keys.iter().filter(|key| !is_set(key));
        let grouped: HashSet<ColumnOf> =
            plain.filter_map(|key| self.grouped(key, select, &tables)).collect();
        let is_determined = |(at, table): (usize, &KeyedTable)| {
            table.key.iter().all(|column| grouped.contains(&(at, *column)))
        };
        let determined: Vec<bool> = tables.iter().enumerate().map(is_determined).collect();
        if !determined.contains(&true) {
            return Ok(());
        }
        let (found, rows) = (Vec::new(), HashSet::new());
        let mut named = NamedColumns { of: self, tables: &tables, keys, inside: 0, found, rows };
        named.collect(select, order);
        // A column of grouping sets is NULL in the others.
        let mut of_sets = HashSet::new();
        for set in keys.iter().filter(is_set) {
            let _ = walk_expressions(set, &mut |expr| {
                of_sets.extend(self.grouped(expr, select, &tables));
                ControlFlow::<()>::Continue(())
            });
        }
        if let Some((table, _)) = of_sets.iter().find(|(table, _)| named.rows.contains(table)) {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "the row '{}' is not supported beside grouping sets of its columns; name the columns",
                tables[*table].name
            );
        }
        let mut added = HashSet::new();
        let added: Vec<Expr> = named
            .found
            .into_iter()
            .filter(|column| determined[column.0])
            .filter(|column| !grouped.contains(column) && !of_sets.contains(column))
            .filter(|column| added.insert(*column))
            .map(|(table, column)| tables[table].column(column))
            .collect();
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            keys.extend(added);
        }
        Ok(())
    }

    /// The tables in FROM that have a primary key.
    fn tables(&self, from: &[TableWithJoins]) -> Result<Vec<KeyedTable>> {
        let mut tables = Vec::new();
        for TableWithJoins { relation, joins } in from {
            for factor in std::iter::once(relation).chain(joins.iter().map(|join| &join.relation)) {
                match factor {
                    TableFactor::NestedJoin { table_with_joins, alias: None } => {
                        tables.extend(self.tables(std::slice::from_ref(table_with_joins))?);
                    }
                    factor => tables.extend(self.keyed(factor)?),
                }
            }
        }
        Ok(tables)
    }

    fn keyed(&self, factor: &TableFactor) -> Result<Option<KeyedTable>> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return Ok(None) };
        let reference = self.planner.name(name)?;
        if self.ctes.contains(&reference) {
            return Ok(None);
        }
        let found = self.planner.names.table(&self.planner.resolve_in(self.state, name)?)?;
        let Some(table) = found.as_ref().and_then(|table| table.downcast_ref::<PlacedTable>())
        else {
            return Ok(None);
        };
        let definition = table.definition();
        let is_key = |unique: &&Unique| unique.is_primary && unique.is_immediate();
        let Some(key) = definition.uniques.iter().find(is_key) else {
            return Ok(None);
        };
        let mut columns: Vec<String> =
            definition.columns.fields().iter().map(|field| field.name().clone()).collect();
        let renamed = alias.iter().flat_map(|alias| &alias.columns);
        for (column, renamed) in columns.iter_mut().zip(renamed) {
            *column = self.planner.normalized(&renamed.name);
        }
        let name = match alias {
            Some(alias) => self.planner.normalized(&alias.name),
            None => reference.table().to_owned(),
        };
        Ok(Some(KeyedTable { name, columns, key: key.columns.clone() }))
    }

    /// The column that a key of GROUP BY is, directly or as an item of the select list.
    fn grouped(&self, key: &Expr, select: &Select, tables: &[KeyedTable]) -> Option<ColumnOf> {
        match key {
            Expr::Nested(inner) => self.grouped(inner, select, tables),
            Expr::Identifier(name) => self.find(key, tables).or_else(|| {
                let name = self.planner.normalized(name);
                let item = select.projection.iter().find_map(|item| match item {
                    SelectItem::ExprWithAlias { expr, alias }
                        if self.planner.normalized(alias) == name =>
                    {
                        Some(expr)
                    }
                    _ => None,
                });
                self.find(item?, tables)
            }),
            Expr::Value(value) => {
                let Value::Number(number, _) = &value.value else { return None };
                let at = number.parse::<usize>().ok()?.checked_sub(1)?;
                let items = select.projection.get(..=at)?;
                let exprs = items.iter().map(|item| match item {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                        Some(expr)
                    }
                    // Its columns are counted too.
                    _ => None,
                });
                self.find(exprs.collect::<Option<Vec<_>>>()?.last()?, tables)
            }
            key => self.find(key, tables),
        }
    }

    /// The column that an expression names.
    fn find(&self, expr: &Expr, tables: &[KeyedTable]) -> Option<ColumnOf> {
        let (table, column) = match expr {
            Expr::Nested(inner) => return self.find(inner, tables),
            Expr::Identifier(column) => (None, column),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., table, column] => (Some(self.planner.normalized(table)), column),
                _ => return None,
            },
            _ => return None,
        };
        let column = self.planner.normalized(column);
        tables.iter().enumerate().find_map(|(at, of)| {
            if table.as_ref().is_some_and(|table| *table != of.name) {
                return None;
            }
            Some((at, of.columns.iter().position(|own| *own == column)?))
        })
    }

    /// Whether a call computes an aggregate of each group.
    fn is_aggregate(&self, function: &Function) -> bool {
        let name = function.name.to_string().to_lowercase();
        function.over.is_none() && self.state.aggregate_functions().contains_key(&name)
    }
}

/// A table in FROM with a primary key.
struct KeyedTable {
    /// Its name in the query.
    name: String,
    /// The names of its columns in the query.
    columns: Vec<String>,
    /// Numbers of the columns of its primary key.
    key: Vec<usize>,
}

impl KeyedTable {
    fn column(&self, at: usize) -> Expr {
        Expr::CompoundIdentifier(vec![quoted(&self.name), quoted(&self.columns[at])])
    }
}

/// The columns that a SELECT names outside of aggregates and of the keys of its GROUP BY. Names in subqueries, which
/// may mean the columns around them, are among them.
struct NamedColumns<'a> {
    of: &'a Grouping<'a>,
    tables: &'a [KeyedTable],
    keys: &'a [Expr],
    /// The aggregates and keys around what is visited.
    inside: usize,
    found: Vec<ColumnOf>,
    /// The tables whose whole rows are values.
    rows: HashSet<usize>,
}

impl NamedColumns<'_> {
    fn collect(&mut self, select: &Select, order: Option<&OrderBy>) {
        let Select { projection, having, qualify, distinct, named_window, .. } = select;
        for item in projection {
            match item {
                SelectItem::Wildcard(_) => self.all_of(None),
                SelectItem::QualifiedWildcard(kind, _) => {
                    if let SelectItemQualifiedWildcardKind::ObjectName(name) = kind {
                        self.all_of(self.name_of(name).as_deref());
                    }
                }
                item => {
                    let _ = walk(item, self);
                }
            }
        }
        let _ = walk(having, self);
        let _ = walk(qualify, self);
        let _ = walk(distinct, self);
        let _ = walk(named_window, self);
        if let Some(order) = order {
            let _ = walk(order, self);
        }
    }

    /// The columns of the tables whose rows are arguments: `to_json(t.*)`.
    fn whole_rows(&mut self, function: &Function) {
        let FunctionArguments::List(list) = &function.args else { return };
        for argument in &list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) = argument {
                self.name_of(name).iter().for_each(|name| self.whole_row(name));
            }
        }
    }

    fn whole_row(&mut self, name: &str) {
        if let Some(at) = self.tables.iter().position(|of| of.name == name) {
            self.rows.insert(at);
            self.all_of(Some(name));
        }
    }

    fn name_of(&self, table: &ObjectName) -> Option<String> {
        Some(self.of.planner.normalized(table.0.last()?.as_ident()?))
    }

    /// The columns of a table, or of all tables.
    fn all_of(&mut self, table: Option<&str>) {
        for (at, of) in self.tables.iter().enumerate() {
            if table.is_none_or(|table| table == of.name) {
                self.found.extend((0..of.columns.len()).map(|column| (at, column)));
            }
        }
    }

    fn is_inside(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Function(function) => self.of.is_aggregate(function) || self.keys.contains(expr),
            expr => self.keys.contains(expr),
        }
    }
}

impl Visitor for NamedColumns<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.is_inside(expr) {
            self.inside += 1;
        }
        if self.inside == 0 {
            match (self.of.find(expr, self.tables), expr) {
                (Some(column), _) => self.found.push(column),
                // The name of a table is its whole row.
                (None, Expr::Identifier(name)) => {
                    let name = self.of.planner.normalized(name);
                    self.whole_row(&name);
                }
                (None, Expr::Function(function)) => self.whole_rows(function),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.is_inside(expr) {
            self.inside -= 1;
        }
        ControlFlow::Continue(())
    }
}
