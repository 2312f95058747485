//! Ends sessions and idle transactions.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::login::Caller;
use super::session::FlightSession;
use crate::log::AuditEvent;

/// Ends a session if an administrator terminates it; stops when its connection has ended.
pub(super) async fn watch_session(session: Arc<FlightSession>, caller: Caller) {
    let begun = Instant::now();
    tokio::select! {
        () = session.active.terminated() => {
            session.ended.cancel();
            caller.connection.end_session(&caller.key);
        }
        () = session.ended.cancelled() => {}
    }
    session.audit(&AuditEvent::LogOut { after: Some(begun.elapsed()) });
}

/// Ends a transaction that is idle for too long, that an administrator terminates, or whose session ends; `over` stops
/// the watch. Dropping the last reference rolls it back.
pub(super) async fn watch_transaction(
    session: Arc<FlightSession>,
    over: CancellationToken,
    forget: impl FnOnce(),
) {
    tokio::select! {
        () = over.cancelled() => return,
        () = session.active.terminated() => {}
        () = session.idle_too_long() => {}
        () = session.ended.cancelled() => {}
    }
    session.ended.cancel();
    forget();
}
