//! The server: clients of one database, over PostgreSQL's protocol.
//!
//! It owns sockets, log-ins, the protocol and the forms of values in it; what statements mean is `sql`'s. It is a
//! crate of its own because it fences off what a network brings: TLS, credentials and bytes of strangers.
//!
//! | folder | what |
//! |---|---|
//! | `server` | listening, many connections on few threads, the end of all |
//! | `tls`, `failures` | certificates, and log-ins that failed |
//! | `rules` | who may try to log in from where, and how |
//! | `log` | messages, slow statements, who did what |
//! | `metrics` | figures and health over HTTP |
//! | `console` | the web page, and what it asks for |
//! | `supervisor` | what systemd is told |
//! | `connection` | one connection: log-in, simple and extended protocol |
//! | `copy` | COPY between a table and a client |
//! | `wire` | messages as bytes |
//! | `value` | values in text and binary form |

#![forbid(unsafe_code)]

mod connection;
mod console;
mod copy;
mod failures;
mod log;
mod metrics;
mod options;
mod rules;
mod server;
mod supervisor;
mod tls;
mod value;
mod wire;

pub use log::{LogFormat, LogLevel, LogOptions, LogTarget, Logs};
pub use options::{ServerError, ServerOptions};
pub use rules::LoginRules;
pub use server::{Reloader, Server};
pub use supervisor::{tell_ready, tell_stopping};
pub use tls::TlsFiles;
