//! Bulk ingestion: inserts a client's batches into a table, creating it on request; all of them or none.

use std::pin::pin;
use std::sync::Arc;

use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use arrow_flight::sql::{
    CommandStatementIngest, TableDefinitionOptions, TableExistsOption, TableNotExistOption,
};
use atoll_sql::arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use atoll_sql::{Session, SqlError, column_type};
use futures::{Stream, StreamExt, TryStreamExt};

use super::bound::affected;
use super::messages::whole;
use super::session::FlightSession;
use super::status::unreadable;
use super::transaction::quoted;
use crate::error_fields::error_fields;
use crate::insertion::Insertion;
use crate::wire::ErrorFields;

/// The SQLSTATE for a table that does not exist.
const NO_TABLE: &str = "42P01";

/// The options of an ingestion.
struct Ingestion {
    /// The table's name in SQL.
    table: String,
    if_there: TableExistsOption,
    if_missing: TableNotExistOption,
}

/// Ingests the client's batches; returns the number of rows.
pub(super) async fn ingest(
    session: &Arc<FlightSession>,
    command: &CommandStatementIngest,
    messages: PeekableFlightDataStream,
) -> Result<i64, ErrorFields> {
    let ingestion = Ingestion::try_from_command(command)?;
    let is_own = command.transaction_id.as_ref().is_none_or(|id| id.is_empty());
    let running = session.begin(&format!("INGEST INTO {}", ingestion.table))?;
    let ingesting = async {
        if !is_own {
            return ingestion.run(session, &session.engine, messages).await;
        }
        let engine = session.engine.with_own_transaction();
        run(&engine, "BEGIN").await?;
        let count = ingestion.run(session, &engine, messages).await?;
        run(&engine, "COMMIT").await?;
        Ok(count)
    };
    running.finish(ingesting).await
}

impl Ingestion {
    fn try_from_command(command: &CommandStatementIngest) -> Result<Self, ErrorFields> {
        let unknown = |option: &str| {
            let expected = "specify what to do if the table exists, and if it does not";
            ErrorFields::error("22023", format!("the ingestion has no {option}")).hint(expected)
        };
        let options: TableDefinitionOptions =
            command.table_definition_options.ok_or_else(|| unknown("table_definition_options"))?;
        let if_there = match options.if_exists() {
            TableExistsOption::Unspecified => return Err(unknown("if_exists")),
            option => option,
        };
        let if_missing = match options.if_not_exist() {
            TableNotExistOption::Unspecified => return Err(unknown("if_not_exist")),
            option => option,
        };
        let temporary = Some("pg_temp".to_owned());
        let within = match command.temporary {
            true => [&None, &temporary],
            false => [&command.catalog, &command.schema],
        };
        let within = within.into_iter().flatten();
        let names = within.filter(|name| !name.is_empty()).chain([&command.table]);
        let table = names.map(|name| quoted(name)).collect::<Vec<_>>().join(".");
        Ok(Self { table, if_there, if_missing })
    }

    /// Prepares the table and inserts into it.
    async fn run(
        &self,
        session: &FlightSession,
        engine: &Session,
        messages: PeekableFlightDataStream,
    ) -> Result<i64, ErrorFields> {
        let messages = FlightDataDecoder::new(whole(messages).map_err(FlightError::from));
        let mut payloads = pin!(messages.map_ok(|decoded| decoded.payload));
        let Some(schema) = first_schema(&mut payloads).await? else {
            let message = "the ingestion has no columns: expected a schema before the batches";
            return Err(ErrorFields::error("08P01", message));
        };
        self.prepare_table(session, engine, &schema).await?;
        let columns: Vec<_> = schema.fields().iter().map(|field| quoted(field.name())).collect();
        let mut insertion = Insertion::begin(engine, (&self.table, &columns), None, &schema);
        if let Err(error) = push_all(&mut payloads, &schema, &insertion).await {
            insertion.give_up().await;
            return Err(error);
        }
        let tag = insertion.finish().await?;
        Ok(affected(&tag))
    }

    async fn prepare_table(
        &self,
        session: &FlightSession,
        engine: &Session,
        schema: &SchemaRef,
    ) -> Result<(), ErrorFields> {
        let define = async |sql: String| {
            let done = run(engine, &sql).await;
            session.audit_statement(&sql, done.as_ref().err().map(|error| error.state));
            done
        };
        let table = &self.table;
        let is_there = match engine.prepare(&format!("SELECT * FROM {table}")).await {
            Ok(_) => true,
            // The table exists even if the role may not read it.
            Err(error) => error.state.code() != NO_TABLE,
        };
        match (is_there, self.if_there, self.if_missing) {
            (true, TableExistsOption::Fail, _) => {
                let message = format!("the table {table} already exists");
                Err(ErrorFields::error("42P07", message).hint("append to it, or replace it"))
            }
            (true, TableExistsOption::Replace, _) => {
                define(format!("DROP TABLE {table}")).await?;
                define(self.definition(schema)).await
            }
            (true, _, _) => Ok(()),
            (false, _, TableNotExistOption::Create) => define(self.definition(schema)).await,
            (false, _, _) => {
                let message = format!("the table {table} does not exist");
                Err(ErrorFields::error(NO_TABLE, message).hint("let the ingestion create it"))
            }
        }
    }

    /// The statement that creates the table.
    fn definition(&self, schema: &SchemaRef) -> String {
        let column =
            |field: &Arc<Field>| format!("{} {}", quoted(field.name()), type_of(field.data_type()));
        let columns = schema.fields().iter().map(column).collect::<Vec<_>>().join(", ");
        format!("CREATE TABLE {} ({columns})", self.table)
    }
}

/// The column type for values of this type.
fn type_of(data_type: &DataType) -> String {
    match data_type {
        // Values other than NULL may come later.
        DataType::Null => "VARCHAR".to_owned(),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "TIMESTAMP_NS".to_owned(),
        other => column_type(other),
    }
}

async fn run(engine: &Session, sql: &str) -> Result<(), ErrorFields> {
    // The error's position refers to a statement that the client did not send.
    let failed = |error: SqlError| ErrorFields { position: None, ..error_fields(&error, "", 0) };
    engine.run(sql).await.map(drop).map_err(failed)
}

/// The columns that a client announces.
async fn first_schema(
    payloads: &mut (impl Stream<Item = Result<DecodedPayload, FlightError>> + Unpin),
) -> Result<Option<SchemaRef>, ErrorFields> {
    while let Some(payload) = payloads.next().await {
        if let DecodedPayload::Schema(schema) = payload.map_err(|error| unreadable(&error))? {
            return Ok((!schema.fields().is_empty()).then_some(schema));
        }
    }
    Ok(None)
}

async fn push_all(
    payloads: &mut (impl Stream<Item = Result<DecodedPayload, FlightError>> + Unpin),
    schema: &SchemaRef,
    insertion: &Insertion,
) -> Result<(), ErrorFields> {
    while let Some(payload) = payloads.next().await {
        match payload.map_err(|error| unreadable(&error))? {
            DecodedPayload::RecordBatch(batch) if batch.schema_ref() == schema => {
                insertion.push(batch).await;
            }
            DecodedPayload::None => {}
            DecodedPayload::RecordBatch(_) | DecodedPayload::Schema(_) => {
                let message = "the columns change between batches";
                return Err(ErrorFields::error("08P01", message));
            }
        }
    }
    Ok(())
}
