//! Connections: accepts them, encrypts those that begin with TLS, and hands them to the gRPC server.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::Server;
use tonic::transport::server::Connected;

use super::connection::FlightConnection;
use super::guard::GuardedService;
use crate::connection::{ClientStream, prepare};
use crate::shared::Shared;

/// Bytes of a client's message, at most: clients send batches of any size.
const MESSAGE_MAX: usize = 64 << 20;

/// Flow-control windows: bytes that a client may send ahead on a stream, and on a connection.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// Bytes of a client's frame, at most. Each small frame costs a system call on either side.
const FRAME_MAX: u32 = 1 << 20;

/// Requests at the same time over one connection.
const REQUESTS_MAX: u32 = 256;

/// How often a silent connection gets a keep-alive ping, and how long the reply may take.
const ASKED_EACH: Duration = Duration::from_secs(30);
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

/// How long an idle client may take to disconnect when the server stops.
const TOLD_WITHIN: Duration = Duration::from_millis(500);

/// The pause when file descriptors run out.
const EXHAUSTED: Duration = Duration::from_millis(50);

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;

/// Serves until the server stops: then connections end once their requests have. Dropping this ends the rest.
pub(crate) async fn serve_flight(listener: TcpListener, server: Arc<Shared>) {
    let killed = CancellationToken::new();
    let _killed = killed.clone().drop_guard();
    let (sender, mut accepted) = channel(1);
    let mut accepting = JoinSet::new();
    accepting.spawn(accept_all(listener, Arc::clone(&server), killed, sender));
    let stopping = server.stopping.clone().cancelled_owned();
    let service = FlightServiceServer::new(GuardedService::new(server));
    let service = service.max_decoding_message_size(MESSAGE_MAX);
    let incoming = futures::stream::poll_fn(move |context| accepted.poll_recv(context));
    let serving = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_MAX)
        .max_concurrent_streams(REQUESTS_MAX)
        .http2_keepalive_interval(Some(ASKED_EACH))
        .http2_keepalive_timeout(Some(ANSWERED_WITHIN))
        .add_service(service)
        .serve_with_incoming_shutdown(incoming, stopping);
    // Fails only if connections cannot be accepted, which their clients notice.
    let _ = serving.await;
}

/// Accepts connections until the server stops. Each starts in its own task, so that none waits for another.
async fn accept_all(
    listener: TcpListener,
    server: Arc<Shared>,
    killed: CancellationToken,
    accepted: Sender<io::Result<FlightStream>>,
) {
    let mut beginning = JoinSet::new();
    loop {
        let (stream, address) = tokio::select! {
            () = server.stopping.cancelled() => return,
            Some(_) = beginning.join_next() => continue,
            stream = listener.accept() => match stream {
                Ok(stream) => stream,
                Err(_) => {
                    tokio::time::sleep(EXHAUSTED).await;
                    continue;
                }
            },
        };
        server.metrics.connected();
        let (server, killed) = (Arc::clone(&server), killed.clone());
        let accepted = accepted.clone();
        beginning.spawn(async move {
            if let Some(stream) = begin(stream, address, &server, &killed).await {
                // The server may be stopping.
                let _ = accepted.send(Ok(stream)).await;
            }
        });
    }
}

/// Sets up a connection; None if it is refused or not ready in time.
async fn begin(
    stream: TcpStream,
    address: SocketAddr,
    server: &Arc<Shared>,
    killed: &CancellationToken,
) -> Option<FlightStream> {
    let stranger = Arc::clone(&server.strangers).try_acquire_owned().ok()?;
    prepare(&stream).ok()?;
    let limit = server.options.login_timeout;
    let stream = tokio::time::timeout(limit, encrypted(stream, server)).await.ok()??;
    let client = (address, matches!(stream, ClientStream::Tls(_)));
    let connection = server.flight().connections.enter(client, stranger, killed.child_token());
    tokio::spawn(watch(Arc::clone(&connection), Arc::clone(server)));
    let ended = Box::pin(connection.ended.clone().cancelled_owned());
    Some(FlightStream { stream, connection, ended, server: Arc::clone(server) })
}

/// The stream, encrypted if the client starts TLS; None if TLS is required and the client does not.
async fn encrypted(stream: TcpStream, server: &Shared) -> Option<ClientStream> {
    let mut first = [0];
    if stream.peek(&mut first).await.ok()? == 0 {
        return None;
    }
    if first != [TLS_HANDSHAKE] {
        return (!server.options.tls_required).then_some(ClientStream::Tcp(stream));
    }
    let stream = server.tls()?.http2.accept(stream).await.ok()?;
    Some(ClientStream::Tls(Box::new(stream)))
}

/// Ends a connection over which no client logs in. When the server stops, the connection ends once its requests are
/// answered: its client gets GOAWAY, and a limited time to leave.
async fn watch(connection: Arc<FlightConnection>, server: Arc<Shared>) {
    let no_log_in = async {
        tokio::time::sleep(server.options.login_timeout).await;
        if !connection.is_stranger() {
            std::future::pending::<()>().await;
        }
    };
    let stopped = async {
        server.stopping.cancelled().await;
        connection.answered().await;
        tokio::time::sleep(TOLD_WITHIN).await;
    };
    tokio::select! {
        () = connection.ended.cancelled() => {}
        () = no_log_in => connection.ended.cancel(),
        () = stopped => connection.ended.cancel(),
    }
}

/// The bytes of a connection. Dropping it ends everything that was created over the connection.
struct FlightStream {
    stream: ClientStream,
    connection: Arc<FlightConnection>,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    server: Arc<Shared>,
}

impl Drop for FlightStream {
    fn drop(&mut self) {
        self.server.flight().connections.leave(&self.connection);
    }
}

impl Connected for FlightStream {
    type ConnectInfo = Arc<FlightConnection>;

    fn connect_info(&self) -> Self::ConnectInfo {
        Arc::clone(&self.connection)
    }
}

impl AsyncRead for FlightStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for FlightStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
