//! Messages that a client streams to the server.

use arrow_flight::FlightData;
use arrow_flight::sql::server::PeekableFlightDataStream;
use futures::future::ready;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tonic::Status;

/// A client's data messages, up to the end of stream that the client itself sent.
///
/// When a client abandons a request, tonic ends its stream as if it were complete (`tonic/src/codec/decode.rs`, 0.14).
/// hyper drops the handler of such a request as soon as it waits, so this waits before anything acts on half of the
/// messages.
pub(super) fn whole(
    messages: PeekableFlightDataStream,
) -> impl Stream<Item = Result<FlightData, Status>> + Send + 'static {
    let end = stream::once(tokio::task::yield_now()).filter_map(|()| ready(None));
    messages.chain(end).try_filter(|message| ready(!message.data_header.is_empty()))
}
