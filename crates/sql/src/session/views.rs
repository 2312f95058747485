//! The views of a database in an order in which they can be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_store::database::{DatabaseVersion, Relation, RelationName, StoredStatement};
use datafusion::common::Result;
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
            let read = names_read(planner, text).unwrap_or_default();
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

/// The names in the text of a view, with those in the macros that it calls.
fn names_read(planner: &StatementPlanner, text: &StoredStatement) -> Result<Vec<RelationName>> {
    let view = UnplannedView::from_stored(text)?;
    let mut state = planner.state.clone();
    view.set_options(state.config_mut().options_mut());
    let mut statement = super::statement::parse(&view.sql, &state)?.statement;
    planner.expand_macros(&state, &mut statement)?;
    let options = state.config_options();
    let normalizes = options.sql_parser.enable_ident_normalization;
    let (names, _) = resolve_table_references(&statement, normalizes)?;
    let of = &options.catalog;
    let names = names.into_iter().map(|name| name.resolve(&of.default_catalog, &of.default_schema));
    Ok(names.map(|name| relation_name(&name)).collect())
}
