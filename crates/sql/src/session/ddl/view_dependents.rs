//! Views that depend on dropped objects: DROP is refused if there are any, and CASCADE drops them too.
//!
//! A view is its text, which determines the relations that it reads. Its `*` is expanded to the current columns: a view
//! needs a column if it cannot be planned without it.

use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_store::database::{CatalogChange, DatabaseVersion, Relation, RelationName};
use datafusion::common::{DataFusionError, ResolvedTableReference, Result};
use datafusion::logical_expr::TableType;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{AlterTableOperation, DropBehavior, Expr, Value, Visit};

use crate::catalog::{MaterializedView, UnplannedView};
use crate::session::Session;
use crate::session::ddl::views::names_read;
use crate::session::plan::planner::StatementPlanner;
use crate::table::PlacedTable;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::{CATALOG, plain, relation_name};
use atoll_sql_parse::syntax::walk_expressions;

/// A view that reads a dropped object.
#[derive(Clone)]
pub(in crate::session) struct ReadingView {
    at: ResolvedTableReference,
    view: UnplannedView,
    /// Its kind: `view` or `materialized view`.
    word: &'static str,
    is_own: bool,
    /// The object that it reads: `table t`.
    reads: String,
}

impl ReadingView {
    fn name(&self) -> RelationName {
        relation_name(&self.at)
    }

    /// The name in messages.
    pub(in crate::session) fn shown(&self) -> String {
        plain(&self.at)
    }

    /// `view v depends on table t`
    fn line(&self) -> String {
        format!("{} {} depends on {}", self.word, plain(&self.at), self.reads)
    }
}

impl StatementPlanner {
    /// All views, materialized ones included.
    pub(in crate::session) fn all_views(&self) -> Result<Vec<ReadingView>> {
        let mut all = Vec::new();
        for at in self.names.views() {
            let Some(table) = self.names.table(&at)? else { continue };
            let Some(view) = table.downcast_ref::<UnplannedView>().cloned() else { continue };
            let is_own = self.names.is_own(&at);
            all.push(ReadingView { at, view, word: "view", is_own, reads: String::new() });
        }
        for (name, view) in materialized_views(&self.names.stored_version())? {
            let (at, word) = (full(&name), "materialized view");
            all.push(ReadingView { at, view, word, is_own: false, reads: String::new() });
        }
        Ok(all)
    }

    /// Those of these views that cannot be planned.
    pub(in crate::session) async fn without_planned(
        &self,
        views: Vec<ReadingView>,
    ) -> Vec<ReadingView> {
        let still = self.planned_ones(views.clone()).await;
        let still: Vec<RelationName> = still.iter().map(ReadingView::name).collect();
        views.into_iter().filter(|view| !still.contains(&view.name())).collect()
    }

    /// The views that read one of these relations, directly or through other views.
    pub(in crate::session) fn readers(&self, of: &[RelationName]) -> Result<Vec<ReadingView>> {
        let mut others = self.all_views()?;
        others.retain(|view| !of.contains(&view.name()));
        let read_by = |view: ReadingView| {
            // A view that cannot be parsed any more depends on nothing.
            let read = names_read(self, &view.view, view.is_own).unwrap_or_default();
            (view, read)
        };
        let mut others: Vec<_> = others.into_iter().map(read_by).collect();
        let (mut gone, mut found) = (of.to_vec(), Vec::new());
        while let Some((at, needed)) = next_reader(&others, &gone) {
            let (mut view, _) = others.swap_remove(at);
            view.reads = self.called(&needed);
            gone.push(view.name());
            found.push(view);
        }
        Ok(found)
    }

    /// Whether the text of a view has a string literal.
    pub(in crate::session) fn view_has_literal(&self, view: &ReadingView, text: &str) -> bool {
        let mut state = self.state.clone();
        view.view.set_options(state.config_mut().options_mut());
        let parsed = crate::session::statement::parsed_statement::parse(&view.view.sql, &state);
        // A view that cannot be parsed any more names nothing.
        parsed.is_ok_and(|parsed| match parsed.statement {
            Parsed::Statement(ast) => has_string(ast.as_ref(), text),
            _ => false,
        })
    }

    /// The name of a relation in messages: `table t`, `view v`.
    fn called(&self, name: &RelationName) -> String {
        let at = full(name);
        let found = self.names.table(&at).ok().flatten();
        let kind = match found {
            Some(found) if found.table_type() == TableType::View => "view",
            Some(found) if found.downcast_ref().is_some_and(PlacedTable::is_materialized) => {
                "materialized view"
            }
            _ => "table",
        };
        let is_temporary = self.names.temporary_schema() == Some(&name.schema);
        let called = if is_temporary { name.name.to_string() } else { plain(&at) };
        format!("{kind} {called}")
    }

    /// The views that can be planned.
    pub(in crate::session) async fn planned_ones(
        &self,
        views: Vec<ReadingView>,
    ) -> Vec<ReadingView> {
        let mut planned = Vec::with_capacity(views.len());
        for view in views {
            let within = std::slice::from_ref(&view.at);
            if Box::pin(self.view_plan(&view.view, !view.is_own, within)).await.is_ok() {
                planned.push(view);
            }
        }
        planned
    }
}

/// Whether a part of a statement has a string literal.
pub(in crate::session) fn has_string(node: &impl Visit, text: &str) -> bool {
    let found = walk_expressions(node, &mut |expr| match expr {
        Expr::Value(value) if matches!(&value.value, Value::SingleQuotedString(it) if it == text) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// The materialized views of a version.
fn materialized_views(version: &DatabaseVersion) -> Result<Vec<(RelationName, UnplannedView)>> {
    let mut found = Vec::new();
    for (name, relation) in version.relations() {
        if let Relation::Table(_) = relation
            && let Some(made) = MaterializedView::find(version, name)?
        {
            found.push((name.clone(), made.view));
        }
    }
    Ok(found)
}

fn full(name: &RelationName) -> ResolvedTableReference {
    let (schema, table) = (Arc::clone(&name.schema), Arc::clone(&name.name));
    ResolvedTableReference { catalog: CATALOG.into(), schema, table }
}

/// The first of the views that reads a dropped object, and that object.
fn next_reader(
    views: &[(ReadingView, Vec<RelationName>)],
    gone: &[RelationName],
) -> Option<(usize, RelationName)> {
    views.iter().enumerate().find_map(|(at, (_, read))| {
        let needed = read.iter().find(|read| gone.contains(read))?;
        Some((at, needed.clone()))
    })
}

impl Session {
    /// Refuses to drop relations that views read; with CASCADE drops these views, with notices.
    ///
    /// # Errors
    /// If there are such views, without CASCADE.
    pub(in crate::session) async fn drop_readers(
        &self,
        planner: &StatementPlanner,
        dropped: &[RelationName],
        cascade: bool,
    ) -> Result<Vec<String>> {
        if dropped.is_empty() {
            return Ok(Vec::new());
        }
        let readers = planner.readers(dropped)?;
        if readers.is_empty() || cascade {
            return self.drop_views(planner, readers).await;
        }
        let what = match dropped {
            [one] => Some(planner.called(one)),
            _ => None,
        };
        Err(needed(what.as_deref(), &readers))
    }

    /// Refuses to drop columns without which these views cannot be planned, now that they are dropped; with CASCADE
    /// drops these views.
    ///
    /// # Errors
    /// If there are such views, without CASCADE.
    pub(in crate::session) async fn drop_readers_of_columns(
        &self,
        planner: &StatementPlanner,
        (table, columns): (&RelationName, &DroppedColumns),
        views: Vec<ReadingView>,
    ) -> Result<Vec<String>> {
        let planner = &self.planner(&planner.transaction, true).await?;
        let mut lost = planner.without_planned(views).await;
        if lost.is_empty() {
            return Ok(Vec::new());
        }
        let table = planner.called(table);
        let what = format!("column {} of {table}", columns.names.join(", "));
        for view in lost.iter_mut().filter(|view| view.reads == table) {
            view.reads.clone_from(&what);
        }
        if !columns.cascade {
            return Err(needed(Some(&what), &lost));
        }
        self.drop_views(planner, lost).await
    }

    pub(in crate::session) async fn drop_views(
        &self,
        planner: &StatementPlanner,
        views: Vec<ReadingView>,
    ) -> Result<Vec<String>> {
        let mut told = Vec::with_capacity(views.len());
        for view in views {
            match view.is_own {
                true => drop(self.catalogs.remove(&view.at)),
                false => planner.define_for(CatalogChange::Drop { name: view.name() }).await?,
            }
            told.push(format!("drop cascades to {} {}", view.word, plain(&view.at)));
        }
        Ok(told)
    }
}

/// The columns that an ALTER TABLE drops.
pub(in crate::session) struct DroppedColumns {
    names: Vec<String>,
    cascade: bool,
}

impl DroppedColumns {
    /// The columns that these operations drop; `None` if they drop none.
    pub(in crate::session) fn from_operations(
        planner: &StatementPlanner,
        operations: &[AlterTableOperation],
    ) -> Option<Self> {
        let mut dropped = Self { names: Vec::new(), cascade: false };
        for operation in operations {
            if let AlterTableOperation::DropColumn { column_names, drop_behavior, .. } = operation {
                dropped.names.extend(column_names.iter().map(|name| planner.normalized(name)));
                dropped.cascade |= *drop_behavior == Some(DropBehavior::Cascade);
            }
        }
        (!dropped.names.is_empty()).then_some(dropped)
    }
}

/// The error for dropping an object with dependent views; `what` is `None` for several objects.
fn needed(what: Option<&str>, views: &[ReadingView]) -> DataFusionError {
    let message = match what {
        Some(what) => format!("cannot drop {what} because other objects depend on it"),
        None => "cannot drop desired object(s) because other objects depend on them".to_owned(),
    };
    let lines: Vec<String> = views.iter().map(ReadingView::line).collect();
    SqlState::DEPENDENT_OBJECTS_STILL_EXIST.detailed(
        message,
        lines.join("\n"),
        "Use DROP ... CASCADE to drop the dependent objects too.",
    )
}
