//! `atoll.sessions`, `atoll.queries`: the sessions of clients, their current and recent statements.

use super::SystemTable;
use super::column::ColumnSpecs;
use crate::activity::{SessionInfo, StatementInfo};
use crate::pg_catalog::SystemCatalog;
use crate::role::sees_all;
use atoll_sql_exec::watch::StatementWait;

/// One row per client session.
pub(super) fn sessions() -> SystemTable {
    ColumnSpecs::<SessionInfo>::new()
        .column("session", |session| session.number)
        .column("user", |session| session.client.user.clone())
        .column("address", |session| session.client.address.clone())
        .column("application", |session| session.client.application.clone())
        .column("begun", |session| Some(session.begun))
        .column("state", |session| if session.is_running { "running" } else { "waiting" })
        .column("since", |session| session.since)
        .column("memory_bytes", |session| session.memory)
        .column("home", |session| session.home.map(|node| node.0))
        .column("node", |session| session.node.map(|node| node.0))
        .column("statement", |session| session.statement.as_ref().map(ToString::to_string))
        .table_of("sessions", |SystemCatalog { database, identity, .. }| {
            let sees_all = sees_all(database, identity);
            let mut sessions = database.activity().sessions();
            for session in &mut sessions {
                if !sees_all && session.client.user != *identity.user {
                    session.statement = None;
                }
            }
            sessions
        })
}

/// One row per running statement, then one for each recent statement that took 10 ms or more.
pub(super) fn queries() -> SystemTable {
    ColumnSpecs::<StatementInfo>::new()
        .column("session", |statement| statement.session)
        .column("user", |statement| statement.user.clone())
        .column("statement", |statement| statement.statement.to_string())
        .column("begun", |statement| Some(statement.begun))
        .column("seconds", |statement| {
            let took = statement.took.or_else(|| statement.begun.elapsed().ok());
            took.unwrap_or_default().as_secs_f64()
        })
        .column("state", |statement| match (statement.took, statement.error) {
            (None, _) if statement.waits == StatementWait::Queue => "queued",
            (None, _) => "running",
            (Some(_), None) => "done",
            (Some(_), Some(_)) => "failed",
        })
        .column("error", |statement| statement.error.map(str::to_owned))
        .column("waits_for", |statement| statement.waits.word().map(str::to_owned))
        .column("rows_read", |statement| statement.figures.rows)
        .column("rows_total", |statement| statement.figures.rows_total)
        .column("bytes_local", |statement| statement.figures.bytes_local)
        .column("bytes_remote", |statement| statement.figures.bytes_remote)
        .column("bytes_total", |statement| statement.figures.bytes_total)
        .column("memory_bytes", |statement| statement.figures.memory)
        .table_of("queries", |SystemCatalog { database, identity, .. }| {
            let sees_all = sees_all(database, identity);
            let mut statements = database.activity().statements();
            statements.retain(|it| sees_all || it.user == *identity.user);
            statements
        })
}
