//! The server's options.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::log::LogOptions;
use crate::rules::LoginRules;
use crate::tls::TlsFiles;
use crate::traces::Collector;

/// The server's options.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Addresses to listen on; port 0 is any free port.
    pub listen: Vec<SocketAddr>,
    /// Directory of the Unix socket `.s.PGSQL.port`, where PostgreSQL's clients look for it.
    pub socket_directory: Option<PathBuf>,
    /// Address for Arrow Flight SQL; None turns it off.
    pub flight: Option<SocketAddr>,
    /// HTTP address of the console, metrics and health checks; None turns them off. The console needs loopback.
    pub http: Option<SocketAddr>,
    /// TLS over TCP; None turns it off.
    pub tls: Option<TlsFiles>,
    /// Whether TCP connections must use TLS.
    pub tls_required: bool,
    /// Whether every client is let in without a password and has all rights.
    pub trusts_all: bool,
    /// Whether the server may listen beyond loopback without TLS.
    pub listens_in_clear: bool,
    /// The login rules. Without them, clients over the Unix socket log in as their operating system user, and all
    /// others by password.
    pub rules: Option<LoginRules>,
    /// The log options.
    pub logs: LogOptions,
    /// The collector for spans of statements; None turns traces off.
    pub collector: Option<Collector>,
    /// Connections at the same time, at most.
    pub connections_max: usize,
    /// How long a log-in may take.
    pub login_timeout: Duration,
    /// How long running statements may continue when the server stops.
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
