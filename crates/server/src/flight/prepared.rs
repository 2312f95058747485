//! Prepared statements. Their parameters arrive separately, one row per execution.

use std::sync::Arc;

use arrow_flight::sql::ActionCreatePreparedStatementResult;
use arrow_flight::{IpcMessage, SchemaAsIpc};
use atoll_sql::arrow::datatypes::{Field, Schema};
use atoll_sql::arrow::ipc::writer::IpcWriteOptions;
use bytes::Bytes;
use parking_lot::Mutex;

use super::bound::BoundStatement;
use super::login::Caller;
use super::parameters::Parameters;
use super::rows::sent_schema;
use super::session::FlightSession;
use crate::shared::Shared;
use crate::wire::ErrorFields;

/// A prepared statement with the values that were bound last.
pub(super) struct FlightPrepared(Mutex<BoundStatement>);

impl FlightPrepared {
    /// Prepares a statement.
    pub(super) async fn new(session: Arc<FlightSession>, sql: &str) -> Result<Self, ErrorFields> {
        Ok(Self(Mutex::new(BoundStatement::plan(session, sql).await?)))
    }

    /// The prepared statement with a handle.
    pub(super) fn find(
        server: &Shared,
        caller: &Caller,
        handle: &[u8],
    ) -> Result<Arc<Self>, ErrorFields> {
        let found = server.flight().connections.of_handle(handle);
        let found =
            found.and_then(|(connection, secret)| connection.prepared.get(&caller.key, &secret));
        found.ok_or_else(|| {
            let message = "the prepared statement does not exist";
            let hint = "it may be closed, or belong to another log-in or an ended connection";
            ErrorFields::error("26000", message).hint(hint)
        })
    }

    /// The response to its client.
    pub(super) fn described(
        &self,
        handle: Bytes,
    ) -> Result<ActionCreatePreparedStatementResult, ErrorFields> {
        let bound = self.bound();
        let types = bound.statement.parameter_types().iter().enumerate();
        let fields = types.map(|(at, of)| Field::new(format!("${}", at + 1), of.clone(), true));
        let parameters = sent_schema(&Schema::new(fields.collect::<Vec<_>>()));
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle,
            dataset_schema: schema_bytes(&bound.columns())?,
            parameter_schema: schema_bytes(&parameters)?,
        })
    }

    /// The statement with its bound values.
    pub(super) fn bound(&self) -> BoundStatement {
        self.0.lock().clone()
    }

    /// Binds values.
    pub(super) async fn bind(&self, parameters: Parameters) -> Result<(), ErrorFields> {
        let bound = self.bound().bind(parameters).await?;
        *self.0.lock() = bound;
        Ok(())
    }
}

/// A schema as an Arrow IPC message; empty if it has no columns.
fn schema_bytes(schema: &Schema) -> Result<Bytes, ErrorFields> {
    if schema.fields().is_empty() {
        return Ok(Bytes::new());
    }
    let options = IpcWriteOptions::default();
    let message: Result<IpcMessage, _> = SchemaAsIpc::new(schema, &options).try_into();
    let failed = |error| ErrorFields::error("XX000", format!("cannot send columns: {error}"));
    message.map(|IpcMessage(bytes)| bytes).map_err(failed)
}
