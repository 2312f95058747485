//! The console: a web page about the server, and its API.
//!
//! ```text
//! browser ──▶ guard ──▶ assets    the page itself: embedded files
//!             Host      ours ──▶  login   who asks, by a cookie
//!                       header,   query   statements, in a session of their own
//!                       Origin    plan    EXPLAIN as a tree
//!                                 watch   system tables
//!                                 machine load and traffic
//! ```
//!
//! It is available on loopback only: the connection is not encrypted, and carries the password. The guard refuses
//! requests that another site's page can make a browser send: foreign names that resolve to this machine (`Host`),
//! requests without the console's own header, and those with another `Origin`.

mod answer;
mod assets;
mod guard;
mod load;
mod login;
mod machine;
mod plan;
mod query;
mod run;
mod watch;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::routing::{get, post};

use crate::log_ins::LogIns;
use crate::shared::Shared;
use answer::ApiError;
use load::LoadMeter;

/// Bytes of a request, at most.
const REQUEST_MAX: usize = 1 << 20;

/// The console's state between requests.
#[derive(Debug, Default)]
pub(crate) struct ConsoleState {
    log_ins: LogIns,
    load: LoadMeter,
}

impl Shared {
    /// The console's state.
    fn console(&self) -> Arc<ConsoleState> {
        let Ok(state) =
            self.extensions.get_or_try_init(|| Ok::<_, Infallible>(ConsoleState::default()));
        state
    }
}

/// The routes of the page and its API if the server listens on loopback; otherwise a notice that the console is off.
pub(crate) fn routes(listens_on: Option<SocketAddr>) -> Router<Arc<Shared>> {
    if !listens_on.is_some_and(|address| address.ip().is_loopback()) {
        return Router::new().route("/", get(elsewhere));
    }
    let api = Router::new()
        .route("/session", get(login::session))
        .route("/login", post(login::log_in))
        .route("/logout", post(login::log_out))
        .route("/query", post(query::query))
        .route("/explain", post(plan::explain))
        .route("/cancel", post(watch::cancel))
        .route("/watch/{what}", get(watch::watch))
        .route("/machine", get(machine::machine))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(REQUEST_MAX))
        .layer(from_fn(guard::ours));
    let page = assets::routes().route("/console/machine.svg", get(machine::picture));
    // The guard applies to routes only: the server returns 404 for unknown paths.
    page.nest("/api", api).route_layer(from_fn(guard::guard))
}

async fn elsewhere() -> (StatusCode, &'static str) {
    let told = "The console is served on loopback only: start the server with --http 127.0.0.1:PORT, and connect from \
                another machine through ssh -L PORT:127.0.0.1:PORT. This address serves /metrics, /healthz and /readyz.\n";
    (StatusCode::FORBIDDEN, told)
}

async fn unknown() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "08P01", "the path does not exist")
}

async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "08P01", "the path does not support this method")
}
