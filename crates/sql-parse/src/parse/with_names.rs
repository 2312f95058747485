//! Gives the queries of WITH names of their own where a statement uses a name for several relations.
//!
//! ```text
//! WITH q AS (WITH q AS (SELECT 1 AS a) SELECT a FROM q) SELECT q.a FROM q
//! WITH q AS (WITH q_1 AS (SELECT 1 AS a) SELECT a FROM q_1 AS q) SELECT q.a FROM q
//! ```
//!
//! An inner WITH hides the same name outside, which DataFusion (55.2) refuses, and a WITH query hides a table only where
//! it is visible: not in its own text, and not as the target of a change. From here on a name means the same
//! relation in the whole statement.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, Query, SetExpr, Statement, TableAlias, TableFactor, VisitorMut, With,
};

use crate::dialect::folded;
use crate::syntax::{flow, walk_mut};
use atoll_sql_common::error::stated_err;

/// Renames the queries of WITH whose names are used for other relations too.
///
/// # Errors
/// If a WITH defines a name twice.
pub fn separate_with_names(statement: &mut Parsed) -> Result<()> {
    let mut names = Names::default();
    visit(statement, &mut names)?;
    let is_ambiguous = |name: &String| names.defined[name] > 1 || names.relations.contains(name);
    if !names.defined.keys().any(is_ambiguous) {
        return Ok(());
    }
    names.renames = true;
    visit(statement, &mut names)
}

fn visit(statement: &mut Parsed, names: &mut Names) -> Result<()> {
    let visited = match statement {
        Parsed::Statement(statement) => walk_mut(statement, names),
        Parsed::Explain(explain) => return visit(&mut explain.statement, names),
        Parsed::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => walk_mut(query, names),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Parsed::CreateExternalTable(_) | Parsed::Reset(_) => ControlFlow::Continue(()),
    };
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// The names of a statement: a first walk counts them, a second one renames.
#[derive(Default)]
struct Names {
    /// How many queries of WITH have a name.
    defined: HashMap<String, usize>,
    /// The names of relations that are not queries of WITH.
    relations: HashSet<String>,
    renames: bool,
    given: HashSet<String>,
    /// The queries of WITH that are visible, the innermost last: their names and what they are renamed to.
    visible: Vec<(String, Option<Ident>)>,
    /// Queries around the visited node, from one with a WITH on, which was visited as a whole.
    visited: usize,
    /// Whether the next relation is the target of a change.
    is_target: bool,
}

impl Names {
    /// Visits a query with its WITH: each query of it sees those before it, and under RECURSIVE all.
    fn query(&mut self, query: &mut Query, mut with: With) -> Result<()> {
        let outside = self.visible.len();
        let mut names: Vec<(String, Option<Ident>)> = Vec::with_capacity(with.cte_tables.len());
        for cte in &mut with.cte_tables {
            let name = folded(&cte.alias.name);
            if names.iter().any(|(other, _)| *other == name) {
                return stated_err!(
                    DUPLICATE_ALIAS,
                    "WITH query name \"{name}\" specified more than once"
                );
            }
            let given = self.name(&name);
            names.push((name, given));
        }
        if with.recursive {
            self.visible.extend(names.iter().cloned());
        }
        for (cte, (name, given)) in with.cte_tables.iter_mut().zip(names) {
            walked(walk_mut(&mut cte.query, self))?;
            if let Some(given) = &given {
                cte.alias.name = given.clone();
            }
            if !with.recursive {
                self.visible.push((name, given));
            }
        }
        walked(walk_mut(query, self))?;
        self.visible.truncate(outside);
        query.with = Some(with);
        Ok(())
    }

    /// Counts a query of WITH, or finds a name for it if it needs another one.
    fn name(&mut self, name: &str) -> Option<Ident> {
        if !self.renames {
            *self.defined.entry(name.to_owned()).or_default() += 1;
            return None;
        }
        // The first one keeps the name if no other relation has it.
        let is_kept = !self.relations.contains(name) && self.given.insert(name.to_owned());
        let is_free = |new: &String| {
            let is_used = self.defined.contains_key(new) || self.relations.contains(new);
            !is_used && !self.given.contains(new)
        };
        let new = (1..).map(|number| format!("{name}_{number}")).find(is_free)?;
        if is_kept {
            return None;
        }
        self.given.insert(new.clone());
        Some(Ident::with_quote('"', new))
    }

    /// What a relation is renamed to.
    fn relation(&mut self, name: &ObjectName) -> Option<Ident> {
        let last = folded(name.0.last()?.as_ident()?);
        let is_plain = name.0.len() == 1;
        match self.visible.iter().rev().find(|(visible, _)| is_plain && *visible == last) {
            Some((_, given)) => given.clone(),
            None => {
                self.relations.insert(last);
                None
            }
        }
    }

    fn factor(&mut self, factor: &mut TableFactor) {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return };
        if std::mem::take(&mut self.is_target) {
            self.relations.extend(name.0.last().and_then(|name| name.as_ident()).map(folded));
            return;
        }
        let Some(given) = self.relation(name) else { return };
        if let Some(written) = name.0.last().and_then(|name| name.as_ident()) {
            let (explicit, columns, at) = (true, vec![], None);
            let same = || TableAlias { explicit, name: written.clone(), columns, at };
            alias.get_or_insert_with(same);
        }
        *name = ObjectName::from(vec![given]);
    }

    /// `TABLE q`, whose name no other step visits.
    fn set(&mut self, body: &mut SetExpr) {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.set(left);
                self.set(right);
            }
            SetExpr::Table(table) if table.schema_name.is_none() => {
                let Some(name) = &table.table_name else { return };
                if let Some(given) = self.relation(&ObjectName::from(vec![Ident::new(name)])) {
                    table.table_name = Some(given.value);
                }
            }
            _ => {}
        }
    }
}

fn walked(flow: ControlFlow<DataFusionError>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

impl VisitorMut for Names {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        if self.visited > 0 {
            self.visited += 1;
            return ControlFlow::Continue(());
        }
        match query.with.take() {
            Some(with) => {
                let done = self.query(query, with);
                self.visited = 1;
                flow(done)
            }
            None => {
                self.set(&mut query.body);
                ControlFlow::Continue(())
            }
        }
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<DataFusionError> {
        self.visited = self.visited.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<DataFusionError> {
        if self.visited == 0 {
            match statement {
                Statement::Update(_) | Statement::Delete(_) | Statement::Merge(_) => {
                    self.is_target = true;
                }
                Statement::Insert(insert) => {
                    let table = insert.table.to_string();
                    let name = table.rsplit('.').next().unwrap_or_default();
                    self.relations.insert(name.trim_matches('"').to_owned());
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<DataFusionError> {
        if self.visited == 0 {
            self.factor(factor);
        }
        ControlFlow::Continue(())
    }
}
