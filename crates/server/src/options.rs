//! How a server is set up, and why one does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use atoll_formats::FormatError;

use crate::log::LogOptions;
use crate::rules::LoginRules;
use crate::tls::TlsFiles;
use crate::traces::Collector;

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Addresses that it listens on; port 0 is any that is free.
    pub listen: Vec<SocketAddr>,
    /// Directory of the Unix socket `.s.PGSQL.port`, as PostgreSQL's clients look for it.
    pub socket_directory: Option<PathBuf>,
    /// Address for clients of Arrow Flight SQL; none without.
    pub flight: Option<SocketAddr>,
    /// Address for the console, figures and health over HTTP; none without. The console is on loopback only.
    pub http: Option<SocketAddr>,
    /// TLS over TCP; none without.
    pub tls: Option<TlsFiles>,
    /// Whether connections over TCP have to use it.
    pub tls_required: bool,
    /// Whether all are let in without a password, and may do everything.
    pub trusts_all: bool,
    /// Whether it may listen beyond loopback without TLS.
    pub listens_in_clear: bool,
    /// Who may try to log in, and how; without, those over the Unix socket by their users of the operating system, and
    /// everyone by password.
    pub rules: Option<LoginRules>,
    /// What is logged, and where.
    pub logs: LogOptions,
    /// Where spans of statements are sent; nowhere without.
    pub collector: Option<Collector>,
    /// Connections at the same time.
    pub connections_max: usize,
    /// How long a log-in may take.
    pub login_timeout: Duration,
    /// How long statements that run may go on when the server stops.
    pub stop_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            socket_directory: None,
            flight: None,
            http: None,
            tls: None,
            tls_required: false,
            trusts_all: false,
            listens_in_clear: false,
            rules: None,
            logs: LogOptions::default(),
            collector: None,
            connections_max: 10_000,
            login_timeout: Duration::from_secs(15),
            stop_timeout: Duration::from_secs(30),
        }
    }
}

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
    /// There are no random numbers.
    #[error("no random numbers: {0}")]
    Random(String),
}
