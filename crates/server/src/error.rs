//! Why a server does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use atoll_formats::FormatError;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An address or a socket is taken, or not ours.
    #[error("cannot listen on {at}: {error}")]
    NotListening {
        /// The address or path.
        at: String,
        /// What the operating system says.
        error: io::Error,
    },
    /// An address that other machines reach, in the clear.
    #[error(
        "{0} can be reached from other machines, where passwords and rows would pass in the clear; give a \
         certificate and its key and require TLS, listen on 127.0.0.1 or ::1, or say --insecure-listen"
    )]
    InClear(SocketAddr),
    /// An address of the console and the figures that other machines reach.
    #[error(
        "{0} can be reached from other machines, and HTTP is not encrypted; listen on 127.0.0.1 or ::1 and come by ssh -L, \
         or say --insecure-listen"
    )]
    HttpInClear(SocketAddr),
    /// An address that other machines reach, without a password.
    #[error(
        "{0} can be reached from other machines, and --insecure-no-password lets everyone in; listen on 127.0.0.1 or ::1"
    )]
    NoPassword(SocketAddr),
    /// A certificate or key that cannot be used.
    #[error("TLS cannot be used: {}: {error}", .path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: String,
    },
    /// Rules that do not fit the server.
    #[error("{0}")]
    Rules(#[from] FormatError),
    /// A log that cannot be opened.
    #[error("{} cannot be opened as a log: {error}", .path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// No collector of traces.
    #[error(
        "'{0}' is not the URL of a collector; expected http://host:port or https://host:port, as http://127.0.0.1:4318"
    )]
    Collector(String),
    /// A collector that cannot be reached over TLS.
    #[error("TLS to the collector cannot be used: {0}; name a file of certificates with --otlp-ca")]
    CollectorTls(String),
    /// The kernel gave no random numbers.
    #[error("cannot generate random numbers: {0}")]
    Random(String),
}
