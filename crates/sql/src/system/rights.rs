//! `atoll.rights`: owners and granted rights.

use super::SystemTable;
use super::column::ColumnSpecs;
use crate::database::Database;
use crate::role::rights::{ObjectRights, Owned, RIGHTS};

/// A right of a role.
struct RightRow {
    object: String,
    role: String,
    right: &'static str,
    may_grant: bool,
}

/// One row per right; the right of an owner is `OWNER`.
pub(super) fn rights() -> SystemTable {
    ColumnSpecs::<RightRow>::new()
        .column("object", |row| row.object.clone())
        .column("role", |row| row.role.clone())
        .column("right", |row| row.right)
        .column("may_grant", |row| row.may_grant)
        .table_of("rights", |system| rows(&system.database))
}

fn rows(database: &Database) -> Vec<RightRow> {
    let version = database.store().published();
    let mut rows = Vec::new();
    for (entry, _) in version.relations_of(RIGHTS) {
        let Some(of) = Owned::of_entry(&entry.name) else { continue };
        let rights = ObjectRights::for_object(&version, &of);
        let object = of.named(&version);
        let row = |role: &str, right, may_grant| {
            let (object, role) = (object.clone(), role.to_owned());
            RightRow { object, role, right, may_grant }
        };
        rows.extend(rights.owner.iter().map(|owner| row(owner, "OWNER", true)));
        for (role, granted) in &rights.grants {
            rows.extend(granted.iter().map(|(right, may)| row(role, right.word(), *may)));
        }
    }
    rows
}
