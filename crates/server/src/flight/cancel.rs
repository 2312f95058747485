//! Cancels statements by their tickets.

use arrow_flight::sql::{ActionCancelQueryResult, Any, Command, TicketStatementQuery};
use arrow_flight::{CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightInfo};
use bytes::Bytes;
use prost::Message;

use super::login::Caller;
use crate::shared::Shared;
use crate::wire::ErrorFields;

/// The action that cancels a query that GetFlightInfo created.
pub(super) const CANCEL_FLIGHT_INFO: &str = "CancelFlightInfo";

/// Runs the action CancelFlightInfo.
pub(super) fn cancel_flight_info(
    server: &Shared,
    caller: &Caller,
    body: Bytes,
) -> Result<Bytes, ErrorFields> {
    let request = CancelFlightInfoRequest::decode(body).map_err(|error| bad(&error))?;
    let status = cancel(server, caller, &request.info.unwrap_or_default());
    Ok(CancelFlightInfoResult::new(status).encode_to_vec().into())
}

/// Runs the older action CancelQuery.
pub(super) fn cancel_query(
    server: &Shared,
    caller: &Caller,
    info: Bytes,
) -> Result<ActionCancelQueryResult, ErrorFields> {
    let info = FlightInfo::decode(info).map_err(|error| bad(&error))?;
    // Both results have the same numbers.
    Ok(ActionCancelQueryResult { result: cancel(server, caller, &info).into() })
}

/// Cancels a pending or running statement.
fn cancel(server: &Shared, caller: &Caller, info: &FlightInfo) -> CancelStatus {
    let mut status = CancelStatus::NotCancellable;
    let tickets = info.endpoint.iter().filter_map(|endpoint| endpoint.ticket.as_ref());
    for handle in tickets.filter_map(|ticket| handle(&ticket.ticket)) {
        let Some((connection, secret)) = server.flight().connections.of_handle(&handle) else {
            continue;
        };
        if connection.tickets.take(&caller.key, &secret).is_some() {
            status = CancelStatus::Cancelled;
        } else if let Some(running) = connection.running.get(&caller.key, &secret) {
            running.cancel();
            status = CancelStatus::Cancelled;
        }
    }
    status
}

/// The statement's handle in a ticket.
fn handle(ticket: &[u8]) -> Option<Bytes> {
    match Command::try_from(Any::decode(ticket).ok()?).ok()? {
        Command::TicketStatementQuery(TicketStatementQuery { statement_handle }) => {
            Some(statement_handle)
        }
        _ => None,
    }
}

fn bad(error: &prost::DecodeError) -> ErrorFields {
    ErrorFields::error("08P01", format!("cannot decode the action: {error}"))
}
