//! `/api/query`: runs the editor's statements.

use std::sync::Arc;

use axum::extract::State;
use serde_json::json;

use super::answer::{Answer, ApiError, Fields};
use super::login::Caller;
use super::run::{RequestSession, Results};
use crate::shared::Shared;

/// Runs the statements of a text in order; each commits on its own unless the text says BEGIN.
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
