//! Arrow Flight SQL.
//!
//! - `rows`: results: types, sizes, errors, cancellation.
//! - `access`: log-ins, others' tickets, rights, bytes that are not the protocol.
//! - `writes`: updates, prepared statements, transactions, ingestion.
//! - `catalog`: metadata for drivers.

mod access;
mod catalog;
mod rows;
mod writes;

use arrow_flight::FlightInfo;
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::util::pretty::pretty_format_batches;
use bytes::Bytes;
use futures::TryStreamExt;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::support::TestServer;

/// A client of Flight SQL.
type FlightClient = FlightSqlServiceClient<Channel>;

/// A client with its own connection.
async fn connect(server: &TestServer) -> FlightClient {
    let endpoint = Endpoint::from_shared(format!("http://{}", server.flight)).expect("an address");
    FlightSqlServiceClient::new(endpoint.connect().await.expect("it listens"))
}

/// A client that has logged in.
async fn log_in(server: &TestServer, user: &str, password: &str) -> FlightClient {
    let mut client = connect(server).await;
    client.handshake(user, password).await.expect("name and password are right");
    client
}

/// Fetches the rows of a ticket.
async fn fetch(
    client: &mut FlightClient,
    info: FlightInfo,
) -> Result<Vec<RecordBatch>, FlightError> {
    let ticket = info.endpoint[0].ticket.clone().expect("a ticket");
    client.do_get(ticket).await?.try_collect().await
}

/// The rows of a statement.
async fn query(client: &mut FlightClient, sql: &str) -> Result<Vec<RecordBatch>, FlightError> {
    query_in(client, sql, None).await
}

/// The rows of a statement in a transaction.
async fn query_in(
    client: &mut FlightClient,
    sql: &str,
    transaction: Option<&Bytes>,
) -> Result<Vec<RecordBatch>, FlightError> {
    let info = client.execute(sql.to_owned(), transaction.cloned()).await?;
    fetch(client, info).await
}

/// Runs a statement that changes something.
async fn update(client: &mut FlightClient, sql: &str) -> Result<i64, FlightError> {
    client.execute_update(sql.to_owned(), None).await
}

/// The values of a result: columns separated by commas, rows by spaces.
fn text(batches: &[RecordBatch]) -> String {
    let table = pretty_format_batches(batches).expect("text").to_string();
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(1);
    let row = |line: &str| {
        let cells = line.trim_matches('|').split('|').map(str::trim);
        cells.collect::<Vec<_>>().join(",")
    };
    rows.map(row).collect::<Vec<_>>().join(" ")
}

/// The server's error message.
fn status(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => panic!("expected a status, not {other}"),
    }
}

/// The SQLSTATE of an error.
fn state(error: FlightError) -> String {
    let status = status(error);
    let state = status.metadata().get("x-sqlstate").expect("a state in every error");
    state.to_str().expect("text").to_owned()
}
