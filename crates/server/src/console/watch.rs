//! `/api/watch/…`: system tables for the page, and the page's actions. These statements are not listed among the
//! running ones.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use serde_json::{Map, Value, json};

use super::answer::{Answer, ApiError, Fields};
use super::login::Caller;
use super::run::{ShownRows, columns};
use crate::connection::timed_out;
use crate::error_fields::error_fields;
use crate::log::AuditedClient;
use crate::shared::Shared;
use crate::wire::ErrorFields;

/// Rows of a system table that are returned, at most.
const ROWS_MAX: usize = 4000;

/// How long reading them may take.
const TIME_MAX: Duration = Duration::from_secs(30);

/// The sections, with names and queries.
type Queries = &'static [(&'static str, &'static str)];

const ACTIVITY: Queries = &[
    (
        "queries",
        "SELECT session, \"user\", state, seconds, statement, error, waits_for, bytes_local, bytes_remote, \
         bytes_total, memory_bytes, begun FROM atoll.queries LIMIT 100",
    ),
    (
        "sessions",
        "SELECT session, \"user\", address, application, state, begun, since, memory_bytes, statement \
         FROM atoll.sessions",
    ),
    (
        "locks",
        "SELECT kind, schema_name, table_name, \"row\", mode, granted, transaction, session FROM atoll.locks LIMIT 200",
    ),
];

const TABLES: Queries = &[
    ("tables", "SELECT * FROM atoll.tables"),
    (
        "homes",
        "SELECT \"table\", found_node AS node, count(*) AS chunks, sum(rows) AS rows, sum(bytes) AS bytes \
         FROM atoll.chunks GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    (
        "chunks",
        "SELECT \"table\", chunk, found_node AS node, rows, bytes FROM atoll.chunks \
         WHERE chunk < 256 ORDER BY 1, 2, 3",
    ),
    ("nodes", "SELECT node FROM atoll.nodes ORDER BY node"),
];

const SCANS: Queries = &[("scans", "SELECT * FROM atoll.scans ORDER BY table_name")];

/// The machine's data along with its load.
pub(super) const MACHINE: Queries = &[
    ("nodes", "SELECT * FROM atoll.nodes ORDER BY node"),
    ("links", "SELECT * FROM atoll.links ORDER BY link"),
    ("pools", "SELECT * FROM atoll.pools"),
    ("traffic", "SELECT * FROM atoll.traffic"),
    ("database", "SELECT * FROM atoll.database"),
    (
        "homes",
        "SELECT found_node AS node, sum(bytes) AS bytes FROM atoll.chunks GROUP BY 1 ORDER BY 1",
    ),
];

/// The rows of a section.
pub(super) async fn watch(
    State(server): State<Arc<Shared>>,
    caller: Caller,
    Path(what): Path<String>,
) -> Result<Answer, ApiError> {
    let queries = match what.as_str() {
        "activity" => ACTIVITY,
        "tables" => TABLES,
        "scans" => SCANS,
        _ => return Err(ApiError::bad("expected activity, tables or scans")),
    };
    Ok(Answer(rows_of(&server, &caller, queries).await?.into()))
}

/// Cancels the statement of a session if the role may.
pub(super) async fn cancel(
    State(server): State<Arc<Shared>>,
    caller: Caller,
    fields: Fields,
) -> Result<Answer, ApiError> {
    let session = fields.number("session")?;
    let sql = format!("SELECT pg_cancel_backend({session}) AS cancelled");
    let found = rows(&server, &caller, &sql).await;
    let error = found.as_ref().err().map(|error| error.state);
    let address = caller.address.to_string();
    let client = AuditedClient { role: &caller.user, address: &address, session: None };
    server.logs.audit_statement(&client, &sql, error);
    let found = found?;
    Ok(Answer(json!({ "cancelled": found["rows"][0][0] == "t" })))
}

/// The rows of each query by its name.
pub(super) async fn rows_of(
    server: &Arc<Shared>,
    caller: &Caller,
    queries: Queries,
) -> Result<Map<String, Value>, ApiError> {
    let mut all = Map::new();
    for (name, sql) in queries {
        all.insert((*name).to_owned(), rows(server, caller, sql).await?);
    }
    Ok(all)
}

async fn rows(server: &Arc<Shared>, caller: &Caller, sql: &str) -> Result<Value, ErrorFields> {
    let session = server.database.session_of(caller.identity(0));
    let session =
        session.map_err(|error| ErrorFields::error("58000", error.message().into_owned()))?;
    let failed = |error| error_fields(&error, sql, 0);
    let read = async {
        let mut result = session.run(sql).await.map_err(failed)?;
        let (mut table, mut bytes) = (ShownRows::new(&session), 0);
        while let Some(batch) = result.next().await.map_err(failed)? {
            if !table.add(&batch, ROWS_MAX, &mut bytes)? {
                break;
            }
        }
        let (columns, more) = (columns(result.schema()), table.more);
        Ok(json!({ "columns": columns, "rows": table.rows, "more": more }))
    };
    tokio::time::timeout(TIME_MAX, read).await.unwrap_or_else(|_| Err(timed_out()))
}
