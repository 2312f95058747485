//! The listening server, and the end of its connections.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atoll_sql::{Database, Extensions};
use parking_lot::RwLock;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::{ClientStream, prepare, serve};
use crate::error::ServerError;
use crate::failures::Failures;
use crate::flight::serve_flight;
use crate::homes::Homes;
use crate::http::serve_http;
use crate::log::Logs;
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::rules::LoginRules;
use crate::shared::Shared;
use crate::tls::Tls;
use crate::traces::Traces;

/// The port in the Unix socket's name if the server listens on no address.
const PORT: u16 = 5432;

/// The pause when file descriptors run out.
const EXHAUSTED: Duration = Duration::from_millis(50);

/// A listening server.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    tcp: Vec<TcpListener>,
    unix: Option<SocketFile>,
    flight: Option<TcpListener>,
    http: Option<TcpListener>,
}

/// TCP connections that may log in at the same time, at least.
const STRANGERS_LEAST: usize = 100;

/// A Unix socket, which removes its file when dropped.
#[derive(Debug)]
struct SocketFile {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The file may already be gone.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Server {
    /// Listens; [`run`](Self::run) then serves clients.
    ///
    /// # Errors
    /// If an address or the socket is taken, or insecurely reachable from other machines.
    pub async fn bind(database: Database, options: ServerOptions) -> Result<Self, ServerError> {
        let logs = Arc::new(Logs::open(&options.logs)?);
        let tls = options.tls.as_ref().map(Tls::load).transpose()?;
        let rules = options.rules.clone();
        rules.iter().try_for_each(|rules| rules.check(options.trusts_all))?;
        let mut tcp = Vec::new();
        for address in &options.listen {
            check(address, &options)?;
            tcp.push(listener(*address).await?);
        }
        let port = tcp.first().and_then(|listener| listener.local_addr().ok());
        let port = port.map_or(PORT, |address| address.port());
        let unix = match &options.socket_directory {
            Some(directory) => Some(socket_file(directory.join(format!(".s.PGSQL.{port}"))).await?),
            None => None,
        };
        let flight = match options.flight {
            Some(address) => {
                check(&address, &options)?;
                Some(listener(address).await?)
            }
            None => None,
        };
        let http = match options.http {
            Some(address) => {
                if !address.ip().is_loopback() && !options.listens_in_clear {
                    return Err(ServerError::HttpInClear(address));
                }
                Some(listener(address).await?)
            }
            None => None,
        };
        let places = Arc::new(Semaphore::new(options.connections_max));
        let strangers = options.connections_max.max(STRANGERS_LEAST);
        let strangers = Arc::new(Semaphore::new(strangers));
        let stopping = CancellationToken::new();
        let mut seed = [0; 32];
        let random = getrandom::fill(&mut seed);
        random.map_err(|error| ServerError::Random(error.to_string()))?;
        let (failures, metrics) = (Failures::default(), Metrics::new());
        let collector = options.collector.clone();
        let start = |it| Traces::start(it, database.activity(), Arc::clone(&logs));
        let traces = collector.map(start);
        let (tls, rules) = (tls.map(Arc::new), rules.map(Arc::new));
        let shared = Arc::new(Shared {
            database,
            options,
            places,
            strangers,
            stopping,
            failures,
            metrics,
            seed,
            extensions: Extensions::default(),
            homes: Homes::default(),
            logs,
            traces,
            tls: RwLock::new(tls),
            rules: RwLock::new(rules),
        });
        Ok(Self { shared, tcp, unix, flight, http })
    }

    /// The addresses for PostgreSQL clients.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.tcp.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// The address for Arrow Flight SQL.
    pub fn flight_address(&self) -> Option<SocketAddr> {
        self.flight.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// The HTTP address of the console, metrics and health checks.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// The path of its Unix socket.
    pub fn socket(&self) -> Option<&std::path::Path> {
        self.unix.as_ref().map(|unix| unix.path.as_path())
    }

    /// The logs.
    pub fn logs(&self) -> &Logs {
        &self.shared.logs
    }

    /// The handle for changes at run time.
    pub fn reloader(&self) -> Reloader {
        Reloader(Arc::clone(&self.shared))
    }

    /// Serves until `stop` completes. Then it stops listening, idle sessions end, and running statements get some time
    /// to finish.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { shared, tcp, unix, flight, http } = self;
        let mut beside = JoinSet::new();
        if let Some(listener) = http {
            beside.spawn(serve_http(listener, Arc::clone(&shared)));
        }
        let mut connections = JoinSet::new();
        if let Some(listener) = flight {
            connections.spawn(serve_flight(listener, Arc::clone(&shared)));
        }
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = accept(&tcp, unix.as_ref()) => match accepted {
                    Ok(stream) => drop(connections.spawn(serve(stream, Arc::clone(&shared)))),
                    // The client may be gone already, or file descriptors have run out.
                    Err(_) => sleep(EXHAUSTED).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
        drop((tcp, unix));
        shared.stopping.cancel();
        let ended = async { while connections.join_next().await.is_some() {} };
        if timeout(shared.options.stop_timeout, ended).await.is_err() {
            connections.shutdown().await;
        }
        if let Some(traces) = &shared.traces {
            traces.flush().await;
        }
    }
}

/// Changes a running server. A failed change has no effect.
#[derive(Clone, Debug)]
pub struct Reloader(Arc<Shared>);

impl Reloader {
    /// Reloads certificate and key for new connections; returns whether TLS is configured.
    ///
    /// # Errors
    /// If they cannot be used.
    pub fn reload_certificate(&self) -> Result<bool, ServerError> {
        let Some(files) = &self.0.options.tls else { return Ok(false) };
        *self.0.tls.write() = Some(Arc::new(Tls::load(files)?));
        Ok(true)
    }

    /// Replaces the login rules for new connections.
    ///
    /// # Errors
    /// If they trust clients and the server does not.
    pub fn set_rules(&self, rules: Option<LoginRules>) -> Result<(), ServerError> {
        rules.iter().try_for_each(|rules| rules.check(self.0.options.trusts_all))?;
        *self.0.rules.write() = rules.map(Arc::new);
        Ok(())
    }

    /// Reopens the log files, after they were renamed.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub fn reopen_logs(&self) -> Result<(), ServerError> {
        self.0.logs.reopen()
    }

    /// The logs.
    pub fn logs(&self) -> &Logs {
        &self.0.logs
    }
}

/// Refuses an address that other machines can reach, unless connections to it are secure.
fn check(address: &SocketAddr, options: &ServerOptions) -> Result<(), ServerError> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let is_encrypted = options.tls.is_some() && options.tls_required;
    match (options.trusts_all, is_encrypted || options.listens_in_clear) {
        (true, _) => Err(ServerError::NoPassword(*address)),
        (false, false) => Err(ServerError::InClear(*address)),
        (false, true) => Ok(()),
    }
}

async fn listener(address: SocketAddr) -> Result<TcpListener, ServerError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| not_listening(address.to_string(), error))
}

fn not_listening(at: String, error: io::Error) -> ServerError {
    ServerError::NotListening { at, error }
}

/// Binds a socket, replacing one that no server listens on any more.
async fn socket_file(path: PathBuf) -> Result<SocketFile, ServerError> {
    let failed = |error| not_listening(path.display().to_string(), error);
    if tokio::net::UnixStream::connect(&path).await.is_err() {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    let listener = UnixListener::bind(&path).map_err(failed)?;
    Ok(SocketFile { listener, path })
}

/// The next connection on any of the listeners.
async fn accept(tcp: &[TcpListener], unix: Option<&SocketFile>) -> io::Result<ClientStream> {
    let of_tcp = async {
        if tcp.is_empty() {
            return std::future::pending().await;
        }
        let accepting = tcp.iter().map(|listener| Box::pin(listener.accept()));
        let (accepted, _, _) = futures::future::select_all(accepting).await;
        let (stream, _) = accepted?;
        prepare(&stream)?;
        Ok(ClientStream::Tcp(stream))
    };
    let of_unix = async {
        match unix {
            Some(unix) => {
                unix.listener.accept().await.map(|(stream, _)| ClientStream::Unix(stream))
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        accepted = of_tcp => accepted,
        accepted = of_unix => accepted,
    }
}
