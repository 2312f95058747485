//! A client of PostgreSQL's protocol: no password, texts alone. Rows are discarded where they arrive, unless their
//! bytes are asked for.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Bytes that are read at a time.
const BUFFER: usize = 256 << 10;

/// Version 3.0 of the protocol.
const VERSION: u32 = 3 << 16;

/// What is done with the bodies of columns and rows.
type Visit<'a> = Option<&'a mut dyn FnMut(u8, &[u8]) -> Result<()>>;

/// A connection.
pub(crate) struct WireClient {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The part of the buffer that is read but not parsed yet.
    filled: std::ops::Range<usize>,
}

/// The result of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Discarded {
    pub(crate) rows: u64,
    /// Bytes of messages with rows.
    pub(crate) bytes: u64,
}

impl WireClient {
    /// Connects, and waits until a statement can be sent.
    pub(crate) fn connect(
        address: SocketAddr,
        user: &str,
        database: &str,
        patience: Duration,
    ) -> Result<Self> {
        let stream =
            TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        let mut client = Self { stream, buffer: Vec::new(), filled: 0..0 };
        let mut body = VERSION.to_be_bytes().to_vec();
        for text in ["user", user, "database", database, ""] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        client.send(None, &body)?;
        client.until(b'Z', None)?;
        Ok(client)
    }

    /// Sends a statement and discards its rows.
    pub(crate) fn run(&mut self, sql: &str) -> Result<Discarded> {
        let body = [sql.as_bytes(), &[0]].concat();
        self.send(Some(b'Q'), &body)?;
        self.until(b'Z', None)
    }

    /// Sends a statement; `visit` gets the bodies of messages with columns (`T`) and rows (`D`).
    pub(crate) fn visit(
        &mut self,
        sql: &str,
        visit: &mut dyn FnMut(u8, &[u8]) -> Result<()>,
    ) -> Result<Discarded> {
        self.send(Some(b'Q'), &[sql.as_bytes(), &[0]].concat())?;
        self.until(b'Z', Some(visit))
    }

    /// Sends a COPY … FROM STDIN and its data.
    pub(crate) fn copy(&mut self, sql: &str, mut data: impl Read) -> Result<()> {
        self.send(Some(b'Q'), &[sql.as_bytes(), &[0]].concat())?;
        self.until(b'G', None)?;
        let mut part = vec![0; BUFFER];
        loop {
            match data.read(&mut part)? {
                0 => break,
                read => self.send(Some(b'd'), &part[..read])?,
            }
        }
        self.send(Some(b'c'), &[])?;
        self.until(b'Z', None).map(|_| ())
    }

    /// Gives the room for messages back: an idle client needs none.
    pub(crate) fn rest(&mut self) {
        self.buffer = Vec::new();
        self.filled = 0..0;
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> Result<()> {
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(body);
        Ok(self.stream.write_all(&message)?)
    }

    /// Reads until a message of this kind, or until a statement can be sent.
    fn until(&mut self, end: u8, mut visit: Visit<'_>) -> Result<Discarded> {
        let mut discarded = Discarded::default();
        let mut failure = None;
        loop {
            let [kind, length @ ..] = self.take::<5>()?;
            let length = u32::from_be_bytes(length) as usize;
            let body = length.checked_sub(4).context("a message is shorter than its length")?;
            if kind == b'Z' || kind == end {
                self.skip(body)?;
                break;
            }
            if let (b'D' | b'T', Some(visit)) = (kind, &mut visit) {
                let bytes = self.bytes(body)?;
                visit(kind, &bytes)?;
                discarded.rows += u64::from(kind == b'D');
                continue;
            }
            match kind {
                b'D' => {
                    discarded.rows += 1;
                    discarded.bytes += body as u64 + 5;
                }
                b'E' => {
                    failure = Some(self.text(body)?);
                    continue;
                }
                b'R' => {
                    let code = u32::from_be_bytes(self.take::<4>()?);
                    if code != 0 {
                        bail!("the server asks for a password");
                    }
                    self.skip(body.saturating_sub(4))?;
                    continue;
                }
                _ => {}
            }
            self.skip(body)?;
        }
        match failure {
            None => Ok(discarded),
            Some(text) => bail!("the server reports: {}", text.replace('\0', " ")),
        }
    }

    fn text(&mut self, length: usize) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(length)?).into_owned())
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut text = Vec::with_capacity(length.min(BUFFER));
        while text.len() < length {
            self.fill()?;
            let part = self.filled.len().min(length - text.len());
            text.extend_from_slice(&self.buffer[self.filled.start..self.filled.start + part]);
            self.filled.start += part;
        }
        Ok(text)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            self.fill()?;
            *byte = self.buffer[self.filled.start];
            self.filled.start += 1;
        }
        Ok(bytes)
    }

    fn skip(&mut self, mut bytes: usize) -> Result<()> {
        while bytes > 0 {
            self.fill()?;
            let part = self.filled.len().min(bytes);
            self.filled.start += part;
            bytes -= part;
        }
        Ok(())
    }

    /// Reads more if all is parsed.
    fn fill(&mut self) -> Result<()> {
        if self.filled.is_empty() {
            self.buffer.resize(BUFFER, 0);
            let read = self.stream.read(&mut self.buffer).context("the server does not answer")?;
            anyhow::ensure!(read > 0, "the server ended the connection");
            self.filled = 0..read;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::{Discarded, WireClient};

    /// A server that answers each message with one of these byte strings.
    fn server(answers: Vec<Vec<u8>>) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            for answer in answers {
                assert!(stream.read(&mut [0; 1024]).expect("a message") > 0);
                stream.write_all(&answer).expect("the client reads");
            }
        });
        address
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
    }

    fn connect(answers: Vec<Vec<u8>>) -> anyhow::Result<WireClient> {
        WireClient::connect(server(answers), "ann", "atoll", Duration::from_secs(60))
    }

    #[test]
    fn rows_are_counted_and_discarded() {
        let hello = [message(b'R', &[0; 4]), message(b'Z', b"I")].concat();
        let long = vec![7; 600_000];
        let rows = [
            message(b'T', b"columns"),
            message(b'D', b"row"),
            message(b'D', &long),
            message(b'C', b"SELECT 2\0"),
            message(b'Z', b"I"),
        ];
        let error = [message(b'E', b"SERROR\0Mno\0\0"), message(b'Z', b"I")].concat();
        let mut client = connect(vec![hello, rows.concat(), error]).expect("a connection");
        let all = Discarded { rows: 2, bytes: 8 + 600_005 };
        assert_eq!(client.run("SELECT").expect("rows"), all);
        client.rest();
        let error = client.run("SELEC").expect_err("it failed").to_string();
        assert!(error.contains("Mno"), "{error}");
        assert!(client.run("SELECT").is_err(), "the server is gone");
    }

    #[test]
    fn a_server_that_asks_for_a_password_is_not_measured() {
        let error = connect(vec![message(b'R', &10_u32.to_be_bytes())]).err().expect("refused");
        assert!(error.to_string().contains("password"), "{error}");
    }
}
