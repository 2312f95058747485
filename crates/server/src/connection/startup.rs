//! Starts sessions: from the first byte of a connection to its first statement.

use std::sync::Arc;

use atoll_sql::activity::{ActiveSession, ClientInfo};
use atoll_sql::{Identity, Session};
use tokio::sync::OwnedSemaphorePermit;

use super::client::Channel;
use super::failure::End;
use super::login::log_in;
use super::stream::ClientStream;
use crate::log::{AuditEvent, AuditedClient, LogLevel};
use crate::shared::Shared;
use crate::tls::Tls;
use crate::wire::{ErrorFields, FirstMessage, ProtocolError, StartupMessage, take_first};
use atoll_sql::TextEncoding;

/// Names of this server's database, along with the user's name.
const DATABASES: [&str; 2] = ["atoll", "postgres"];

/// The PostgreSQL protocol's name in the audit log.
const OVER: &str = "postgres";

/// A session that has started.
pub(super) struct Begun {
    pub(super) session: Session,
    pub(super) active: ActiveSession,
    /// Its permit among the connections.
    pub(super) place: OwnedSemaphorePermit,
}

/// Starts the session of a connection; None if the client only cancelled a statement of another connection.
pub(super) async fn begin(
    channel: &mut Channel,
    server: &Arc<Shared>,
) -> Result<Option<Begun>, End> {
    let told = |state, message: String| End::Told(Box::new(ErrorFields::fatal(state, message)));
    // Connections before log-in are counted separately, so that they cannot use up `max_connections`.
    let is_remote = matches!(channel.stream, ClientStream::Tcp(_));
    let stranger = is_remote.then(|| server.strangers.try_acquire()).transpose();
    let _stranger =
        stranger.map_err(|_| told("53300", "too many clients are logging in".to_owned()))?;
    let mut tls = None;
    let startup = loop {
        match take_first(&mut channel.input)? {
            None => channel.read().await?,
            Some(FirstMessage::Tls) if tls.is_none() => tls = encrypt(channel, server).await?,
            Some(FirstMessage::Tls | FirstMessage::Gss) => {
                channel.output.byte(b'N');
                channel.send().await?;
            }
            Some(FirstMessage::Cancel { session, secret }) => {
                server.database.activity().cancel(session, secret);
                return Ok(None);
            }
            Some(FirstMessage::Terminate) => return Ok(None),
            Some(FirstMessage::Startup(startup)) => break startup,
        }
    };
    negotiate(channel, &startup);
    let user = startup.parameter("user").filter(|user| !user.is_empty());
    let Some(user) = user else {
        return Err(told("28000", "the startup message has no user".to_owned()));
    };
    let begun = begin_session(channel, server, &startup, tls.as_deref(), user).await;
    let (address, is_encrypted) = (address(&channel.stream), tls.is_some());
    let client = AuditedClient { role: user, address: &address, session: None };
    match &begun {
        Ok(begun) => {
            let client = AuditedClient { session: Some(begun.active.number()), ..client };
            let application = startup.parameter("application_name").unwrap_or_default();
            let event = AuditEvent::LogIn { over: OVER, is_encrypted, application };
            server.logs.audit(&client, &event);
            server.logs.say(LogLevel::Debug, format_args!("{user} has logged in from {address}"));
        }
        Err(End::Told(error)) => refused(server, &client, is_encrypted, error),
        Err(End::Asked | End::Gone) => {}
    }
    begun.map(Some)
}

/// Counts and logs a refused client.
fn refused(server: &Shared, client: &AuditedClient<'_>, is_encrypted: bool, error: &ErrorFields) {
    if error.state.starts_with("28") {
        server.metrics.login_failed();
    }
    let (state, reason) = (error.state, error.message.as_str());
    let event = AuditEvent::Refused { over: OVER, is_encrypted, state, reason };
    server.logs.audit(client, &event);
    let told = format_args!("log-in refused, from {}: {reason}", client.address);
    server.logs.say(LogLevel::Info, told);
}

/// Starts the session of an authenticated client.
async fn begin_session(
    channel: &mut Channel,
    server: &Arc<Shared>,
    startup: &StartupMessage,
    tls: Option<&Tls>,
    user: &str,
) -> Result<Begun, End> {
    let told = |state, message: String| End::Told(Box::new(ErrorFields::fatal(state, message)));
    check(startup, user)?;
    if server.options.tls_required && matches!(channel.stream, ClientStream::Tcp(_)) {
        let error = ErrorFields::fatal("28000", "this server requires TLS");
        return Err(End::Told(Box::new(error.hint("connect with sslmode=require"))));
    }
    let identity = log_in(channel, server, tls, user).await?;
    let place = Arc::clone(&server.places).try_acquire_owned();
    let place = place.map_err(|_| told("53300", "too many connections".to_owned()))?;
    let client = ClientInfo {
        user: user.to_owned(),
        address: address(&channel.stream),
        application: startup.parameter("application_name").unwrap_or_default().to_owned(),
    };
    let secret = getrandom::u32().map_err(|error| told("58000", error.to_string()))?;
    let active = server.database.activity().enter(client, secret);
    let session = server.database.session_of(Identity { number: active.number(), ..identity });
    let session = session.map_err(|error| told("58000", error.message().into_owned()))?;
    session.set_connections_max(server.options.connections_max);
    server.begin_as_role(&session);
    channel.output.message(b'R', |body| body.extend_from_slice(&[0; 4]));
    for (name, value) in &startup.parameters {
        // The encoding of the client's locale, which it knows.
        let value = if name == "client_encoding" && value == "auto" { "UTF8" } else { value };
        let set = session.set_parameter(name, value);
        set.map_err(|error| told(error.state.code(), error.message))?;
    }
    set_options(startup, &session).await?;
    tell_settings(channel, user, &session);
    channel.output.message(b'K', |body| {
        body.extend_from_slice(&active.number().to_be_bytes());
        body.extend_from_slice(&active.secret().to_be_bytes());
    });
    channel.output.ready(b'I');
    channel.send().await?;
    Ok(Begun { session, active, place })
}

/// Applies the settings in the parameter `options`.
async fn set_options(startup: &StartupMessage, session: &Session) -> Result<(), End> {
    let told = |state, message| End::Told(Box::new(ErrorFields::fatal(state, message)));
    let settings = startup.options().map_err(|message| told("42601", message))?;
    for (name, value) in settings {
        let set = session.set_parameter(&name, &value);
        if set.map_err(|error| told(error.state.code(), error.message))? {
            continue;
        }
        let is_name = |char: char| char.is_ascii_alphanumeric() || "._".contains(char);
        if !name.chars().all(is_name) {
            return Err(told("42704", format!("unrecognized configuration parameter \"{name}\"")));
        }
        let sql = format!("SET {name} = '{}'", value.replace('\'', "''"));
        if let Err(error) = session.run(&sql).await {
            return Err(told("22023", format!("option -c {name}: {}", error.message)));
        }
    }
    Ok(())
}

/// Encrypts a TCP connection if the server has a certificate; returns the TLS settings.
async fn encrypt(channel: &mut Channel, server: &Shared) -> Result<Option<Arc<Tls>>, End> {
    let tls = server.tls().filter(|_| matches!(channel.stream, ClientStream::Tcp(_)));
    channel.output.byte(if tls.is_some() { b'S' } else { b'N' });
    channel.send().await?;
    let Some(tls) = tls else { return Ok(None) };
    if !channel.input.is_empty() {
        // A man in the middle could have injected it.
        let message = "the client sent unencrypted data after its request for TLS".to_owned();
        return Err(ProtocolError(message).into());
    }
    let stream = std::mem::replace(&mut channel.stream, ClientStream::Closed(tokio::io::empty()));
    let ClientStream::Tcp(stream) = stream else { return Err(End::Gone) };
    let stream = tls.acceptor.accept(stream).await.map_err(|_| End::Gone)?;
    channel.stream = ClientStream::Tls(Box::new(stream));
    Ok(Some(tls))
}

/// Tells a client with a newer protocol which version the server speaks.
fn negotiate(channel: &mut Channel, startup: &StartupMessage) {
    let names = startup.parameters.iter().map(|(name, _)| name);
    let unknown: Vec<&String> = names.filter(|name| name.starts_with("_pq_.")).collect();
    if startup.minor == 0 && unknown.is_empty() {
        return;
    }
    channel.output.message(b'v', |body| {
        body.extend_from_slice(&(3_u32 << 16).to_be_bytes());
        body.extend_from_slice(&(unknown.len() as u32).to_be_bytes());
        unknown.iter().for_each(|name| TextEncoding::default().write(body, name));
    });
}

fn check(startup: &StartupMessage, user: &str) -> Result<(), End> {
    let refused = |state, message: String, hint: &str| {
        End::Told(Box::new(ErrorFields::fatal(state, message).hint(hint)))
    };
    if startup
        .parameter("replication")
        .is_some_and(|it| !matches!(it, "false" | "off" | "no" | "0"))
    {
        let message = "replication is not supported".to_owned();
        return Err(refused("0A000", message, "COPY and SELECT read the tables"));
    }
    let database = startup.parameter("database").unwrap_or(user);
    if database != user && !DATABASES.contains(&database) {
        let message = format!("database \"{database}\" does not exist");
        return Err(refused("3D000", message, "the database of this server is atoll"));
    }
    Ok(())
}

fn address(stream: &ClientStream) -> String {
    match stream {
        ClientStream::Tcp(stream) => {
            stream.peer_addr().map_or_else(|_| String::new(), |address| address.to_string())
        }
        ClientStream::Tls(stream) => {
            let address = stream.get_ref().0.peer_addr();
            address.map_or_else(|_| String::new(), |address| address.to_string())
        }
        ClientStream::Unix(_) | ClientStream::Closed(_) => "local".to_owned(),
    }
}

/// The settings that are reported to clients.
fn tell_settings(channel: &mut Channel, user: &str, session: &Session) {
    let settings = session.reported_parameters();
    let encoding = settings.iter().find(|(name, _)| *name == "client_encoding");
    channel.output.encoding =
        encoding.and_then(|(_, name)| TextEncoding::named(name)).unwrap_or_default();
    let mut tell = |name: &str, value: &str| channel.output.parameter_status(name, value);
    for (name, value) in &settings {
        tell(name, value);
    }
    tell("session_authorization", user);
    tell("is_superuser", if session.is_superuser() { "on" } else { "off" });
}
