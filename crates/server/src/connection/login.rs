//! Authentication: by the operating system's user over a Unix socket, or by password (SCRAM-SHA-256), as the rules say.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use atoll_sql::{ColumnNames, Identity, ScramVerifier};
use pgwire::api::auth::sasl::scram::{ScramSecret, ScramServerAuth};
use sha2::{Digest, Sha256};

use super::client::Channel;
use super::failure::End;
use super::stream::ClientStream;
use crate::failures::LoginSource;
use crate::rules::{ClientOrigin, LoginAttempt, LoginMethod};
use crate::shared::Shared;
use crate::tls::Tls;
use crate::wire::{ErrorFields, FrontendMessage, MESSAGE_MAX, sasl_initial};
use atoll_sql::TextEncoding;

/// The mechanism, and the one with channel binding to the server's certificate.
const PLAIN: &str = "SCRAM-SHA-256";
const BOUND: &str = "SCRAM-SHA-256-PLUS";

/// Iterations of the password hash for roles that do not exist.
const ITERATIONS: u32 = 4096;

/// The operating system's superuser.
const ROOT: u32 = 0;

/// Authenticates a client. The session's number comes later.
pub(super) async fn log_in(
    channel: &mut Channel,
    server: &Arc<Shared>,
    tls: Option<&Tls>,
    user: &str,
) -> Result<Identity, End> {
    let told = |error| End::Told(Box::new(error));
    let column_names = ColumnNames::PostgreSql;
    let identity = |is_owner| Identity { user: user.into(), is_owner, number: 0, column_names };
    let source = source(&channel.stream);
    let attempt = LoginAttempt {
        role: user,
        from: origin(&channel.stream, source)?,
        is_encrypted: tls.is_some(),
    };
    let method = server.login_method(&attempt).map_err(told)?;
    if matches!(method, LoginMethod::Peer | LoginMethod::PeerFirst)
        && let Some(is_owner) = peer(&channel.stream, server, user)
    {
        return Ok(identity(is_owner));
    }
    match method {
        LoginMethod::Peer => return Err(told(wrong_peer(user))),
        LoginMethod::Trust => return Ok(identity(true)),
        LoginMethod::PeerFirst if server.options.trusts_all => return Ok(identity(true)),
        LoginMethod::PeerFirst | LoginMethod::Password => {}
    }
    let tried = server.failures.begin(source).await.ok_or_else(|| told(refused_unseen()))?;
    match scram(channel, server, tls, user).await {
        Ok(()) => {
            tried.did_not_fail();
            Ok(identity(false))
        }
        // psql disconnects, asks for the password and then reconnects.
        Err(Refusal::Ends(end)) => {
            tried.did_not_fail();
            Err(end)
        }
        Err(Refusal::Wrong) => Err(told(wrong_password(user))),
    }
}

/// Whether the client over a Unix socket has all rights; its operating system user must match the role.
fn peer(stream: &ClientStream, server: &Shared, role: &str) -> Option<bool> {
    let ClientStream::Unix(stream) = stream else { return None };
    let peer = stream.peer_cred().ok()?;
    if peer_name(peer.uid()).as_deref() != Some(role) {
        return None;
    }
    let is_owner = peer.uid() == ROOT || Some(peer.uid()) == own_user();
    let may_log_in = server.database.role(role).is_some_and(|role| role.can_login);
    (is_owner || may_log_in).then_some(is_owner)
}

/// The error if the operating system user is not the role that the client names, or the role may not log in.
fn wrong_peer(user: &str) -> ErrorFields {
    ErrorFields::fatal("28000", format!("peer authentication failed for user \"{user}\""))
        .hint("connect as the role with your user name on this machine")
}

/// The error after too many failed log-ins from an address.
pub(crate) fn refused_unseen() -> ErrorFields {
    let message = "too many log-ins from this address have failed";
    ErrorFields::fatal("28000", message).hint("wait a minute")
}

/// The error for a wrong name or password.
pub(crate) fn wrong_password(user: &str) -> ErrorFields {
    let message = format!("password authentication failed for user \"{user}\"");
    ErrorFields::fatal("28P01", message)
}

/// The password verifier of a role that may log in.
pub(crate) fn verifier_of(server: &Shared, user: &str) -> Option<ScramVerifier> {
    let role = server.database.role(user).filter(|role| role.can_login);
    role.and_then(|role| role.verifier)
}

/// Checks a password; returns the verifier if it is right. Roles that do not exist take the same time.
pub(crate) fn check_password(server: &Shared, user: &str, password: &str) -> Option<ScramVerifier> {
    let verifier = verifier_of(server, user);
    let is_known = verifier.is_some();
    let verifier = verifier.unwrap_or_else(|| made_up(user, &server.seed));
    (verifier.matches(password) && is_known).then_some(verifier)
}

/// Why authentication failed.
enum Refusal {
    /// The client sent no password, or disconnected first.
    Ends(End),
    /// The name or password is wrong; the error does not say which.
    Wrong,
}

impl From<End> for Refusal {
    fn from(end: End) -> Self {
        Self::Ends(end)
    }
}

/// The exchange of RFC 5802. A role that does not exist, or has no password, goes through all of it.
async fn scram(
    channel: &mut Channel,
    server: &Arc<Shared>,
    tls: Option<&Tls>,
    user: &str,
) -> Result<(), Refusal> {
    let verifier = verifier_of(server, user);
    let is_known = verifier.is_some();
    let secret = secret(verifier.unwrap_or_else(|| made_up(user, &server.seed)));
    let methods: &[&str] = if tls.is_some() { &[BOUND, PLAIN] } else { &[PLAIN] };
    channel.output.message(b'R', |body| {
        body.extend_from_slice(&10_u32.to_be_bytes());
        methods.iter().for_each(|method| TextEncoding::default().write(body, method));
        body.push(0);
    });
    let first = password_message(channel).await?;
    let (method, first) = sasl_initial(&first).map_err(End::from)?;
    let is_bound = first.starts_with(b"p=");
    if !methods.contains(&method.as_str()) || is_bound != (method == BOUND) {
        return Err(Refusal::Wrong);
    }
    let auth = tls.map_or_else(ScramServerAuth::new, |tls| tls.scram.clone());
    let (answer, waiting) =
        auth.on_client_first_message_with_secret(&first, secret).map_err(|_| Refusal::Wrong)?;
    sasl(channel, 11, &answer);
    let last = password_message(channel).await?;
    let answer = waiting.on_client_final_message(&last).map_err(|_| Refusal::Wrong)?;
    if !is_known {
        return Err(Refusal::Wrong);
    }
    sasl(channel, 12, &answer);
    Ok(())
}

fn sasl(channel: &mut Channel, step: u32, answer: &str) {
    channel.output.message(b'R', |body| {
        body.extend_from_slice(&step.to_be_bytes());
        body.extend_from_slice(answer.as_bytes());
    });
}

async fn password_message(channel: &mut Channel) -> Result<bytes::Bytes, End> {
    channel.send().await?;
    loop {
        match channel.take()? {
            Some(FrontendMessage::Password(message)) => return Ok(message),
            Some(_) => {
                let message = "expected an answer to the authentication request";
                return Err(End::Told(Box::new(ErrorFields::fatal("08P01", message))));
            }
            // An unauthenticated client's message may not be longer than a log-in needs.
            None if channel.input.len() > MESSAGE_MAX => return Err(End::Gone),
            None => channel.read().await?,
        }
    }
}

fn secret(of: ScramVerifier) -> ScramSecret {
    ScramSecret::Verifier {
        salt: of.salt,
        iterations: of.iterations as usize,
        stored_key: of.stored_key.to_vec(),
        server_key: of.server_key.to_vec(),
    }
}

/// The verifier of a role that does not exist, with the same salt each time.
fn made_up(user: &str, seed: &[u8; 32]) -> ScramVerifier {
    let hash = Sha256::new().chain_update(seed).chain_update(user).finalize();
    ScramVerifier {
        salt: hash[..16].to_vec(),
        iterations: ITERATIONS,
        stored_key: Sha256::digest(hash).into(),
        server_key: hash.into(),
    }
}

/// The source under which failed log-ins are counted.
fn source(stream: &ClientStream) -> LoginSource {
    let address = match stream {
        ClientStream::Tcp(stream) => stream.peer_addr(),
        ClientStream::Tls(stream) => stream.get_ref().0.peer_addr(),
        ClientStream::Unix(stream) => {
            let peer = stream.peer_cred();
            return peer.map_or(LoginSource::Unknown, |peer| LoginSource::User(peer.uid()));
        }
        ClientStream::Closed(_) => return LoginSource::Unknown,
    };
    address.map_or(LoginSource::Unknown, |address| LoginSource::Address(address.ip()))
}

/// The client's origin for the rules.
fn origin(stream: &ClientStream, source: LoginSource) -> Result<ClientOrigin, End> {
    match (stream, source) {
        (ClientStream::Unix(_), _) => Ok(ClientOrigin::Local),
        (_, LoginSource::Address(address)) => Ok(ClientOrigin::Address(address)),
        _ => Err(End::Gone),
    }
}

/// The user that this process runs as.
fn own_user() -> Option<u32> {
    std::fs::metadata("/proc/self").ok().map(|process| process.uid())
}

/// The name of an operating system user.
fn peer_name(user: u32) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut users = users.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(user)).then(|| name.to_owned())
    });
    users.next()
}
