//! Foreign keys affected by altering columns and keys that they consist of or refer to.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_store::table::ForeignKey;
use datafusion::arrow::datatypes::Field;
use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{AlterTableOperation, DropBehavior};

use super::altered::AlteredTable;
use crate::session::ddl::foreign_key::ForeignKeys;
use crate::session::plan::planner::StatementPlanner;
use crate::table::PlacedTable;
use atoll_sql_common::error::stated_err;

/// Refuses changes that foreign keys prevent; with CASCADE, foreign keys that refer to dropped keys are dropped: the
/// table's own at once, those of other tables are returned.
pub(super) fn release_keys(
    planner: &StatementPlanner,
    table: &PlacedTable,
    altered: &mut AlteredTable,
    operations: &[AlterTableOperation],
) -> Result<ForeignKeys> {
    let version = planner.names.stored_version();
    let cascade = operations.iter().any(cascades);
    let mut released = ForeignKeys::new();
    refuse_types(table, altered, table.definition().foreign_keys.iter(), |key| &key.columns)?;
    for (child, stored, key) in version.references_to(table.id()) {
        refuse_types(table, altered, std::iter::once(key), |key| &key.parent_columns)?;
        let own = altered.foreign_keys.iter().any(|own| own.key.name == key.name);
        if child == table.id() && !own {
            continue;
        }
        let fields = table.definition().columns.fields();
        let name = |at: &usize| Some(altered.place_of(fields.get(*at)?.name())?.1);
        let now: Option<Vec<&str>> = key.parent_columns.iter().map(name).collect();
        if now.is_some_and(|now| altered.has_key(&now)) {
            continue;
        }
        if !cascade {
            return stated_err!(
                DEPENDENT_OBJECTS_STILL_EXIST,
                "cannot drop a key of table '{}' because the foreign key '{}' of table '{}' refers to it; use \
                 CASCADE to drop that too",
                table.name(),
                key.name,
                stored.name()
            );
        }
        match child == table.id() {
            true => altered.foreign_keys.retain(|own| own.key.name != key.name),
            false => drop(released.entry(child).or_default().insert(Arc::clone(&key.name))),
        }
    }
    Ok(released)
}

fn cascades(operation: &AlterTableOperation) -> bool {
    use AlterTableOperation as Op;
    let (Op::DropColumn { drop_behavior, .. } | Op::DropConstraint { drop_behavior, .. }) =
        operation
    else {
        return false;
    };
    *drop_behavior == Some(DropBehavior::Cascade)
}

/// Refuses to change the types of columns in foreign keys: their values might compare differently.
fn refuse_types<'k>(
    table: &PlacedTable,
    altered: &AlteredTable,
    keys: impl Iterator<Item = &'k ForeignKey>,
    columns: impl Fn(&'k ForeignKey) -> &'k [usize],
) -> Result<()> {
    let fields = table.definition().columns.fields();
    for key in keys {
        let mut names = columns(key).iter().filter_map(|at| Some(fields.get(*at)?.name()));
        if let Some(name) = names.find(|name| altered.retyped.contains(name)) {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "the type of column '{name}' cannot be altered while the foreign key '{}' compares it; drop that first",
                key.name
            );
        }
    }
    Ok(())
}

/// The old and the new number of each remaining column whose number changes.
pub(super) fn new_numbers(table: &PlacedTable, altered: &AlteredTable) -> BTreeMap<usize, usize> {
    let fields = table.definition().columns.fields().iter().enumerate();
    let place = |(at, field): (usize, &Arc<Field>)| {
        let (now, _) = altered.place_of(field.name())?;
        (now != at).then_some((at, now))
    };
    fields.filter_map(place).collect()
}
