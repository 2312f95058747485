//! `/api/query`: statements of the editor.

use std::sync::Arc;

use axum::extract::State;
use serde_json::json;

use super::answer::{Answer, ApiError, Fields};
use super::login::Caller;
use super::run::{RequestSession, Results};
use crate::shared::Shared;

/// Runs the statements of a text, one after the other; each is committed by itself unless the text says BEGIN.
pub(super) async fn query(
    State(server): State<Arc<Shared>>,
    caller: Caller,
    fields: Fields,
) -> Result<Answer, ApiError> {
    let sql = fields.text("sql")?;
    let session = RequestSession::begin(&server, &caller, sql)?;
    let mut results = Results::default();
    match session.run(sql, &mut results).await {
        Ok(took) => Ok(Answer(json!({ "results": results.all, "seconds": took.as_secs_f64() }))),
        Err(error) => Err(ApiError::from(error).after(results.all)),
    }
}
