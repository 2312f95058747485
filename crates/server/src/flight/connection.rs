//! A client's connection and the objects created over it, which end with the connection.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

use super::handles::{Handles, Secret, parts};
use super::prepared::FlightPrepared;
use super::query::Waiting;
use super::session::FlightSession;
use super::transaction::FlightTransaction;
use crate::log_ins::LogInKey;
use crate::shared::Shared;
use crate::wire::ErrorFields;

/// Pending and prepared statements of a connection, at most.
const STATEMENTS_MAX: usize = 1000;

/// Transactions of a connection, at most.
const TRANSACTIONS_MAX: usize = 100;

/// Log-ins over one connection, at most: a proxy may carry several clients over it.
const LOG_INS_MAX: usize = 100;

/// The open connections, by their numbers.
#[derive(Default)]
pub(super) struct Connections {
    last: AtomicU64,
    open: Mutex<HashMap<u64, Arc<FlightConnection>>>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connections")
    }
}

/// A connection.
pub(super) struct FlightConnection {
    number: u64,
    pub(super) address: SocketAddr,
    pub(super) is_encrypted: bool,
    /// Cancelled when the connection is to end, or has ended.
    pub(super) ended: CancellationToken,
    admission: Mutex<Admission>,
    /// Requests in progress.
    requests: watch::Sender<usize>,
    sessions: Mutex<HashMap<LogInKey, Arc<FlightSession>>>,
    pub(super) tickets: Handles<Waiting>,
    /// Statements whose rows are being fetched, by the secrets of their tickets.
    pub(super) running: Handles<CancellationToken>,
    pub(super) prepared: Handles<Arc<FlightPrepared>>,
    pub(super) transactions: Handles<Arc<FlightTransaction>>,
}

/// A request in progress.
pub(super) struct OpenRequest(Arc<FlightConnection>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.requests.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// How a connection is counted.
enum Admission {
    /// Before its first log-in.
    Stranger { _place: OwnedSemaphorePermit },
    /// As one of the server's connections.
    Client { _place: OwnedSemaphorePermit },
}

impl Connections {
    /// Registers a new connection; `ended` is cancelled when it is to end.
    pub(super) fn enter(
        &self,
        (address, is_encrypted): (SocketAddr, bool),
        stranger: OwnedSemaphorePermit,
        ended: CancellationToken,
    ) -> Arc<FlightConnection> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(FlightConnection {
            number,
            address,
            is_encrypted,
            ended,
            admission: Mutex::new(Admission::Stranger { _place: stranger }),
            requests: watch::Sender::new(0),
            sessions: Mutex::default(),
            tickets: Handles::new(number, "tickets", STATEMENTS_MAX),
            running: Handles::new(number, "statements", STATEMENTS_MAX),
            prepared: Handles::new(number, "prepared statements", STATEMENTS_MAX),
            transactions: Handles::new(number, "transactions", TRANSACTIONS_MAX),
        });
        self.open.lock().insert(number, Arc::clone(&connection));
        connection
    }

    /// Unregisters the connection and drops everything created over it.
    pub(super) fn leave(&self, connection: &FlightConnection) {
        self.open.lock().remove(&connection.number);
        connection.ended.cancel();
        connection.tickets.clear();
        connection.running.clear();
        connection.prepared.clear();
        connection.transactions.clear();
        let sessions = std::mem::take(&mut *connection.sessions.lock());
        drop(sessions);
    }

    /// The connection over which a handle was created, and the handle's secret.
    pub(super) fn of_handle(&self, handle: &[u8]) -> Option<(Arc<FlightConnection>, Secret)> {
        let (number, secret) = parts(handle)?;
        let connection = self.open.lock().get(&number).cloned()?;
        Some((connection, secret))
    }
}

impl FlightConnection {
    /// Whether no client has logged in over it.
    pub(super) fn is_stranger(&self) -> bool {
        matches!(*self.admission.lock(), Admission::Stranger { .. })
    }

    /// Counts the connection as one of the server's after its first log-in.
    pub(super) fn admit(&self, server: &Shared) -> Result<(), ErrorFields> {
        let mut admission = self.admission.lock();
        if matches!(*admission, Admission::Stranger { .. }) {
            let place = Arc::clone(&server.places).try_acquire_owned();
            let full = |_| ErrorFields::error("53300", "too many connections");
            *admission = Admission::Client { _place: place.map_err(full)? };
        }
        Ok(())
    }

    /// Counts a request.
    pub(super) fn request(self: &Arc<Self>) -> OpenRequest {
        self.requests.send_modify(|count| *count += 1);
        OpenRequest(Arc::clone(self))
    }

    /// Waits until all requests are answered.
    pub(super) async fn answered(&self) {
        // The sender belongs to this connection.
        let _ = self.requests.subscribe().wait_for(|count| *count == 0).await;
    }

    /// The session of a log-in over this connection; `open` creates it if there is none.
    pub(super) fn session(
        &self,
        of: LogInKey,
        open: impl FnOnce() -> Result<Arc<FlightSession>, ErrorFields>,
    ) -> Result<Arc<FlightSession>, ErrorFields> {
        let mut sessions = self.sessions.lock();
        if let Some(session) = sessions.get(&of) {
            return Ok(Arc::clone(session));
        }
        if sessions.len() >= LOG_INS_MAX {
            let message = format!("the connection already has {LOG_INS_MAX} log-ins");
            return Err(ErrorFields::error("53300", message).hint("open another connection"));
        }
        let session = open()?;
        sessions.insert(of, Arc::clone(&session));
        Ok(session)
    }

    /// Ends the session of a log-in; its next statement opens another one.
    pub(super) fn end_session(&self, of: &LogInKey) {
        let ended = self.sessions.lock().remove(of);
        drop(ended);
    }
}
