//! The views of a database in creation order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_store::database::{DatabaseVersion, Relation, RelationName, StoredStatement};
use datafusion::common::{Result, TableReference};
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::resolve::resolve_table_references;
use datafusion::sql::sqlparser::ast::Statement as Ast;

use crate::catalog::{Catalogs, MaterializedView, UnplannedView};
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::names::{NameList, relation_name};

/// Views by name, each with its text and the names that it reads.
type ReadBy = BTreeMap<RelationName, (Arc<StoredStatement>, Vec<RelationName>)>;

/// The views of a version, materialized ones included, each after those that it reads.
pub(in crate::session) fn views_in_order(
    planner: &StatementPlanner,
    version: &DatabaseVersion,
) -> Result<Vec<Arc<StoredStatement>>> {
    let mut views = ReadBy::new();
    for (name, relation) in version.relations() {
        if let Relation::View(text) = relation {
            // A view that cannot be parsed any more is reported when it is created again.
            let view = UnplannedView::from_stored(text);
            let read = view.and_then(|view| names_read(planner, &view, false)).unwrap_or_default();
            views.insert(name.clone(), (Arc::clone(text), read));
        }
        if let Relation::Table(id) = relation
            && let Some(made) = MaterializedView::find(version, name)?
            && let Some(table) = version.table(*id)
        {
            let read = names_read(planner, &made.view, false).unwrap_or_default();
            let full = format!("{}.{}", quoted(&name.schema), quoted(&name.name));
            let text = made.create_text(&full, &table.definition().columns);
            let statement = StoredStatement { sql: text.into(), ..made.view.stored() };
            views.insert(name.clone(), (Arc::new(statement), read));
        }
    }
    let (mut seen, mut ordered) = (BTreeSet::new(), Vec::with_capacity(views.len()));
    for name in views.keys() {
        place(name, &views, &mut seen, &mut ordered);
    }
    Ok(ordered)
}

/// Adds the views that a view reads, and then the view.
fn place<'v>(
    name: &'v RelationName,
    views: &'v ReadBy,
    seen: &mut BTreeSet<&'v RelationName>,
    ordered: &mut Vec<Arc<StoredStatement>>,
) {
    let Some((text, read)) = views.get(name) else { return };
    if !seen.insert(name) {
        return;
    }
    for read in read {
        place(read, views, seen, ordered);
    }
    ordered.push(Arc::clone(text));
}

/// The names in the text of a view, and in the macros that it calls. In a view of the session a name may be that of a
/// temporary table.
pub(in crate::session) fn names_read(
    planner: &StatementPlanner,
    view: &UnplannedView,
    is_own: bool,
) -> Result<Vec<RelationName>> {
    let (mut state, names) = (planner.state.clone(), planner.names_of_views(is_own));
    view.set_options(state.config_mut().options_mut());
    state.register_catalog_list(NameList::new(names.clone()));
    let statement =
        crate::session::statement::parsed_statement::parse(&view.sql, &state)?.statement;
    names_in(planner, &state, &names, query_of(statement))
}

/// The names in a query, and in the macros that it calls, under some settings.
pub(in crate::session) fn names_in(
    planner: &StatementPlanner,
    state: &SessionState,
    names: &Catalogs,
    mut query: Parsed,
) -> Result<Vec<RelationName>> {
    planner.expand_macros(state, &mut query)?;
    let options = state.config_options();
    let normalizes = options.sql_parser.enable_ident_normalization;
    let (read, _) = resolve_table_references(&query, normalizes)?;
    let full = |name: TableReference| relation_name(&names.resolve(name, &options.catalog));
    Ok(read.into_iter().map(full).collect())
}

/// The query of the statement that creates a view.
pub(in crate::session) fn query_of(statement: Parsed) -> Parsed {
    match statement {
        Parsed::Statement(ast) => Parsed::Statement(match *ast {
            Ast::CreateView(create) => Box::new(Ast::Query(create.query)),
            other => Box::new(other),
        }),
        other => other,
    }
}
