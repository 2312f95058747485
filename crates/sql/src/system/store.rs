//! `atoll.database`, `atoll.snapshots`: the stored data, its durability, and readers of old versions.

use atoll_store::database::{Isolation, SnapshotInfo};

use super::SystemTable;
use super::column::ColumnSpecs;
use crate::database::Database;
use crate::pg_catalog::SystemCatalog;
use atoll_sql_common::settings::durability_name;

/// One row: the database of the session.
pub(super) fn database() -> SystemTable {
    ColumnSpecs::<Database>::new()
        .column("directory", |database| database.directory().map(|path| path.display().to_string()))
        .column("durability", |database| durability_name(database.store().durability()))
        .column("statements", |database| database.activity().finished())
        .column("commits", |database| database.store().newest().epoch().get())
        .column("log_bytes", |database| database.store().newest().position().0)
        .column("synced_bytes", |database| database.store().synced().0)
        .column("checkpoint_bytes", |database| database.checkpoint_position())
        .column("locks", |database| database.store().locked() as u64)
        .table_of("database", |system| vec![system.database.clone()])
}

/// One row per open transaction.
pub(super) fn snapshots() -> SystemTable {
    ColumnSpecs::<(SnapshotInfo, f64)>::new()
        .column("transaction", |(snapshot, _)| snapshot.transaction.0)
        .column("isolation", |(snapshot, _)| isolation(snapshot.isolation))
        .column("read_only", |(snapshot, _)| snapshot.read_only)
        .column("age_seconds", |(_, age)| *age)
        .column("commits_seen", |(snapshot, _)| snapshot.epoch.map(|epoch| epoch.get()))
        .column("held_bytes", |(snapshot, _)| snapshot.held_bytes as u64)
        .table_of("snapshots", |SystemCatalog { database, .. }| {
            let age = database.age();
            let snapshots = database.store().snapshots().into_iter();
            let aged = snapshots.map(|snapshot| {
                let seconds = age.saturating_sub(snapshot.begun).as_secs_f64();
                (snapshot, seconds)
            });
            aged.collect()
        })
}

fn isolation(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadCommitted => "read committed",
        Isolation::RepeatableRead => "repeatable read",
        Isolation::Serializable => "serializable",
    }
}
