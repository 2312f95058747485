//! Who asks: logged in by name and password, known by a cookie after that.

use std::net::SocketAddr;
use std::sync::Arc;

use atoll_sql::Identity;
use axum::extract::{ConnectInfo, FromRequestParts, State};
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde_json::json;

use super::answer::{Answer, ApiError, Fields};
use super::guard::port;
use super::log_ins::LASTS;
use crate::connection::{check_password, refused_unseen, verifier_of, wrong_password};
use crate::failures::LoginSource;
use crate::log::{AuditEvent, AuditedClient, LogLevel};
use crate::rules::{ClientOrigin, LoginAttempt, LoginMethod, login_method};
use crate::server::Shared;
use crate::wire::ErrorFields;

/// Characters of a name or password.
const NAME_MAX: usize = 1024;

/// What the audit log calls the console.
const OVER: &str = "console";

/// Who everyone is where no password is asked for: the role that stands for the process.
const OWNER: &str = "atoll";

/// Who asks.
pub(super) struct Caller {
    pub(super) user: Arc<str>,
    is_owner: bool,
    pub(super) address: SocketAddr,
}

impl Caller {
    /// Whose the session of this number is.
    pub(super) fn identity(&self, number: u32) -> Identity {
        Identity { user: Arc::clone(&self.user), is_owner: self.is_owner, number }
    }
}

impl FromRequestParts<Arc<Shared>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Shared>) -> Result<Self, ApiError> {
        if server.stopping.is_cancelled() {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Err(ApiError::new(status, "57P01", "the server stops"));
        }
        let known = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let address = known.map(|known| known.0).ok_or_else(|| ApiError::bad("unknown address"))?;
        let method = |role: &str| method(server, role, address);
        if matches!(method(OWNER), Ok(LoginMethod::Trust)) {
            return Ok(Self { user: OWNER.into(), is_owner: true, address });
        }
        let log_in = token(&parts.headers).and_then(|token| server.console.log_ins.find(token));
        // A role that was dropped, has another password, or may not come from here now, is logged in no longer.
        let log_in = log_in
            .filter(|log_in| verifier_of(server, &log_in.user).as_ref() == Some(&log_in.verifier))
            .filter(|log_in| method(&log_in.user).is_ok());
        match log_in {
            Some(log_in) => Ok(Self { user: log_in.user.into(), is_owner: false, address }),
            None => {
                Err(ApiError::new(StatusCode::UNAUTHORIZED, "28000", "log in to use the console"))
            }
        }
    }
}

/// Who is logged in.
pub(super) async fn session(caller: Caller) -> Answer {
    let has_password = !caller.is_owner;
    let version = env!("CARGO_PKG_VERSION");
    Answer(json!({ "user": &*caller.user, "has_password": has_password, "version": version }))
}

/// Logs in.
pub(super) async fn log_in(
    State(server): State<Arc<Shared>>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    fields: Fields,
) -> Result<impl IntoResponse, ApiError> {
    let (user, password) = (fields.text("user")?.to_owned(), fields.text("password")?.to_owned());
    if user.len() > NAME_MAX || password.len() > NAME_MAX {
        return Err(ApiError::bad(format!("a name or password is longer than {NAME_MAX} bytes")));
    }
    let busy =
        |_| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "53300", "too many are logging in");
    let _stranger = server.strangers.try_acquire().map_err(busy)?;
    let refused = |status, error| refused(&server, &user, address, status, error);
    if let Err(error) = method(&server, &user, address) {
        return Err(refused(StatusCode::FORBIDDEN, error));
    }
    let source = LoginSource::Address(address.ip());
    if !server.failures.begin(source) {
        return Err(refused(StatusCode::TOO_MANY_REQUESTS, refused_unseen()));
    }
    let (checking, name) = (Arc::clone(&server), user.clone());
    // Hashing takes long on purpose; other requests go on meanwhile.
    let checked = move || check_password(&checking, &name, &password);
    let Some(verifier) = tokio::task::spawn_blocking(checked).await.ok().flatten() else {
        return Err(refused(StatusCode::UNAUTHORIZED, wrong_password(&user)));
    };
    server.failures.succeeded(source);
    let failed = |error: super::log_ins::NotRandom| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "58000", error.to_string())
    };
    let token = server.console.log_ins.enter(&user, verifier).map_err(failed)?;
    let event = AuditEvent::LogIn { over: OVER, is_encrypted: false, application: OVER };
    audit(&server, &user, address, &event);
    let cookie = cookie(&headers, &token, LASTS.as_secs());
    Ok(([(SET_COOKIE, cookie)], Answer(json!({ "user": user }))))
}

/// Logs out.
pub(super) async fn log_out(
    State(server): State<Arc<Shared>>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> impl IntoResponse {
    if let Some(log_in) = token(&headers).and_then(|token| server.console.log_ins.leave(token)) {
        audit(&server, &log_in.user, address, &AuditEvent::LogOut { after: None });
    }
    ([(SET_COOKIE, cookie(&headers, "", 0))], Answer(json!({})))
}

/// How a client of the console has to prove who it is.
fn method(server: &Shared, role: &str, address: SocketAddr) -> Result<LoginMethod, ErrorFields> {
    let from = ClientOrigin::Address(address.ip());
    login_method(server, &LoginAttempt { role, from, is_encrypted: false })
}

/// Counts and tells of a log-in that is refused.
fn refused(
    server: &Shared,
    role: &str,
    address: SocketAddr,
    status: StatusCode,
    error: ErrorFields,
) -> ApiError {
    server.metrics.login_failed();
    let (state, reason) = (error.state, error.message.as_str());
    let event = AuditEvent::Refused { over: OVER, is_encrypted: false, state, reason };
    audit(server, role, address, &event);
    let told = format_args!("log-in refused at the console, from {address}: {reason}");
    server.logs.say(LogLevel::Info, told);
    ApiError::of(status, error)
}

fn audit(server: &Shared, role: &str, address: SocketAddr, event: &AuditEvent<'_>) {
    let address = address.to_string();
    server.logs.audit(&AuditedClient { role, address: &address, session: None }, event);
}

/// What the browser keeps, out of reach of scripts and of other sites. Cookies belong to a host and not to a port, so
/// the port is part of the name.
fn cookie(headers: &HeaderMap, token: &str, seconds: u64) -> String {
    let name = cookie_name(headers);
    format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}")
}

fn cookie_name(headers: &HeaderMap) -> String {
    format!("atoll-console-{}", port(headers))
}

/// The token in a request's cookies.
fn token(headers: &HeaderMap) -> Option<&str> {
    let name = cookie_name(headers);
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = cookies.flat_map(|cookies| cookies.split(';'));
    cookies.find_map(|cookie| cookie.trim().strip_prefix(&name)?.strip_prefix('='))
}
