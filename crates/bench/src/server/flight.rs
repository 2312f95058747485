//! A client of Arrow Flight SQL that only counts: batches are read as they came, and discarded.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use arrow_flight::decode::DecodedPayload;
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use tonic::transport::Endpoint;

use super::wire::Discarded;

/// Bytes that may be on their way to the client, over a stream and over its connection: many messages.
const STREAM_WINDOW: u32 = 8 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Bytes of a frame at most. A small one costs a system call on either side.
const FRAME_MAX: u32 = 1 << 20;

/// Runs a statement over its own connection, and discards its rows; the bytes are those of the messages.
pub(super) fn discard(address: SocketAddr, sql: &str, patience: Duration) -> Result<Discarded> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start tokio")?;
    runtime.block_on(async {
        let discarded = tokio::time::timeout(patience, run(address, sql)).await;
        discarded.context("the server does not answer")?
    })
}

async fn run(address: SocketAddr, sql: &str) -> Result<Discarded> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_MAX)
        .tcp_nodelay(true);
    let mut client = FlightSqlServiceClient::new(endpoint.connect().await?);
    let info = client.execute(sql.to_owned(), None).await?;
    let mut discarded = Discarded::default();
    for endpoint in info.endpoint {
        let ticket = endpoint.ticket.context("the server returned no ticket")?;
        let mut messages = client.do_get(ticket).await?.into_inner();
        while let Some(message) = messages.try_next().await? {
            discarded.bytes +=
                (message.inner.data_header.len() + message.inner.data_body.len()) as u64;
            if let DecodedPayload::RecordBatch(batch) = message.payload {
                discarded.rows += batch.num_rows() as u64;
            }
        }
    }
    Ok(discarded)
}
