//! A client of MySQL's protocol (version 10, capabilities of 4.1): no password, texts alone.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::check::Check;
use crate::dbms::clients::{DbmsClient, row_sum};
use crate::protocol::{Answer, Kind};

/// Long passwords, files from here, the protocol of 4.1, transactions, authentication of 4.1.
const CAPABILITIES: u32 = 0x1 | 0x80 | 0x200 | 0x2000 | 0x8000;
/// Longest packet.
const PACKET_MAX: u32 = 1 << 24;
/// Bytes of a file in a packet; MySQL 5.5 refuses packets above 1 MiB.
const PART: usize = 64 << 10;
/// `latin1_swedish_ci`
const LATIN1: u8 = 8;
const QUERY: u8 = 3;

/// First bytes of answers.
const OK: u8 = 0x00;
const LOCAL_FILE: u8 = 0xfb;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;

/// A connection.
pub(super) struct MysqlClient {
    stream: BufReader<UnixStream>,
    /// Number of the next packet.
    number: u8,
}

impl MysqlClient {
    /// Connects as root.
    pub(super) fn connect(socket: &Path, patience: Duration) -> Result<Self> {
        let stream = UnixStream::connect(socket)
            .with_context(|| format!("cannot connect to {}", socket.display()))?;
        stream.set_read_timeout(Some(patience))?;
        let mut client = Self { stream: BufReader::with_capacity(64 << 10, stream), number: 0 };
        client.receive()?;
        let mut hello = CAPABILITIES.to_le_bytes().to_vec();
        hello.extend_from_slice(&PACKET_MAX.to_le_bytes());
        hello.push(LATIN1);
        hello.extend_from_slice(&[0; 23]);
        hello.extend_from_slice(b"root\0\0");
        client.send(&hello)?;
        let mut answer = client.receive()?;
        if answer.first() == Some(&END) {
            // Another way of authentication, in which an empty password is empty too.
            client.send(&[])?;
            answer = client.receive()?;
        }
        ok(&answer)?;
        Ok(client)
    }

    /// Runs a statement; number of its rows.
    pub(super) fn run(&mut self, sql: &str) -> Result<u64> {
        Ok(self.visit(sql, None, &mut |_| Ok(()))?.1)
    }

    /// Runs a LOAD DATA LOCAL.
    pub(super) fn load(&mut self, sql: &str, file: &Path) -> Result<()> {
        let file = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
        self.visit(sql, Some(file), &mut |_| Ok(())).map(|_| ())
    }

    /// The whole result of a statement.
    pub(super) fn answer(&mut self, sql: &str) -> Result<Answer> {
        let mut values = Vec::new();
        let (columns, _) = self.visit(sql, None, &mut |row| {
            values.push(row_values(row).context("a row that cannot be read")?);
            Ok(())
        })?;
        Ok(Answer { columns, values, ..Answer::default() })
    }

    /// Runs a statement and visits the packets of its rows; kinds of its columns, and number of its rows.
    fn visit(
        &mut self,
        sql: &str,
        file: Option<File>,
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<(Vec<Kind>, u64)> {
        self.number = 0;
        self.send(&[&[QUERY], sql.as_bytes()].concat())?;
        let mut first = self.receive()?;
        if first.first() == Some(&LOCAL_FILE) {
            self.send_file(file)?;
            first = self.receive()?;
        }
        if matches!(first.first(), Some(&OK | &ERROR) | None) {
            return ok(&first).map(|()| (Vec::new(), 0));
        }
        let (count, _) = length(&first).flatten_length().context("no number of columns")?;
        let mut kinds = Vec::new();
        for _ in 0..count {
            kinds.push(column_kind(&self.receive()?).context("a column that cannot be read")?);
        }
        self.receive()?;
        let mut rows = 0;
        loop {
            let row = self.receive()?;
            match row.first() {
                Some(&END) if row.len() < 9 => return Ok((kinds, rows)),
                Some(&ERROR) => ok(&row)?,
                _ => {
                    visit(&row)?;
                    rows += 1;
                }
            }
        }
    }

    fn send_file(&mut self, file: Option<File>) -> Result<()> {
        if let Some(mut file) = file {
            let mut part = vec![0; PART];
            loop {
                match file.read(&mut part)? {
                    0 => break,
                    read => self.send(&part[..read])?,
                }
            }
        }
        self.send(&[])
    }

    fn send(&mut self, body: &[u8]) -> Result<()> {
        let length = (body.len() as u32).to_le_bytes();
        let head = [length[0], length[1], length[2], self.number];
        self.number = self.number.wrapping_add(1);
        Ok(self.stream.get_mut().write_all(&[&head, body].concat())?)
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).context("the server does not answer")?;
        self.number = head[3].wrapping_add(1);
        let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.stream.read_exact(&mut body).context("the server ended the connection")?;
        Ok(body)
    }
}

impl DbmsClient for MysqlClient {
    fn run(&mut self, sql: &str, is_summed: bool) -> Result<Check> {
        let mut checksum = 0_u64;
        let (_, rows) = self.visit(sql, None, &mut |row| {
            if is_summed {
                checksum = checksum.wrapping_add(row_sum(row));
            }
            Ok(())
        })?;
        Ok(Check { rows, checksum })
    }
}

/// Whether an answer is an error, in the server's words.
fn ok(answer: &[u8]) -> Result<()> {
    match answer {
        // After the code: a mark and the SQLSTATE.
        [ERROR, _, _, b'#', state @ ..] => {
            let text = String::from_utf8_lossy(state.get(5..).unwrap_or_default());
            bail!("the server reports: {text}")
        }
        [ERROR, rest @ ..] => {
            bail!(
                "the server reports: {}",
                String::from_utf8_lossy(rest.get(2..).unwrap_or_default())
            )
        }
        _ => Ok(()),
    }
}

/// A length at the beginning of a text: `None` is NULL.
enum Length<'a> {
    Null(&'a [u8]),
    Bytes(u64, &'a [u8]),
    Missing,
}

impl<'a> Length<'a> {
    fn flatten_length(self) -> Option<(u64, &'a [u8])> {
        match self {
            Self::Bytes(length, rest) => Some((length, rest)),
            Self::Null(_) | Self::Missing => None,
        }
    }
}

fn length(bytes: &[u8]) -> Length<'_> {
    let Some((first, rest)) = bytes.split_first() else { return Length::Missing };
    let width = match first {
        0xfb => return Length::Null(rest),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        small => return Length::Bytes(u64::from(*small), rest),
    };
    let Some((number, rest)) = rest.split_at_checked(width) else { return Length::Missing };
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(number);
    Length::Bytes(u64::from_le_bytes(wide), rest)
}

/// A text, and what stands behind it.
fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = length(bytes).flatten_length()?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// The kind of a column, from its description.
fn column_kind(mut packet: &[u8]) -> Option<Kind> {
    // Catalog, schema, table and column, both also by their own names.
    for _ in 0..6 {
        (_, packet) = string(packet)?;
    }
    // The length of what follows, the character set and the width.
    Some(match packet.get(7)? {
        1 | 2 | 3 | 8 | 9 => Kind::Integer,
        0 | 246 => Kind::Decimal,
        4 | 5 => Kind::Float,
        _ => Kind::Text,
    })
}

fn row_values(mut row: &[u8]) -> Option<Vec<Option<String>>> {
    let mut values = Vec::new();
    while !row.is_empty() {
        if let Length::Null(rest) = length(row) {
            values.push(None);
            row = rest;
            continue;
        }
        let (text, rest) = string(row)?;
        values.push(Some(String::from_utf8_lossy(text).into_owned()));
        row = rest;
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_columns_and_errors_are_read() {
        let long = [&[0xfc, 0x2c, 0x01][..], &[b'x'; 300]].concat();
        let row = [&[1, b'7', 0xfb][..], &long].concat();
        let values = row_values(&row).expect("a row");
        assert_eq!(values[..2], [Some("7".to_owned()), None]);
        assert_eq!(values[2].as_ref().map(String::len), Some(300));
        assert_eq!(row_values(&[5, b'a']), None, "a row that is cut off");
        let column = [&[0; 6][..], &[12, 8, 0, 1, 0, 0, 0, 246]].concat();
        assert_eq!(column_kind(&column), Some(Kind::Decimal));
        let error = ok(b"\xff\x15\x04#28000no entry").unwrap_err().to_string();
        assert_eq!(error, "the server reports: no entry");
        assert!(ok(&[OK, 0, 0]).is_ok());
    }
}
