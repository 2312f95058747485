//! Messages that a client streams to the server.

use arrow_flight::FlightData;
use arrow_flight::sql::server::PeekableFlightDataStream;
use futures::future::ready;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tonic::Status;

/// The messages of a client that have data, to an end that the client itself has told.
///
/// When a client gives a request up, tonic ends its messages as if all had come (`tonic/src/codec/decode.rs`, 0.14). What
/// serves such a request is dropped by hyper as soon as it waits, so it waits here, before anything is made of half of the
/// messages.
pub(super) fn whole(
    messages: PeekableFlightDataStream,
) -> impl Stream<Item = Result<FlightData, Status>> + Send + 'static {
    let end = stream::once(tokio::task::yield_now()).filter_map(|()| ready(None));
    messages.chain(end).try_filter(|message| ready(!message.data_header.is_empty()))
}
