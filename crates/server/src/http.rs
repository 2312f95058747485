//! The HTTP server: metrics, health checks and the console.
//!
//! | path | answer |
//! |---|---|
//! | `/metrics` | counters and gauges in Prometheus's text form |
//! | `/healthz` | 200 while the process responds |
//! | `/readyz` | 200 while the server accepts clients, 503 once it stops |
//! | `/`, `/console/…`, `/api/…` | the [`console`] |

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::console;
use crate::shared::Shared;

/// The content type of Prometheus's text format.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves HTTP until the server has stopped.
pub(crate) async fn serve_http(listener: TcpListener, server: Arc<Shared>) {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .merge(console::routes(listener.local_addr().ok()))
        .with_state(server);
    let router = router.into_make_service_with_connect_info::<SocketAddr>();
    // Ends with the task.
    let _ = axum::serve(listener, router).await;
}

async fn metrics(State(server): State<Arc<Shared>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, OPENMETRICS)], server.metrics.text(&server.database))
}

async fn ready(State(server): State<Arc<Shared>>) -> (StatusCode, &'static str) {
    match server.stopping.is_cancelled() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n"),
        false => (StatusCode::OK, "ready\n"),
    }
}
