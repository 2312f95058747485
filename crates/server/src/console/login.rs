//! Authentication: a log-in with name and password sets a cookie that identifies later requests.

use std::net::SocketAddr;
use std::sync::Arc;

use atoll_sql::{ColumnNames, Identity};
use axum::extract::{ConnectInfo, FromRequestParts, State};
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde_json::json;

use super::answer::{Answer, ApiError, Fields};
use super::guard::port;
use crate::log::AuditEvent;
use crate::log_ins::{LASTS, NAME_MAX, OWNER, RefusalKind, TokenClient};
use crate::rules::LoginMethod;
use crate::shared::Shared;

/// The console's name in the audit log.
const OVER: &str = "console";

/// The client of a request.
pub(super) struct Caller {
    pub(super) user: Arc<str>,
    is_owner: bool,
    pub(super) address: SocketAddr,
}

impl Caller {
    /// The owner of the session with this number.
    pub(super) fn identity(&self, number: u32) -> Identity {
        let (user, column_names) = (Arc::clone(&self.user), ColumnNames::Text);
        Identity { user, is_owner: self.is_owner, number, column_names }
    }
}

impl FromRequestParts<Arc<Shared>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Shared>) -> Result<Self, ApiError> {
        if server.stopping.is_cancelled() {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Err(ApiError::new(status, "57P01", "the server is shutting down"));
        }
        let known = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let address = known.map(|known| known.0).ok_or_else(|| ApiError::bad("unknown address"))?;
        let method = |role: &str| client(role, address).method(server);
        if matches!(method(OWNER), Ok(LoginMethod::Trust)) {
            return Ok(Self { user: OWNER.into(), is_owner: true, address });
        }
        let token = token(&parts.headers);
        match token.and_then(|token| server.console().log_ins.current(server, token, method)) {
            Some((log_in, is_owner)) => Ok(Self { user: log_in.user.into(), is_owner, address }),
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
        return Err(ApiError::bad(format!("name or password is longer than {NAME_MAX} bytes")));
    }
    let logged_in =
        client(&user, address).log_in(&server, &server.console().log_ins, password).await;
    let token = logged_in.map_err(|refused| {
        let status = match refused.kind {
            RefusalKind::Server => StatusCode::SERVICE_UNAVAILABLE,
            RefusalKind::Rule => StatusCode::FORBIDDEN,
            RefusalKind::Unseen => StatusCode::TOO_MANY_REQUESTS,
            RefusalKind::Wrong => StatusCode::UNAUTHORIZED,
        };
        ApiError::from_fields(status, refused.error)
    })?;
    let cookie = cookie(&headers, &token, LASTS.as_secs());
    Ok(([(SET_COOKIE, cookie)], Answer(json!({ "user": user }))))
}

/// Logs out.
pub(super) async fn log_out(
    State(server): State<Arc<Shared>>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> impl IntoResponse {
    if let Some(log_in) = token(&headers).and_then(|token| server.console().log_ins.leave(token)) {
        let client = client(&log_in.user, address);
        client.audit(&server, &AuditEvent::LogOut { after: None });
    }
    ([(SET_COOKIE, cookie(&headers, "", 0))], Answer(json!({})))
}

/// A client of the console.
fn client(role: &str, address: SocketAddr) -> TokenClient<'_> {
    TokenClient { role, address, is_encrypted: false, over: OVER, application: OVER }
}

/// The cookie, out of reach of scripts and other sites. Browsers share cookies between the ports of a host, so the port
/// is part of the name.
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
