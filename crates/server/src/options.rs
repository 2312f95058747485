//! How a server is set up.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

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
