//! Requests and responses as JSON.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::shared::Shared;
use crate::wire::ErrorFields;

/// A response.
pub(super) struct Answer(pub(super) Value);

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
        (headers, self.0.to_string()).into_response()
    }
}

/// An error response.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    error: Box<ErrorFields>,
    /// Results of earlier statements.
    results: Vec<Value>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, state: &'static str, message: impl Into<String>) -> Self {
        Self::from_fields(status, ErrorFields::error(state, message))
    }

    pub(super) fn from_fields(status: StatusCode, error: ErrorFields) -> Self {
        Self { status, error: Box::new(error), results: Vec::new() }
    }

    /// A malformed request.
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "08P01", message)
    }

    /// Adds the results of the statements before the failed one.
    pub(super) fn after(self, results: Vec<Value>) -> Self {
        Self { results, ..self }
    }
}

/// A failed statement. Its SQLSTATE determines the HTTP status.
impl From<ErrorFields> for ApiError {
    fn from(error: ErrorFields) -> Self {
        let status = match error.state.get(..2) {
            Some("53" | "57") if error.state != "57014" => StatusCode::SERVICE_UNAVAILABLE,
            Some("58" | "XX") => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::from_fields(status, error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let ErrorFields { state, message, detail, hint, position, .. } = *self.error;
        let error = json!({
            "state": state, "message": message, "detail": detail, "hint": hint, "position": position,
        });
        (self.status, Answer(json!({ "error": error, "results": self.results }))).into_response()
    }
}

/// The fields of a request.
pub(super) struct Fields(Map<String, Value>);

impl FromRequest<Arc<Shared>> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Shared>) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, server).await;
        let refused = |status, message: String| ApiError::new(status, "08P01", message);
        let bytes = bytes.map_err(|error| refused(error.status(), error.body_text()))?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(ApiError::bad("the request is not a JSON object")),
            Err(error) => Err(ApiError::bad(format!("the request is not JSON: {error}"))),
        }
    }
}

impl Fields {
    pub(super) fn text(&self, name: &str) -> Result<&str, ApiError> {
        let text = self.0.get(name).and_then(Value::as_str);
        text.ok_or_else(|| ApiError::bad(format!("expected a text in the field '{name}'")))
    }

    pub(super) fn number(&self, name: &str) -> Result<u64, ApiError> {
        let number = self.0.get(name).and_then(Value::as_u64);
        let expected = || ApiError::bad(format!("expected an integer in the field '{name}'"));
        number.ok_or_else(expected)
    }

    /// False if the field is missing.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}
