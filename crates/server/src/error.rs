//! Why a server does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use atoll_formats::FormatError;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An address or socket is taken or not accessible.
    #[error("cannot listen on {at}: {error}")]
    NotListening {
        /// The address or path.
        at: String,
        /// The operating system's error.
        error: io::Error,
    },
    /// An unencrypted address that other machines can reach.
    #[error(
        "{0} can be reached from other machines, and passwords and rows would be sent unencrypted; configure \
         a certificate and its key and require TLS, listen on 127.0.0.1 or ::1, or use --insecure-listen"
    )]
    InClear(SocketAddr),
    /// An HTTP address that other machines can reach.
    #[error(
        "{0} can be reached from other machines, and HTTP is not encrypted; listen on 127.0.0.1 or ::1 and connect \
         through ssh -L, or use --insecure-listen"
    )]
    HttpInClear(SocketAddr),
    /// A passwordless address that other machines can reach.
    #[error(
        "{0} can be reached from other machines, and --insecure-no-password admits every client; listen on 127.0.0.1 or ::1"
    )]
    NoPassword(SocketAddr),
    /// A certificate or key that cannot be used.
    #[error("cannot set up TLS: {}: {error}", .path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: String,
    },
    /// Login rules that do not fit the server's options.
    #[error("{0}")]
    Rules(#[from] FormatError),
    /// A log that cannot be opened.
    #[error("cannot open log {}: {error}", .path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// An invalid collector URL.
    #[error(
        "'{0}' is not a collector URL; expected http://host:port or https://host:port, such as http://127.0.0.1:4318"
    )]
    Collector(String),
    /// TLS to the collector cannot be set up.
    #[error("cannot set up TLS to the collector: {0}; specify a certificate file with --otlp-ca")]
    CollectorTls(String),
    /// The kernel returned no random numbers.
    #[error("cannot generate random numbers: {0}")]
    Random(String),
}
