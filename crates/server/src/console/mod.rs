//! The console: a web page about the server, and the answers that it asks for.
//!
//! ```text
//! browser ──▶ guard ──▶ assets    the page itself: files that are part of the binary
//!             Host      ours ──▶  login   who asks, by a cookie
//!                       header,   query   statements, in a session of their own
//!                       Origin    plan    EXPLAIN as a tree
//!                                 watch   system tables
//!                                 machine load and traffic
//! ```
//!
//! It is on loopback only: the connection is not encrypted, and the password passes in it. What a page of another
//! site can make a browser do is refused by the guard: names that point here (`Host`), requests without the
//! console's own header, and those with another `Origin`.

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

/// Bytes of a request.
const REQUEST_MAX: usize = 1 << 20;

/// What the console keeps between requests.
#[derive(Debug, Default)]
pub(crate) struct ConsoleState {
    log_ins: LogIns,
    load: LoadMeter,
}

impl Shared {
    /// What the console keeps.
    fn console(&self) -> Arc<ConsoleState> {
        let Ok(state) =
            self.extensions.get_or_try_init(|| Ok::<_, Infallible>(ConsoleState::default()));
        state
    }
}

/// The page and what it asks for, where the server listens on loopback; else a word that it is not there.
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
    // The guard stands before routes only: unknown paths are answered with 404 by the server.
    page.nest("/api", api).route_layer(from_fn(guard::guard))
}

async fn elsewhere() -> (StatusCode, &'static str) {
    let told = "The console is served on loopback only: start the server with --http 127.0.0.1:PORT, and reach it from \
                another machine by ssh -L PORT:127.0.0.1:PORT. /metrics, /healthz and /readyz are here.\n";
    (StatusCode::FORBIDDEN, told)
}

async fn unknown() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "08P01", "there is no such path")
}

async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "08P01", "this path has another method")
}
