//! The least HTTP that Prometheus needs: `GET /metrics`. Each connection has a thread, a deadline for
//! its reading and one for its writing, and a bound on what it may send; one that is idle delays no
//! other.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// A connection's time for everything. A local scrape takes a millisecond.
const DEADLINE: Duration = Duration::from_secs(2);
/// Most bytes of a request: Prometheus sends some 300.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The end of a request's head.
const END: &[u8] = b"\r\n\r\n";
/// What Prometheus expects.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 64;

/// A request for the page. It waits until it is [answered](Self::answer).
pub(crate) struct Request {
    page: Sender<String>,
    written: Receiver<()>,
}

impl Request {
    /// Sends the page; returns when it has been written or the client has gone or is too slow.
    pub(crate) fn answer(self, page: String) {
        // A client that went away wants no page.
        let _ = self.page.send(page);
        let _ = self.written.recv_timeout(DEADLINE);
    }
}

/// Takes connections on their own threads and hands over what asks for the page.
pub(crate) fn listen(listener: TcpListener) -> Receiver<Request> {
    let (send, requests) = mpsc::channel();
    std::thread::spawn(move || {
        // One is held by each connection.
        let open = Arc::new(());
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            if Arc::strong_count(&open) <= CONNECTIONS_MAX {
                let (held, send) = (Arc::clone(&open), send.clone());
                std::thread::spawn(move || {
                    serve(&stream, &send);
                    drop(held);
                });
            }
        }
    });
    requests
}

fn serve(stream: &TcpStream, requests: &Sender<Request>) {
    let (written, waited_for) = mpsc::channel();
    answer(stream, || {
        let (page, made) = mpsc::channel();
        // Where the server ends, nothing is answered any more.
        let _ = requests.send(Request { page, written: waited_for });
        made.recv().unwrap_or_default()
    });
    let _ = written.send(());
}

/// Answers one request. `page` is called only for a valid request. What goes wrong with a client is its
/// own affair.
fn answer(stream: &TcpStream, page: impl FnOnce() -> String) {
    let deadline = Instant::now() + DEADLINE;
    let (status, body) = match read_head(stream, deadline) {
        Ok(head) => respond(&head, page),
        Err(status) => (status, String::new()),
    };
    let body = if body.is_empty() { format!("{status}\n") } else { body };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {TEXT}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // The page may have taken a while: writing has its own time.
    let deadline = Instant::now() + DEADLINE;
    let _ = write_all(stream, head.as_bytes(), deadline)
        .and_then(|()| write_all(stream, body.as_bytes(), deadline));
}

fn respond(head: &str, page: impl FnOnce() -> String) -> (&'static str, String) {
    let line = head.lines().next().unwrap_or_default();
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["GET", path, version] if version.starts_with("HTTP/1.") => match path.split('?').next() {
            Some("/metrics") => ("200 OK", page()),
            _ => ("404 Not Found", "not found; the path is /metrics\n".to_owned()),
        },
        [_, _, version] if version.starts_with("HTTP/") => {
            ("405 Method Not Allowed", "method not allowed; use GET\n".to_owned())
        }
        _ => ("400 Bad Request", String::new()),
    }
}

/// The time left, as a timeout; zero means no timeout, which sockets reject.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn read_head(mut stream: &TcpStream, deadline: Instant) -> Result<String, &'static str> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(END.len()).any(|window| window == END) {
        let timeout = left(deadline).and_then(|left| stream.set_read_timeout(Some(left)));
        let read = timeout.and_then(|()| stream.read(&mut buffer));
        match read {
            Ok(0) => return Err("400 Bad Request"),
            Ok(length) => head.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err("408 Request Timeout"),
        }
        if head.len() > REQUEST_BYTES_MAX {
            return Err("431 Request Header Fields Too Large");
        }
    }
    String::from_utf8(head).map_err(|_| "400 Bad Request")
}

fn write_all(mut stream: &TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
