//! The page's files, embedded in the binary.

use std::sync::Arc;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::routing::get;

use crate::shared::Shared;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, content type and contents.
const FILES: [(&str, &str, &str); 11] = [
    ("/", HTML, include_str!("assets/index.html")),
    ("/console/console.css", CSS, include_str!("assets/console.css")),
    ("/console/main.js", SCRIPT, include_str!("assets/main.js")),
    ("/console/server.js", SCRIPT, include_str!("assets/server.js")),
    ("/console/view.js", SCRIPT, include_str!("assets/view.js")),
    ("/console/editor.js", SCRIPT, include_str!("assets/editor.js")),
    ("/console/plan.js", SCRIPT, include_str!("assets/plan.js")),
    ("/console/machine.js", SCRIPT, include_str!("assets/machine.js")),
    ("/console/live.js", SCRIPT, include_str!("assets/live.js")),
    ("/console/activity.js", SCRIPT, include_str!("assets/activity.js")),
    ("/console/tables.js", SCRIPT, include_str!("assets/tables.js")),
];

pub(super) fn routes() -> Router<Arc<Shared>> {
    FILES.into_iter().fold(Router::new(), |router, (path, of_type, text)| {
        // Another version of the server may respond next.
        let headers = [(CONTENT_TYPE, of_type), (CACHE_CONTROL, "no-cache")];
        router.route(path, get(move || async move { (headers, text) }))
    })
}
