//! Transactions, each in its own session, next to statements in autocommit mode.

use std::sync::Arc;

use atoll_sql::SqlError;
use bytes::Bytes;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::handles::parts;
use super::login::Caller;
use super::session::FlightSession;
use crate::connection::Control;
use crate::error_fields::error_fields;
use crate::shared::Shared;
use crate::wire::ErrorFields;

/// Bytes of a transaction's handle.
const HANDLE: usize = 24;

/// Numbers of `EndTransaction`.
const COMMIT: i32 = 1;
const ROLLBACK: i32 = 2;

/// Numbers of `EndSavepoint`.
const RELEASE: i32 = 1;
const ROLLBACK_TO: i32 = 2;

/// A client's transaction. Dropping the last reference rolls it back unless it was committed.
pub(super) struct FlightTransaction {
    pub(super) session: Arc<FlightSession>,
    /// Stops the task that watches it.
    _over: DropGuard,
}

/// Begins a transaction; returns its handle.
pub(super) async fn begin(server: &Arc<Shared>, caller: &Caller) -> Result<Bytes, ErrorFields> {
    let session = caller.session(server)?.transaction()?;
    run(&session, "BEGIN").await?;
    let over = CancellationToken::new();
    let _over = over.clone().drop_guard();
    let transaction = Arc::new(FlightTransaction { session: Arc::clone(&session), _over });
    let connection = Arc::clone(&caller.connection);
    let handle = connection.transactions.keep(caller.key, None, transaction)?;
    if let Some((_, secret)) = parts(&handle) {
        session.watch_transaction(over, move || connection.transactions.forget(&secret));
    }
    Ok(handle)
}

/// Refuses BEGIN, COMMIT and the like: a client may have several transactions at a time, and names each by its handle.
pub(super) fn refuse_control(sql: &str) -> Result<(), ErrorFields> {
    if Control::from_sql(sql) == Control::None {
        return Ok(());
    }
    let message = "transaction statements are not supported over Flight SQL";
    let hint =
        "use BeginTransaction and EndTransaction, as drivers do when autocommit is switched off";
    Err(ErrorFields::error("0A000", message).hint(hint))
}

/// The transaction with a handle.
pub(super) fn find(
    server: &Shared,
    caller: &Caller,
    handle: &[u8],
) -> Result<Arc<FlightTransaction>, ErrorFields> {
    let found = server.flight().connections.of_handle(handle);
    let found = found.and_then(|(on, secret)| on.transactions.get(&caller.key, &secret));
    found.ok_or_else(unknown)
}

/// The session for a statement: that of the named transaction, or else that of the log-in.
pub(super) fn session_of(
    server: &Arc<Shared>,
    caller: &Caller,
    handle: Option<&Bytes>,
) -> Result<Arc<FlightSession>, ErrorFields> {
    match handle.filter(|handle| !handle.is_empty()) {
        Some(handle) => Ok(Arc::clone(&find(server, caller, handle)?.session)),
        None => caller.session(server),
    }
}

/// Ends a transaction. One with a failed statement cannot be committed.
pub(super) async fn end(
    server: &Shared,
    caller: &Caller,
    handle: &[u8],
    action: i32,
) -> Result<(), ErrorFields> {
    let sql = match action {
        COMMIT => "COMMIT",
        ROLLBACK => "ROLLBACK",
        _ => return Err(ErrorFields::error("22023", "expected commit or rollback")),
    };
    let found = server.flight().connections.of_handle(handle);
    let taken = found.and_then(|(on, secret)| on.transactions.take(&caller.key, &secret));
    let transaction = taken.ok_or_else(unknown)?;
    let tag = run(&transaction.session, sql).await?;
    if tag != sql {
        let message = "the transaction was rolled back because one of its statements failed";
        return Err(ErrorFields::error("25P02", message));
    }
    Ok(())
}

/// Sets a named savepoint; returns its handle.
pub(super) async fn begin_savepoint(
    server: &Shared,
    caller: &Caller,
    handle: &[u8],
    name: &str,
) -> Result<Bytes, ErrorFields> {
    let transaction = find(server, caller, handle)?;
    run(&transaction.session, &format!("SAVEPOINT {}", quoted(name))).await?;
    Ok([handle, name.as_bytes()].concat().into())
}

/// Releases a savepoint, or rolls back to it.
pub(super) async fn end_savepoint(
    server: &Shared,
    caller: &Caller,
    handle: &[u8],
    action: i32,
) -> Result<(), ErrorFields> {
    let words = match action {
        RELEASE => "RELEASE SAVEPOINT",
        ROLLBACK_TO => "ROLLBACK TO SAVEPOINT",
        _ => return Err(ErrorFields::error("22023", "expected release or rollback")),
    };
    let (handle, name) = handle.split_at_checked(HANDLE).ok_or_else(unknown)?;
    let name = std::str::from_utf8(name).map_err(|_| unknown())?;
    let transaction = find(server, caller, handle)?;
    run(&transaction.session, &format!("{words} {}", quoted(name))).await?;
    Ok(())
}

/// Runs a transaction control statement; returns its tag.
async fn run(session: &Arc<FlightSession>, sql: &str) -> Result<String, ErrorFields> {
    let running = session.begin(sql)?;
    let failed = |error: SqlError| error_fields(&error, sql, 0);
    let ran = async { session.engine.run(sql).await.map(|done| done.tag()).map_err(failed) };
    running.finish(ran).await
}

/// A quoted identifier.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn unknown() -> ErrorFields {
    let message = "the transaction does not exist";
    let hint = "it may have ended, timed out, or belong to another log-in or connection";
    ErrorFields::error("25P01", message).hint(hint)
}
