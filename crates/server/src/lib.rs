//! The server: clients of one database, over PostgreSQL's protocol and Arrow Flight SQL.
//!
//! It owns sockets, log-ins, the protocols and the forms of values in them; what statements mean is `sql`'s. It is a
//! crate of its own because it fences off what a network brings: TLS, credentials and bytes of strangers.
//!
//! | folder | what |
//! |---|---|
//! | `server` | listening, many connections on few threads, the end of all |
//! | `shared` | what all connections have in common |
//! | `tls`, `log_ins`, `failures` | certificates, log-ins by a token, and log-ins that failed |
//! | `rules` | who may try to log in from where, and how |
//! | `log` | messages, slow statements, who did what |
//! | `metrics`, `http` | figures and health over HTTP |
//! | `traces` | spans of statements for a collector of OpenTelemetry |
//! | `console` | the web page, and what it asks for |
//! | `supervisor` | what systemd is told |
//! | `homes` | threads of nodes, for sessions that have a home |
//! | `connection` | one connection: log-in, simple and extended protocol |
//! | `flight` | Arrow Flight SQL: the same sessions, with rows as Arrow batches |
//! | `copy` | COPY between a table and a client |
//! | `insertion` | batches of a client on their way into a table |
//! | `wire` | messages as bytes |
//! | `value` | values in text and binary form |

#![forbid(unsafe_code)]

mod connection;
mod console;
mod copy;
mod error;
mod error_fields;
mod failures;
mod flight;
mod homes;
#[cfg(test)]
mod hostile_tests;
mod http;
mod insertion;
mod log;
mod log_ins;
mod metrics;
mod options;
mod rules;
mod server;
mod shared;
mod supervisor;
mod tls;
mod traces;
mod value;
mod wire;

pub use error::ServerError;
pub use log::{LogFormat, LogLevel, LogOptions, LogTarget, Logs};
pub use options::ServerOptions;
pub use rules::LoginRules;
pub use server::{Reloader, Server};
pub use supervisor::{tell_ready, tell_stopping};
pub use tls::TlsFiles;
pub use traces::Collector;
