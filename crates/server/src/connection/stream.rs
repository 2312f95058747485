//! The byte stream of a connection: TCP or Unix socket, with or without TLS.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use atoll_sys::{KeepAlive, set_keep_alive};
use tokio::io::{AsyncRead, AsyncWrite, Empty, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// TCP keep-alive: an idle client is probed after two minutes and given up half a minute later; so is one that does not
/// acknowledge data.
const KEEP_ALIVE: KeepAlive =
    KeepAlive { idle_s: 120, interval_s: 10, count: 3, unacknowledged_ms: 150_000 };

/// A connection's stream.
#[derive(Debug)]
pub(crate) enum ClientStream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over TCP, encrypted.
    Tls(Box<TlsStream<TcpStream>>),
    /// Over a Unix socket.
    Unix(UnixStream),
    /// Closed.
    Closed(Empty),
}

/// Calls the same method on any of the streams.
macro_rules! each {
    ($self:ident, $stream:ident => $does:expr) => {
        match $self.get_mut() {
            ClientStream::Tcp($stream) => $does,
            ClientStream::Tls($stream) => $does,
            ClientStream::Unix($stream) => $does,
            ClientStream::Closed($stream) => $does,
        }
    };
}

/// How often to check whether a client that is not read is still connected.
const LOOKED_EACH: Duration = Duration::from_millis(50);

impl ClientStream {
    /// Moves the socket to the current thread's runtime. An encrypted stream stays where it began.
    pub(crate) fn adopt(&mut self) -> io::Result<()> {
        *self = match std::mem::replace(self, Self::Closed(tokio::io::empty())) {
            Self::Tcp(stream) => Self::Tcp(TcpStream::from_std(stream.into_std()?)?),
            Self::Unix(stream) => Self::Unix(UnixStream::from_std(stream.into_std()?)?),
            other => other,
        };
        Ok(())
    }

    /// Waits until the client closes the connection, without reading its data.
    pub(crate) async fn closed(&self) {
        loop {
            // With unread data, the socket is always ready to read, so its state has to be polled.
            tokio::time::sleep(LOOKED_EACH).await;
            let ready = match self {
                Self::Tcp(stream) => stream.ready(Interest::READABLE).await,
                Self::Tls(stream) => stream.get_ref().0.ready(Interest::READABLE).await,
                Self::Unix(stream) => stream.ready(Interest::READABLE).await,
                Self::Closed(_) => return,
            };
            if ready.is_err() || ready.is_ok_and(|ready| ready.is_read_closed()) {
                return;
            }
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Closed(_) => false,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(context))
    }
}

/// Sets the options of TCP connections.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Responses are written whole: Nagle's algorithm only delays them.
    stream.set_nodelay(true)?;
    let kept = set_keep_alive(stream.as_fd(), KEEP_ALIVE);
    kept.map_err(|error| io::Error::from_raw_os_error(error.errno))
}
