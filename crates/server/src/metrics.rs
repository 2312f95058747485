//! Figures of the server, as Prometheus reads them, and whether it is well: over HTTP.
//!
//! | path | answer |
//! |---|---|
//! | `/metrics` | counters and gauges in Prometheus's text form |
//! | `/healthz` | 200 while the process answers |
//! | `/readyz` | 200 while clients may come, 503 once the server stops |
//! | `/`, `/console/…`, `/api/…` | the [`console`] |

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::console;
use crate::server::Shared;

/// The type of Prometheus's text.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The first bound of the histogram of times, and how many follow, each four times the one before.
const SECONDS_MIN: f64 = 0.000_1;
const BUCKETS: u16 = 12;

/// What a statement came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    /// `done`, or the first two characters of the error's SQLSTATE.
    outcome: String,
}

/// What a session does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SessionState {
    state: &'static str,
}

/// The figures.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    connections: Counter,
    logins_failed: Counter,
    statements: Family<Outcome, Counter>,
    seconds: Histogram,
    sessions: Family<SessionState, Gauge>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("atoll");
        let (connections, logins_failed) = (Counter::default(), Counter::default());
        let (statements, sessions) = (Family::default(), Family::default());
        let seconds = Histogram::new(exponential_buckets(SECONDS_MIN, 4.0, BUCKETS));
        registry.register("connections", "Connections accepted", connections.clone());
        registry.register("logins_failed", "Log-ins that failed", logins_failed.clone());
        let about = "Statements that ended, by outcome: done, or the class of their SQLSTATE";
        registry.register("statements", about, statements.clone());
        let about = "Time of statements, rows sent to their clients included";
        registry.register("statement_duration_seconds", about, seconds.clone());
        registry.register("sessions", "Sessions of clients, by state", sessions.clone());
        Self { registry, connections, logins_failed, statements, seconds, sessions }
    }

    pub(crate) fn connected(&self) {
        self.connections.inc();
    }

    pub(crate) fn login_failed(&self) {
        self.logins_failed.inc();
    }

    /// A statement has ended, perhaps with an error of this state.
    pub(crate) fn ended(&self, took: Duration, error: Option<&str>) {
        let outcome = error.and_then(|state| state.get(..2)).unwrap_or("done").to_owned();
        self.statements.get_or_create(&Outcome { outcome }).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    fn text(&self, server: &Shared) -> String {
        let sessions = server.database.activity().sessions();
        let running = sessions.iter().filter(|session| session.is_running).count();
        for (state, count) in [("running", running), ("waiting", sessions.len() - running)] {
            self.sessions.get_or_create(&SessionState { state }).set(count as i64);
        }
        let mut text = String::new();
        // A String takes everything.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Answers over HTTP until the server has stopped.
pub(crate) async fn serve_http(listener: TcpListener, server: Arc<Shared>) {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .merge(console::routes(listener.local_addr().ok()))
        .with_state(server);
    let router = router.into_make_service_with_connect_info::<SocketAddr>();
    // It ends with the task.
    let _ = axum::serve(listener, router).await;
}

async fn metrics(State(server): State<Arc<Shared>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, OPENMETRICS)], server.metrics.text(&server))
}

async fn ready(State(server): State<Arc<Shared>>) -> (StatusCode, &'static str) {
    match server.stopping.is_cancelled() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n"),
        false => (StatusCode::OK, "ready\n"),
    }
}
