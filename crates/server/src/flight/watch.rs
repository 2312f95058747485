//! What ends sessions and transactions whose clients wait.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::login::Caller;
use super::session::FlightSession;
use crate::log::AuditEvent;

/// Ends a session when an administrator does, until its connection has ended; then it is told that it has.
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

/// Ends a transaction when its client lets it wait for too long, when an administrator ends it, or with its session;
/// `over` is raised once there is nothing to watch. What it changed is undone with its last reference.
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
