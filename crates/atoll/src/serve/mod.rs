//! `atoll serve`: a database for PostgreSQL's clients.

mod settings;
mod shown;

use std::ffi::OsString;
use std::future::Future;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use atoll_server::{
    Collector, LogFormat, LogLevel, LogOptions, LogTarget, Reloader, Server, ServerError,
    ServerOptions, TlsFiles, tell_ready, tell_stopping,
};
use atoll_sql::{Database, DatabaseOptions};
use atoll_tools::exit::{CommandError, Exit};
use clap::ArgMatches;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{LogArgs, LogForm, MessageLevel, ServeArgs, TlsMode};
use crate::engine::start_database;
use settings::Settings;

/// Workers per thread that serves connections, within bounds.
const WORKERS_EACH: usize = 4;
const THREADS_MIN: usize = 2;
const THREADS_MAX: usize = 16;

/// Stack size of each thread; untouched pages take no memory.
const STACK: usize = 8 << 20;

/// Runs the command with its parsed command line.
pub(crate) fn run(
    args: &ServeArgs,
    matches: &ArgMatches,
    arguments: &[OsString],
) -> Result<(), CommandError> {
    let settings = Settings::from_args(args, matches, arguments)?;
    if args.show_config {
        return show(&settings, args.json);
    }
    let args = &settings.args;
    check(args)?;
    // Without passwords everyone is let in, so files that this process's user can read are off limits.
    let files = !args.insecure_no_password;
    let options = DatabaseOptions {
        directory: args.data.clone(),
        files,
        session_memory: args.session_memory,
        ..DatabaseOptions::default()
    };
    let (database, _) = start_database(&args.engine, options)?;
    let threads = database.runtime().worker_count() / WORKERS_EACH;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.clamp(THREADS_MIN, THREADS_MAX))
        .thread_name("atoll-serve")
        .thread_stack_size(STACK)
        .enable_all()
        .build()?;
    runtime.block_on(serve(settings, database))
}

fn show(settings: &Settings, as_json: bool) -> Result<(), CommandError> {
    let text = match as_json {
        true => format!("{:#}\n", shown::as_json(settings)),
        false => shown::as_toml(settings),
    };
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

/// Refuses settings that only make sense together.
fn check(args: &ServeArgs) -> Result<(), CommandError> {
    let message = match (args.tls, &args.tls_cert, &args.tls_key) {
        (TlsMode::Required, None, _) => "--tls required needs --tls-cert and --tls-key",
        (_, Some(_), None) => "--tls-cert needs --tls-key",
        (_, None, Some(_)) => "--tls-key needs --tls-cert",
        _ if args.otlp_ca.is_some() && args.otlp.is_none() => "--otlp-ca needs --otlp",
        _ => return Ok(()),
    };
    Err(CommandError::with(Exit::Usage, message))
}

async fn serve(settings: Settings, database: Database) -> Result<(), CommandError> {
    // Before any client can send one.
    let stopped = stopped()?;
    let server = Server::bind(database.clone(), server_options(&settings)?).await;
    let server = server.map_err(not_started)?;
    let (reloader, tls) = (server.reloader(), settings.args.tls);
    let say = |message: &str| reloader.logs().say(LogLevel::Info, message);
    // Before readiness is announced: an unhandled SIGHUP ends the process.
    tokio::spawn(reload_on_hangup(settings, server.reloader())?);
    tell_addresses(&server, tls);
    tell_ready();
    server
        .run(async {
            stopped.await;
            tell_stopping();
            say("stopping");
        })
        .await;
    let written = database.checkpoint().await;
    let written = written.map_err(|error| CommandError::with(Exit::Own, error.message()))?;
    if written.is_some() {
        say("checkpoint complete");
    }
    Ok(())
}

fn server_options(settings: &Settings) -> Result<ServerOptions, CommandError> {
    let args = &settings.args;
    let certificate = args.tls_cert.clone().zip(args.tls_key.clone());
    let collector = args.otlp.as_deref().map(|url| Collector::parse(url, args.otlp_ca.as_deref()));
    let collector = collector.transpose().map_err(not_started)?;
    Ok(ServerOptions {
        listen: args.listen.clone(),
        socket_directory: args.socket.clone(),
        flight: args.flight,
        http: args.http,
        tls: certificate.map(|(certificate, key)| TlsFiles { certificate, key }),
        tls_required: args.tls == TlsMode::Required,
        trusts_all: args.insecure_no_password,
        listens_in_clear: args.insecure_listen,
        rules: settings.rules.clone(),
        logs: log_options(&args.logs),
        connections_max: args.max_connections as usize,
        collector,
        ..ServerOptions::default()
    })
}

fn log_options(args: &LogArgs) -> LogOptions {
    let target = |path: &Path| match path.to_str() {
        Some("-") => LogTarget::Stdout,
        _ => LogTarget::File(path.to_owned()),
    };
    let slow = args.slow_query_ms.map(Duration::from_millis);
    LogOptions {
        format: match args.log_format {
            LogForm::Text => LogFormat::Text,
            LogForm::Json => LogFormat::Json,
        },
        level: match args.log_level {
            MessageLevel::Error => LogLevel::Error,
            MessageLevel::Warning => LogLevel::Warning,
            MessageLevel::Info => LogLevel::Info,
            MessageLevel::Debug => LogLevel::Debug,
        },
        slow: slow.map(|least| (least, target(&args.slow_query_log))),
        audit: args.audit_log.as_deref().map(target),
    }
}

fn tell_addresses(server: &Server, tls: TlsMode) {
    let say = |message: std::fmt::Arguments<'_>| server.logs().say(LogLevel::Info, message);
    for address in server.addresses() {
        let (host, port) = (address.ip(), address.port());
        say(format_args!("listening on {address}: psql -h {host} -p {port} -d atoll"));
    }
    if let Some(socket) = server.socket() {
        say(format_args!("listening on {}", socket.display()));
    }
    if let Some(address) = server.flight_address() {
        let scheme = if tls == TlsMode::Required { "grpc+tls" } else { "grpc" };
        say(format_args!("Arrow Flight SQL on {scheme}://{address}"));
    }
    if let Some(address) = server.http_address() {
        if address.ip().is_loopback() {
            say(format_args!("console on http://{address}/"));
        }
        say(format_args!("metrics on http://{address}/metrics"));
    }
}

/// Reloads certificate, key and login rules at each SIGHUP, and reopens the logs. What cannot be reloaded stays in use.
#[doc(alias = "SIGHUP")]
fn reload_on_hangup(
    settings: Settings,
    reloader: Reloader,
) -> io::Result<impl Future<Output = ()> + Send> {
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        while hangup.recv().await.is_some() {
            // The logs come first, so that later messages go to the right file.
            for done in [
                reloader.reopen_logs().map(|()| None).map_err(|error| error.to_string()),
                reload_certificate(&reloader),
                reload_rules(&settings, &reloader),
            ] {
                match done {
                    Ok(Some(told)) => reloader.logs().say(LogLevel::Info, told),
                    Ok(None) => {}
                    Err(error) => {
                        let told =
                            format_args!("reload failed, keeping the previous settings: {error}");
                        reloader.logs().say(LogLevel::Warning, told);
                    }
                }
            }
        }
    })
}

fn reload_certificate(reloader: &Reloader) -> Result<Option<String>, String> {
    let has_one = reloader.reload_certificate().map_err(|error| error.to_string())?;
    Ok(has_one.then(|| "reloaded certificate and key".to_owned()))
}

fn reload_rules(settings: &Settings, reloader: &Reloader) -> Result<Option<String>, String> {
    let rules = settings.rules_now().map_err(|error| error.message.unwrap_or_default())?;
    let count = rules.as_ref().map_or(0, |rules| rules.count());
    let had_file = settings.file.is_some();
    reloader.set_rules(rules).map_err(|error| error.to_string())?;
    Ok(had_file.then(|| {
        format!("reloaded {count} login rules; other settings take effect at the next start")
    }))
}

/// Completes when the process receives a stop signal.
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
        ServerError::InClear(_)
        | ServerError::HttpInClear(_)
        | ServerError::NoPassword(_)
        | ServerError::Rules(_)
        | ServerError::Collector(_)
        | ServerError::CollectorTls(_) => Exit::Usage,
        _ => Exit::Own,
    };
    CommandError::with(exit, error)
}
