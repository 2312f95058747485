//! Refuses requests that another site made a browser send, before anything else is examined.

use std::net::{IpAddr, SocketAddr};

use axum::extract::Request;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::ApiError;

/// The header of the console's own requests, which a page of another site may not set without permission.
const OWN_HEADER: &str = "x-atoll-console";

/// The content security policy: nothing from elsewhere, and no framing.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Accepts only requests that address the server by an address or name of this machine: the owner of any other name
/// could point it here (DNS rebinding), and its page would count as the console's.
pub(super) async fn guard(request: Request, next: Next) -> Response {
    let mut response = match text(request.headers(), &HOST) {
        Some(host) if is_loopback(host) => next.run(request).await,
        _ => {
            let message = "the console answers to 127.0.0.1, [::1] and localhost only";
            ApiError::new(StatusCode::MISDIRECTED_REQUEST, "08P01", message).into_response()
        }
    };
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Accepts only requests of the console's page.
pub(super) async fn ours(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let host = text(headers, &HOST).unwrap_or_default();
    let is_own_page = headers.get(ORIGIN).is_none_or(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        origin.is_some_and(|(_, origin)| origin.eq_ignore_ascii_case(host))
    });
    let refused = |message| ApiError::new(StatusCode::FORBIDDEN, "28000", message).into_response();
    if !is_own_page {
        return refused("the request comes from another site");
    }
    if headers.get(OWN_HEADER).is_none_or(|value| value != "1") {
        return refused("expected the header X-Atoll-Console: 1");
    }
    next.run(request).await
}

/// The port in the Host header, which separates the cookies of several servers.
pub(super) fn port(headers: &HeaderMap) -> u16 {
    let port = text(headers, &HOST).and_then(|host| host.rsplit_once(':')?.1.parse().ok());
    port.unwrap_or(80)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether a Host header names this machine by a name that no other machine can have.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let address = host.parse::<SocketAddr>().map(|address| address.ip());
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let address = address.or_else(|_| bare.parse::<IpAddr>());
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_addresses_of_loopback_or_localhost() {
        for host in ["127.0.0.1", "127.0.0.1:9187", "localhost:80", "LOCALHOST", "[::1]:9", "[::1]"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["", "x", "evil.example:9187", "10.0.0.1:9187", "127.0.0.1.evil", "localhost.evil"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
