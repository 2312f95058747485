//! `atoll serve`: a database for PostgreSQL's clients.

use std::future::Future;
use std::io;

use atoll_server::{Server, ServerError, ServerOptions, TlsFiles, tell_ready, tell_stopping};
use atoll_sql::{Database, DatabaseOptions};
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::terminal;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{ServeArgs, TlsMode};
use crate::engine::start_database;

/// Threads that serve connections are one for so many workers, within bounds.
const WORKERS_EACH: usize = 4;
const THREADS_MIN: usize = 2;
const THREADS_MAX: usize = 16;

/// Bytes of the stack of each; pages that are not used take no memory.
const STACK: usize = 8 << 20;

/// Runs the command.
pub(crate) fn run(args: &ServeArgs) -> Result<(), CommandError> {
    if args.tls == TlsMode::Required && args.tls_cert.is_none() {
        let message = "--tls required needs --tls-cert and --tls-key";
        return Err(CommandError::with(Exit::Usage, message));
    }
    // Without passwords everyone is let in: then files of this process's user are out of reach.
    let files = !args.insecure_no_password;
    let options =
        DatabaseOptions { directory: args.data.clone(), files, ..DatabaseOptions::default() };
    let (database, _) = start_database(&args.engine, options)?;
    let threads = database.runtime().worker_count() / WORKERS_EACH;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.clamp(THREADS_MIN, THREADS_MAX))
        .thread_name("atoll-serve")
        .thread_stack_size(STACK)
        .enable_all()
        .build()?;
    runtime.block_on(serve(args, database))
}

async fn serve(args: &ServeArgs, database: Database) -> Result<(), CommandError> {
    let certificate = args.tls_cert.clone().zip(args.tls_key.clone());
    let options = ServerOptions {
        listen: args.listen.clone(),
        socket_directory: args.socket.clone(),
        http: args.http,
        tls: certificate.map(|(certificate, key)| TlsFiles { certificate, key }),
        tls_required: args.tls == TlsMode::Required,
        trusts_all: args.insecure_no_password,
        listens_in_clear: args.insecure_listen,
        connections_max: args.max_connections,
        ..ServerOptions::default()
    };
    // Before anyone can send one.
    let stopped = stopped()?;
    let server = Server::bind(database.clone(), options).await.map_err(not_started)?;
    for address in server.addresses() {
        let (host, port) = (address.ip(), address.port());
        terminal::say(format_args!("listening on {address}: psql -h {host} -p {port} -d atoll"));
    }
    if let Some(socket) = server.socket() {
        terminal::say(format_args!("listening on {}", socket.display()));
    }
    if let Some(address) = server.http_address() {
        if address.ip().is_loopback() {
            terminal::say(format_args!("console on http://{address}/"));
        }
        terminal::say(format_args!("metrics on http://{address}/metrics"));
    }
    tokio::spawn(reload_on_hangup(server.reloader())?);
    tell_ready();
    server
        .run(async {
            stopped.await;
            tell_stopping();
            terminal::say("stopping");
        })
        .await;
    let written = database.checkpoint().await;
    let written = written.map_err(|error| CommandError::with(Exit::Own, error.message()))?;
    if written.is_some() {
        terminal::say("a checkpoint is written");
    }
    Ok(())
}

/// Reads certificate and key anew at each SIGHUP; those in use stay where the new ones cannot be.
#[doc(alias = "SIGHUP")]
fn reload_on_hangup(
    reload: impl Fn() -> Result<(), ServerError> + Send + 'static,
) -> io::Result<impl Future<Output = ()> + Send> {
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        while hangup.recv().await.is_some() {
            match reload() {
                Ok(()) => terminal::say("certificate and key are read anew"),
                Err(error) => terminal::say_error(error),
            }
        }
    })
}

/// Ends when the process is asked to.
fn stopped() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

fn not_started(error: ServerError) -> CommandError {
    let exit = match &error {
        ServerError::InClear(_) | ServerError::NoPassword(_) => Exit::Usage,
        _ => Exit::Own,
    };
    CommandError::with(exit, error)
}
