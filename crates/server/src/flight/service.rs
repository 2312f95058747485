//! The commands of Flight SQL, dispatched to the files that implement them.

use std::pin::Pin;
use std::sync::Arc;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::metadata::SqlInfoDataBuilder;
use arrow_flight::sql::server::{DoPutError, FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionBeginSavepointRequest, ActionBeginSavepointResult, ActionBeginTransactionRequest,
    ActionBeginTransactionResult, ActionCancelQueryRequest, ActionCancelQueryResult,
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, ActionEndSavepointRequest, ActionEndTransactionRequest,
    Any, Command, CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas,
    CommandGetExportedKeys, CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo,
    CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementQuery,
    CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt, SqlInfo,
    TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, FlightDescriptor, FlightEndpoint, FlightInfo, SchemaAsIpc, SchemaResult,
    Ticket,
};
use atoll_sql::arrow::array::{ArrayRef, RecordBatch, StringArray};
use atoll_sql::arrow::datatypes::{DataType, Field, Schema};
use atoll_sql::arrow::error::ArrowError;
use atoll_sql::arrow::ipc::writer::IpcWriteOptions;
use futures::Stream;
use prost::Message;
use tonic::{Request, Response, Status};

use super::bound::{BoundStatement, update};
use super::cancel::{CANCEL_FLIGHT_INFO, cancel_flight_info, cancel_query};
use super::login::{Caller, caller};
use super::metadata::{info, keys, types};
use super::parameters::Parameters;
use super::prepared::FlightPrepared;
use super::query::{Fetched, TICKET_LASTS, Waiting, fetch};
use super::rows::{MessageStream, messages};
use super::transaction::session_of;
use super::{ingest, metadata, transaction};
use crate::shared::Shared;
use crate::wire::ErrorFields;

/// Handles the commands of logged-in clients.
pub(super) struct SqlService {
    server: Arc<Shared>,
}

type InfoResult = Result<Response<FlightInfo>, Status>;
type RowsResult = Result<Response<MessageStream>, Status>;
type ActionStream =
    Pin<Box<dyn Stream<Item = Result<arrow_flight::Result, Status>> + Send + 'static>>;

impl SqlService {
    pub(super) fn new(server: Arc<Shared>) -> Self {
        Self { server }
    }

    /// The columns of a command's result, without creating a ticket.
    pub(super) async fn schema(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<SchemaResult, Status> {
        let caller = caller(&request)?;
        let cmd = &*request.get_ref().cmd;
        let command = Any::decode(cmd).ok().and_then(|any| Command::try_from(any).ok());
        let columns = match command {
            Some(Command::CommandStatementQuery(command)) => {
                self.statement(&caller, &command).await?.columns()
            }
            Some(Command::CommandPreparedStatementQuery(command)) => {
                let handle = &command.prepared_statement_handle;
                FlightPrepared::find(&self.server, &caller, handle)?.bound().columns()
            }
            // The remaining commands have no effect when their ticket is created.
            _ => {
                let info = self.get_flight_info(request).await?.into_inner();
                return Ok(SchemaResult { schema: info.schema });
            }
        };
        let schema = SchemaAsIpc::new(&columns, &IpcWriteOptions::default()).try_into();
        Ok(schema.map_err(|error: ArrowError| metadata::failed(error.into()))?)
    }

    async fn statement(
        &self,
        caller: &Caller,
        command: &CommandStatementQuery,
    ) -> Result<BoundStatement, ErrorFields> {
        let session = session_of(&self.server, caller, command.transaction_id.as_ref())?;
        BoundStatement::plan(session, &command.query).await
    }
}

/// A ticket for pending rows.
fn ticket(caller: &Caller, waiting: Waiting, request: Request<FlightDescriptor>) -> InfoResult {
    let schema = Arc::clone(&waiting.schema);
    let tickets = &caller.connection.tickets;
    let statement_handle = tickets.keep(caller.key, Some(TICKET_LASTS), waiting)?;
    flight_info(&TicketStatementQuery { statement_handle }, &schema, request)
}

/// The endpoint of rows with these columns: a command that carries no rights is its own ticket.
fn flight_info(
    command: &impl ProstMessageExt,
    schema: &Schema,
    request: Request<FlightDescriptor>,
) -> InfoResult {
    let ticket = Ticket::new(command.as_any().encode_to_vec());
    let info = FlightInfo::new().try_with_schema(schema);
    let info = info.map_err(|error| metadata::failed(error.into()))?;
    let info = info.with_endpoint(FlightEndpoint::new().with_ticket(ticket));
    Ok(Response::new(info.with_descriptor(request.into_inner()).with_ordered(true)))
}

fn at_hand(batch: RecordBatch) -> RowsResult {
    Ok(Response::new(messages(batch)))
}

fn table_types_schema() -> Schema {
    Schema::new(vec![Field::new("table_type", DataType::Utf8, false)])
}

#[tonic::async_trait]
impl FlightSqlService for SqlService {
    type FlightService = Self;

    async fn get_flight_info_statement(
        &self,
        command: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        let caller = caller(&request)?;
        let waiting = self.statement(&caller, &command).await?.waiting().await?;
        ticket(&caller, waiting, request)
    }

    async fn get_flight_info_prepared_statement(
        &self,
        command: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        let caller = caller(&request)?;
        let handle = &command.prepared_statement_handle;
        let prepared = FlightPrepared::find(&self.server, &caller, handle)?;
        ticket(&caller, prepared.bound().waiting().await?, request)
    }

    async fn get_flight_info_catalogs(
        &self,
        command: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        flight_info(&command, &command.into_builder().schema(), request)
    }

    async fn get_flight_info_schemas(
        &self,
        command: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        flight_info(&command.clone(), &command.into_builder().schema(), request)
    }

    async fn get_flight_info_tables(
        &self,
        command: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        flight_info(&command.clone(), &command.into_builder().schema(), request)
    }

    async fn get_flight_info_table_types(
        &self,
        command: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        flight_info(&command, &table_types_schema(), request)
    }

    async fn get_flight_info_sql_info(
        &self,
        command: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        flight_info(&command, SqlInfoDataBuilder::schema(), request)
    }

    async fn get_flight_info_primary_keys(
        &self,
        command: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        flight_info(&command, &keys::primary_schema(), request)
    }

    async fn get_flight_info_exported_keys(
        &self,
        command: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        flight_info(&command, &keys::foreign_schema(), request)
    }

    async fn get_flight_info_imported_keys(
        &self,
        command: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        flight_info(&command, &keys::foreign_schema(), request)
    }

    async fn get_flight_info_cross_reference(
        &self,
        command: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        flight_info(&command, &keys::foreign_schema(), request)
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        command: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> InfoResult {
        flight_info(&command, &types::types()?.schema(), request)
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<Ticket>,
    ) -> RowsResult {
        let caller = caller(&request)?;
        let found = self.server.flight().connections.of_handle(&ticket.statement_handle);
        let found = found.and_then(|(connection, secret)| {
            let waiting = connection.tickets.take(&caller.key, &secret)?;
            Some((waiting, Fetched { of: caller.key, connection, secret }))
        });
        let (waiting, fetched) = found.ok_or_else(|| {
            let message = "the ticket is unknown";
            let hint = "a ticket is valid for one DoGet within five minutes by the same log-in";
            ErrorFields::error("34000", message).hint(hint)
        })?;
        Ok(Response::new(fetch(waiting, Some(fetched), caller.connection.request())?))
    }

    async fn do_get_prepared_statement(
        &self,
        command: CommandPreparedStatementQuery,
        request: Request<Ticket>,
    ) -> RowsResult {
        let caller = caller(&request)?;
        let handle = &command.prepared_statement_handle;
        let prepared = FlightPrepared::find(&self.server, &caller, handle)?;
        let waiting = prepared.bound().waiting().await?;
        Ok(Response::new(fetch(waiting, None, caller.connection.request())?))
    }

    async fn do_get_catalogs(&self, _: CommandGetCatalogs, _: Request<Ticket>) -> RowsResult {
        at_hand(metadata::catalogs()?)
    }

    async fn do_get_schemas(
        &self,
        command: CommandGetDbSchemas,
        request: Request<Ticket>,
    ) -> RowsResult {
        let session = caller(&request)?.session(&self.server)?;
        at_hand(metadata::schemas(&session.engine, command).await?)
    }

    async fn do_get_tables(
        &self,
        command: CommandGetTables,
        request: Request<Ticket>,
    ) -> RowsResult {
        let session = caller(&request)?.session(&self.server)?;
        at_hand(metadata::tables(&session.engine, command).await?)
    }

    async fn do_get_table_types(&self, _: CommandGetTableTypes, _: Request<Ticket>) -> RowsResult {
        let types: ArrayRef = Arc::new(StringArray::from_iter_values(metadata::TABLE_TYPES));
        let batch = RecordBatch::try_new(Arc::new(table_types_schema()), vec![types]);
        at_hand(batch.map_err(|error| metadata::failed(error.into()))?)
    }

    async fn do_get_sql_info(&self, command: CommandGetSqlInfo, _: Request<Ticket>) -> RowsResult {
        let batch = info::info()?.record_batch(command.info);
        at_hand(batch.map_err(metadata::failed)?)
    }

    async fn do_get_primary_keys(
        &self,
        command: CommandGetPrimaryKeys,
        request: Request<Ticket>,
    ) -> RowsResult {
        let session = caller(&request)?.session(&self.server)?;
        at_hand(keys::primary_keys(&session.engine, command).await?)
    }

    async fn do_get_exported_keys(
        &self,
        _: CommandGetExportedKeys,
        _: Request<Ticket>,
    ) -> RowsResult {
        at_hand(RecordBatch::new_empty(keys::foreign_schema()))
    }

    async fn do_get_imported_keys(
        &self,
        _: CommandGetImportedKeys,
        _: Request<Ticket>,
    ) -> RowsResult {
        at_hand(RecordBatch::new_empty(keys::foreign_schema()))
    }

    async fn do_get_cross_reference(
        &self,
        _: CommandGetCrossReference,
        _: Request<Ticket>,
    ) -> RowsResult {
        at_hand(RecordBatch::new_empty(keys::foreign_schema()))
    }

    async fn do_get_xdbc_type_info(
        &self,
        command: CommandGetXdbcTypeInfo,
        _: Request<Ticket>,
    ) -> RowsResult {
        let batch = types::types()?.record_batch(command.data_type);
        at_hand(batch.map_err(metadata::failed)?)
    }

    async fn do_put_error_callback(
        &self,
        _: Request<PeekableFlightDataStream>,
        error: DoPutError,
    ) -> Result<Response<<Self as FlightService>::DoPutStream>, Status> {
        Err(ErrorFields::error("08P01", format!("DoPut names no command: {error}")).into())
    }

    async fn do_put_statement_update(
        &self,
        command: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let caller = caller(&request)?;
        let session = session_of(&self.server, &caller, command.transaction_id.as_ref())?;
        Ok(update(&session, &command.query).await?)
    }

    async fn do_put_statement_ingest(
        &self,
        command: CommandStatementIngest,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let caller = caller(&request)?;
        let session = session_of(&self.server, &caller, command.transaction_id.as_ref())?;
        Ok(ingest::ingest(&session, &command, request.into_inner()).await?)
    }

    async fn do_put_prepared_statement_query(
        &self,
        command: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let caller = caller(&request)?;
        let handle = &command.prepared_statement_handle;
        let prepared = FlightPrepared::find(&self.server, &caller, handle)?;
        prepared.bind(Parameters::read(request.into_inner()).await?).await?;
        // The handle stays the same.
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: None })
    }

    async fn do_put_prepared_statement_update(
        &self,
        command: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let caller = caller(&request)?;
        let handle = &command.prepared_statement_handle;
        let prepared = FlightPrepared::find(&self.server, &caller, handle)?;
        // Values may come with the command, or have come before it.
        let parameters = Parameters::read(request.into_inner()).await?;
        if !parameters.is_empty() {
            prepared.bind(parameters).await?;
        }
        Ok(prepared.bound().update().await?)
    }

    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Result<Response<ActionStream>, Status> {
        let caller = caller(&request)?;
        let action = request.into_inner();
        if action.r#type != CANCEL_FLIGHT_INFO {
            let message = format!("unknown action '{}'", action.r#type);
            return Err(ErrorFields::error("0A000", message).into());
        }
        let body = cancel_flight_info(&self.server, &caller, action.body)?;
        let answers = futures::stream::iter([Ok(arrow_flight::Result::new(body))]);
        Ok(Response::new(Box::pin(answers)))
    }

    async fn list_custom_actions(&self) -> Option<Vec<Result<ActionType, Status>>> {
        let (r#type, description) = (CANCEL_FLIGHT_INFO.to_owned(), "Cancels a query".to_owned());
        Some(vec![Ok(ActionType { r#type, description })])
    }

    async fn do_action_create_prepared_statement(
        &self,
        command: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let caller = caller(&request)?;
        let session = session_of(&self.server, &caller, command.transaction_id.as_ref())?;
        let prepared = Arc::new(FlightPrepared::new(session, &command.query).await?);
        let kept = Arc::clone(&prepared);
        let handle = caller.connection.prepared.keep(caller.key, None, kept)?;
        Ok(prepared.described(handle)?)
    }

    async fn do_action_close_prepared_statement(
        &self,
        command: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        let caller = caller(&request)?;
        let handle = &command.prepared_statement_handle;
        if let Some((connection, secret)) = self.server.flight().connections.of_handle(handle) {
            drop(connection.prepared.take(&caller.key, &secret));
        }
        Ok(())
    }

    async fn do_action_begin_transaction(
        &self,
        _: ActionBeginTransactionRequest,
        request: Request<Action>,
    ) -> Result<ActionBeginTransactionResult, Status> {
        let transaction_id = transaction::begin(&self.server, &caller(&request)?).await?;
        Ok(ActionBeginTransactionResult { transaction_id })
    }

    async fn do_action_end_transaction(
        &self,
        command: ActionEndTransactionRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        let (caller, handle) = (caller(&request)?, &command.transaction_id);
        Ok(transaction::end(&self.server, &caller, handle, command.action).await?)
    }

    async fn do_action_begin_savepoint(
        &self,
        command: ActionBeginSavepointRequest,
        request: Request<Action>,
    ) -> Result<ActionBeginSavepointResult, Status> {
        let (caller, name) = (caller(&request)?, &command.name);
        let handle = &command.transaction_id;
        let savepoint_id =
            transaction::begin_savepoint(&self.server, &caller, handle, name).await?;
        Ok(ActionBeginSavepointResult { savepoint_id })
    }

    async fn do_action_end_savepoint(
        &self,
        command: ActionEndSavepointRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        let (caller, handle) = (caller(&request)?, &command.savepoint_id);
        Ok(transaction::end_savepoint(&self.server, &caller, handle, command.action).await?)
    }

    async fn do_action_cancel_query(
        &self,
        command: ActionCancelQueryRequest,
        request: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        Ok(cancel_query(&self.server, &caller(&request)?, command.info)?)
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}
