//! Arrow Flight SQL: the sessions, roles and rights of PostgreSQL's clients, with rows as Arrow batches over gRPC.
//!
//! ```text
//! listen ──▶ guard ──▶ service ──▶ bound        statements, with the values of their parameters
//! TCP, TLS   log-in    commands    query        rows, once they are fetched
//!                                  prepared     prepared statements
//!                                  transaction  begin, commit, savepoints
//!                                  ingest       batches into a table
//!                                  cancel       cancellation of statements
//!                                  metadata     catalogs, tables, keys, types, capabilities
//!                                  messages     the client's streams, complete or not at all
//! ```
//!
//! A request identifies its log-in by a token, and a connection may carry several log-ins. Each log-in has a session
//! per connection: its settings, temporary tables and views last as long as the connection. Transactions, prepared
//! statements and tickets have random handles; they belong to the log-in that created them and end with their
//! connection, so that a client that disconnects leaves nothing.
//!
//! A query is planned when its ticket is created, and runs when its rows are fetched; a statement that changes
//! something runs at once, since clients that expect no rows fetch none. The query's task reads the engine's batches,
//! cuts and encodes them, and waits whenever the client is a few messages behind. When the client drops the stream, the
//! task and the query end.

mod bound;
mod cancel;
mod connection;
mod guard;
mod handles;
mod ingest;
mod listen;
mod login;
mod messages;
mod metadata;
mod parameters;
mod prepared;
mod query;
mod rows;
mod service;
mod session;
mod status;
mod transaction;
mod watch;

use connection::Connections;
pub(crate) use listen::serve_flight;
use std::convert::Infallible;
use std::sync::Arc;

use crate::log_ins::LogIns;
use crate::shared::Shared;

/// The state that all connections of Flight SQL share.
#[derive(Debug, Default)]
pub(crate) struct FlightState {
    log_ins: LogIns,
    connections: Connections,
}

impl Shared {
    /// The state that all connections of Flight SQL share.
    fn flight(&self) -> Arc<FlightState> {
        let Ok(state) =
            self.extensions.get_or_try_init(|| Ok::<_, Infallible>(FlightState::default()));
        state
    }
}
