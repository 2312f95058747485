//! Checks before every request: authenticates the caller, refuses requests while the server stops, and turns a panic
//! into an error of its request.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, PollInfo,
    SchemaResult, Ticket,
};
use futures::FutureExt;
use tonic::{Request, Response, Status, Streaming};

use super::connection::OpenRequest;
use super::login::{HandshakeStream, caller, handshake, identify};
use super::service::SqlService;
use crate::shared::Shared;
use crate::wire::ErrorFields;

/// The service that the guard protects.
pub(super) struct GuardedService {
    server: Arc<Shared>,
    sql: SqlService,
}

impl GuardedService {
    pub(super) fn new(server: Arc<Shared>) -> Self {
        Self { sql: SqlService::new(Arc::clone(&server)), server }
    }

    /// The request of a logged-in client, unless the server is stopping.
    fn admit<T>(&self, mut request: Request<T>) -> Result<(Request<T>, OpenRequest), Status> {
        self.not_stopping()?;
        identify(&self.server, &mut request)?;
        let open = caller(&request)?.connection.request();
        Ok((request, open))
    }

    fn not_stopping(&self) -> Result<(), Status> {
        match self.server.stopping.is_cancelled() {
            true => Err(ErrorFields::error("57P01", "the server is shutting down").into()),
            false => Ok(()),
        }
    }
}

/// A response; a panic becomes an error.
pub(super) async fn caught<T>(
    answer: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match AssertUnwindSafe(answer).catch_unwind().await {
        Ok(answer) => answer,
        Err(panic) => Err(panicked(panic.as_ref()).into()),
    }
}

/// The error message for a panic.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> ErrorFields {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    ErrorFields::error("XX000", format!("internal error: {text}"))
}

#[tonic::async_trait]
impl FlightService for GuardedService {
    type HandshakeStream = HandshakeStream;
    type ListFlightsStream = <SqlService as FlightService>::ListFlightsStream;
    type DoGetStream = <SqlService as FlightService>::DoGetStream;
    type DoPutStream = <SqlService as FlightService>::DoPutStream;
    type DoActionStream = <SqlService as FlightService>::DoActionStream;
    type ListActionsStream = <SqlService as FlightService>::ListActionsStream;
    type DoExchangeStream = <SqlService as FlightService>::DoExchangeStream;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        self.not_stopping()?;
        caught(handshake(&self.server, request)).await
    }

    async fn list_flights(
        &self,
        request: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        self.admit(request)?;
        let message = "only flights of statements are supported";
        Err(ErrorFields::error("0A000", message).hint("use Flight SQL's CommandGetTables").into())
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let (request, _open) = self.admit(request)?;
        caught(self.sql.get_flight_info(request)).await
    }

    async fn poll_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        // A statement runs when its rows are fetched, so there is nothing to poll for.
        let info = self.get_flight_info(request).await?.into_inner();
        Ok(Response::new(PollInfo::new().with_info(info)))
    }

    async fn get_schema(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        let (request, _open) = self.admit(request)?;
        caught(self.sql.schema(request)).await.map(Response::new)
    }

    async fn do_get(
        &self,
        request: Request<Ticket>,
    ) -> Result<Response<Self::DoGetStream>, Status> {
        let (request, _open) = self.admit(request)?;
        caught(self.sql.do_get(request)).await
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        let (request, _open) = self.admit(request)?;
        caught(self.sql.do_put(request)).await
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        self.admit(request)?;
        Err(ErrorFields::error("0A000", "DoExchange is not part of Flight SQL").into())
    }

    async fn do_action(
        &self,
        request: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        let (request, _open) = self.admit(request)?;
        caught(self.sql.do_action(request)).await
    }

    async fn list_actions(
        &self,
        request: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        let (request, _open) = self.admit(request)?;
        self.sql.list_actions(request).await
    }
}
