//! The server: clients of one database, over PostgreSQL's protocol and Arrow Flight SQL.
//!
//! It owns sockets, log-ins, the protocols and their value formats; `sql` defines what statements mean. It is a
//! separate crate to isolate what a network brings: TLS, credentials and untrusted bytes.
//!
//! | folder | what |
//! |---|---|
//! | `server` | listening, many connections on few threads, shutdown |
//! | `shared` | the state that all connections share |
//! | `tls`, `log_ins`, `failures` | certificates, token-based log-ins, failed log-ins |
//! | `rules` | who may log in from where, by which method |
//! | `log` | messages, slow statements, the audit log |
//! | `metrics`, `http` | metrics and health checks over HTTP |
//! | `traces` | spans of statements for an OpenTelemetry collector |
//! | `console` | the web page and its API |
//! | `supervisor` | notifications to systemd |
//! | `homes` | threads of nodes, for sessions that have a home |
//! | `connection` | one connection: log-in, simple and extended protocol |
//! | `flight` | Arrow Flight SQL: the same sessions, with rows as Arrow batches |
//! | `copy` | COPY between a table and a client |
//! | `insertion` | a client's batches inserted into a table |
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
