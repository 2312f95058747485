//! `atoll.locks`: the locks that transactions hold and wait for.

use std::sync::Arc;

use atoll_store::database::{DatabaseVersion, LockInfo};
use atoll_store::lock::{LockMode, LockTarget};

use super::SystemTable;
use super::column::ColumnSpecs;
use crate::pg_catalog::SystemCatalog;

/// A lock, and the names in it.
struct LockRow {
    lock: LockInfo,
    version: Arc<DatabaseVersion>,
}

impl LockRow {
    /// The schema and the name of its table.
    fn table(&self) -> Option<(String, String)> {
        let name = self.version.table_name(self.lock.entry.target.table()?)?;
        Some((name.schema.to_string(), name.name.to_string()))
    }
}

/// One row per transaction and lock, ordered by the locked object: holders first, then waiters in their order.
pub(super) fn locks() -> SystemTable {
    ColumnSpecs::<LockRow>::new()
        .column("kind", |row| kind(&row.lock.entry.target))
        .column("schema_name", |row| row.table().map(|(schema, _)| schema))
        .column("table_name", |row| row.table().map(|(_, table)| table))
        .column("row", |row| match row.lock.entry.target {
            LockTarget::Row(_, row) => Some(row.get()),
            _ => None,
        })
        .column("mode", |row| match row.lock.entry.mode {
            LockMode::Shared => "shared",
            LockMode::Exclusive => "exclusive",
        })
        .column("granted", |row| row.lock.entry.is_granted)
        .column("transaction", |row| row.lock.entry.transaction.0)
        .column("session", |row| Some(row.lock.session).filter(|session| *session != 0))
        .table_of("locks", |SystemCatalog { database, .. }| {
            let version = database.store().newest();
            let row = |lock| LockRow { lock, version: Arc::clone(&version) };
            database.store().locks().into_iter().map(row).collect()
        })
}

fn kind(target: &LockTarget) -> &'static str {
    match target {
        LockTarget::Commits => "commits",
        LockTarget::Name(_) => "name",
        LockTarget::Sequence(_) | LockTarget::SequenceAhead(_) => "sequence",
        LockTarget::Table(_) => "table",
        LockTarget::Key { .. } => "key",
        LockTarget::Row(..) => "row",
    }
}
