//! Arrow Flight SQL: the sessions, roles and rights of PostgreSQL's clients, with rows as Arrow batches over gRPC.
//!
//! ```text
//! listen ──▶ guard ──▶ service ──▶ bound        statements, with the values of their parameters
//! TCP, TLS   log-in    commands    query        rows, once they are fetched
//!                                  prepared     statements that are kept
//!                                  transaction  begin, commit, savepoints
//!                                  ingest       batches into a table
//!                                  cancel       statements that are no longer wanted
//!                                  metadata     catalogs, tables, keys, types, what the server can do
//!                                  messages     what clients stream, whole or not at all
//! ```
//!
//! A request names its log-in by a token, and a connection may carry several log-ins. A session is that of a log-in over
//! a connection: its settings and temporary tables and views last as long as the connection. Transactions, prepared statements and
//! tickets are known by random handles; they belong to the log-in that made them and end with the connection over which
//! they were made, so that nothing is left of a client that is gone.
//!
//! A query is planned when its ticket is made, and runs when its rows are fetched; what changes something is carried out
//! at once, since clients that expect no rows fetch none. A task of the query reads the engine's batches, cuts and
//! encodes them, and waits for the client whenever a few messages are ahead of it. It ends, and the query with it, when
//! the client drops the stream.

mod bound;
mod cancel;
mod connection;
mod guard;
mod handles;
mod info;
mod ingest;
mod keys;
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
mod types;
mod watch;

use connection::Connections;
pub(crate) use listen::serve_flight;
use std::convert::Infallible;
use std::sync::Arc;

use crate::log_ins::LogIns;
use crate::shared::Shared;

/// What all connections of Flight SQL have in common.
#[derive(Debug, Default)]
pub(crate) struct FlightState {
    log_ins: LogIns,
    connections: Connections,
}

impl Shared {
    /// What all connections of Flight SQL have in common.
    fn flight(&self) -> Arc<FlightState> {
        let Ok(state) =
            self.extensions.get_or_try_init(|| Ok::<_, Infallible>(FlightState::default()));
        state
    }
}
