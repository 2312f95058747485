//! The database, its settings, and who is connected.

use atoll_store::database::LockInfo;
use atoll_store::lock::{LockMode, LockTarget};

use super::DATABASE_NAME;
use super::roles::role_oid;
use crate::pg_catalog::SystemCatalog;
use crate::pg_catalog::oid::{DATABASE, OWNER, Oid, OidSpace};
use crate::pg_catalog::rows::{Datum, Rows};
use crate::role::sees_all;

/// Where tables are.
const TABLESPACE: Oid = 1663;

pub(super) fn databases(rows: &mut Rows) {
    rows.add([
        ("oid", DATABASE.into()),
        ("datname", DATABASE_NAME.into()),
        ("datdba", OWNER.into()),
        ("encoding", 6_i64.into()),
        ("datlocprovider", "c".into()),
        ("datallowconn", true.into()),
        ("datconnlimit", (-1_i64).into()),
        ("dattablespace", TABLESPACE.into()),
        ("datcollate", "C.UTF-8".into()),
        ("datctype", "C.UTF-8".into()),
    ]);
}

pub(super) fn tablespaces(rows: &mut Rows) {
    for (oid, name) in [(TABLESPACE, "pg_default"), (1664, "pg_global")] {
        rows.add([("oid", oid.into()), ("spcname", name.into()), ("spcowner", OWNER.into())]);
    }
}

pub(super) fn settings(system: &SystemCatalog, rows: &mut Rows) {
    for setting in system.settings.all() {
        rows.add([
            ("name", setting.name.into()),
            ("setting", setting.value.as_str().into()),
            ("unit", setting.unit.map(str::to_owned).into()),
            ("category", "Client settings".into()),
            ("short_desc", "".into()),
            ("context", if setting.is_fixed { "internal" } else { "user" }.into()),
            ("vartype", setting.value_type.into()),
            ("source", if setting.value == setting.first { "default" } else { "session" }.into()),
            ("boot_val", setting.first.as_str().into()),
            ("reset_val", setting.first.as_str().into()),
        ]);
    }
}

/// The statements that the session has prepared with PREPARE. Each of their runs is planned if its cached plan does not fit.
pub(super) fn prepared_statements(system: &SystemCatalog, rows: &mut Rows) {
    for statement in system.prepared.rows() {
        rows.add([
            ("name", statement.name.into()),
            ("statement", statement.statement.into()),
            ("prepare_time", statement.since.into()),
            ("parameter_types", statement.types.into_iter().collect()),
            ("from_sql", statement.from_sql.into()),
            ("generic_plans", 0_i64.into()),
            ("custom_plans", 0_i64.into()),
        ]);
    }
}

/// Sessions of clients. Only superusers and members of `pg_monitor` see the statements of other users.
pub(super) fn activity(system: &SystemCatalog, rows: &mut Rows) {
    let sees_all = sees_all(&system.database, &system.identity);
    for session in system.database.activity().sessions() {
        let is_seen = sees_all || *session.client.user == *system.identity.user;
        let statement = session.statement.as_ref().filter(|_| is_seen);
        let since: Datum = session.since.into();
        let address = session.client.address.rsplit_once(':').map(|(host, _)| host.to_owned());
        rows.add([
            ("datid", DATABASE.into()),
            ("datname", DATABASE_NAME.into()),
            ("pid", i64::from(session.number).into()),
            ("usesysid", role_oid(&session.client.user).into()),
            ("usename", session.client.user.as_str().into()),
            ("application_name", session.client.application.as_str().into()),
            ("client_addr", address.into()),
            ("backend_start", session.begun.into()),
            ("query_start", since.clone()),
            ("state_change", since),
            ("state", if session.is_running { "active" } else { "idle" }.into()),
            ("query", statement.into()),
            ("backend_type", "client backend".into()),
        ]);
    }
}

/// Locks of transactions, in PostgreSQL's words: shared ones for tables that are written to, exclusive ones for altered
/// tables.
pub(super) fn locks(system: &SystemCatalog, rows: &mut Rows) {
    for LockInfo { entry, session } in system.database.store().locks() {
        let relation = entry.target.table().map(|id| OidSpace::Table.numbered(id.get()));
        let (kind, mode) = match (entry.target, entry.mode) {
            (LockTarget::Table(_), LockMode::Shared) => ("relation", "RowExclusiveLock"),
            (LockTarget::Table(_), LockMode::Exclusive) => ("relation", "AccessExclusiveLock"),
            (LockTarget::Row(..), LockMode::Shared) => ("tuple", "RowShareLock"),
            (LockTarget::Row(..), LockMode::Exclusive) => ("tuple", "ExclusiveLock"),
            (_, LockMode::Shared) => ("object", "ShareLock"),
            (_, LockMode::Exclusive) => ("object", "ExclusiveLock"),
        };
        rows.add([
            ("locktype", kind.into()),
            ("database", DATABASE.into()),
            ("relation", relation.into()),
            ("virtualtransaction", entry.transaction.to_string().as_str().into()),
            ("pid", i64::from(session).into()),
            ("mode", mode.into()),
            ("granted", entry.is_granted.into()),
        ]);
    }
}

/// Prepared transactions, numbered in the order of their names: the store has no number for them that stays.
pub(super) fn prepared_transactions(system: &SystemCatalog, rows: &mut Rows) {
    for (number, (name, prepared)) in system.database.store().published().prepared().enumerate() {
        rows.add([
            ("transaction", (number + 1).into()),
            ("gid", name.into()),
            ("prepared", prepared.prepared_at.into()),
            ("owner", (&prepared.owner).into()),
            ("database", DATABASE_NAME.into()),
        ]);
    }
}

pub(super) fn database_statistics(system: &SystemCatalog, rows: &mut Rows) {
    rows.add([
        ("datid", DATABASE.into()),
        ("datname", DATABASE_NAME.into()),
        ("numbackends", system.database.activity().sessions().len().into()),
    ]);
}
