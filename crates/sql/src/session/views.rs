//! The views of a database in an order in which they can be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_store::database::{DatabaseVersion, Relation, RelationName, StoredStatement};
use datafusion::common::{Result, TableReference};
use datafusion::sql::resolve::resolve_table_references;

use super::planner::StatementPlanner;
use crate::catalog::{UnplannedView, relation_name};

/// Views by name, each with its text and the names that it reads.
type ReadBy = BTreeMap<RelationName, (Arc<StoredStatement>, Vec<RelationName>)>;

/// The views of a version, each behind those that it reads.
pub(super) fn views_in_order(
    planner: &StatementPlanner,
    version: &DatabaseVersion,
) -> Result<Vec<Arc<StoredStatement>>> {
    let mut views = ReadBy::new();
    for (name, relation) in version.relations() {
        if let Relation::View(text) = relation {
            // One that cannot be read any more is told of when it is made again.
            let view = UnplannedView::from_stored(text);
            let read = view.and_then(|view| names_read(planner, &view, false)).unwrap_or_default();
            views.insert(name.clone(), (Arc::clone(text), read));
        }
    }
    let (mut seen, mut ordered) = (BTreeSet::new(), Vec::with_capacity(views.len()));
    for name in views.keys() {
        place(name, &views, &mut seen, &mut ordered);
    }
    Ok(ordered)
}

/// Places what a view reads, and then itself.
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

/// The names in the text of a view, with those in the macros that it calls. In one of the session's own a name may be
/// that of a temporary table.
pub(super) fn names_read(
    planner: &StatementPlanner,
    view: &UnplannedView,
    is_own: bool,
) -> Result<Vec<RelationName>> {
    let mut state = planner.state.clone();
    view.set_options(state.config_mut().options_mut());
    let mut statement = super::statement::parse(&view.sql, &state)?.statement;
    planner.expand_macros(&state, &mut statement)?;
    let options = state.config_options();
    let normalizes = options.sql_parser.enable_ident_normalization;
    let (names, _) = resolve_table_references(&statement, normalizes)?;
    let of = &options.catalog;
    let full = |name: TableReference| match is_own {
        true => planner.names.resolve(name, of),
        false => name.resolve(&of.default_catalog, &of.default_schema),
    };
    Ok(names.into_iter().map(|name| relation_name(&full(name))).collect())
}
