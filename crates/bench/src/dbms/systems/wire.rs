//! Servers that speak PostgreSQL's protocol: PostgreSQL itself, and `atoll serve`.

use std::fs::File;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::check::Check;
use crate::dbms::clients::{DbmsClient, DbmsOutcome, DbmsWork, drive, row_sum};
use crate::dbms::data::DbmsData;
use crate::dbms::dialect::Dialect;
use crate::dbms::schema::literal;
use crate::dbms::system::{DbmsEngine, InstanceOptions};
use crate::protocol::{Answer, Kind};
use crate::server::process::{DatabaseServer, PostgresPrograms};
use crate::server::wire::WireClient;

/// A running server.
pub(in crate::dbms) struct WireServer {
    server: DatabaseServer,
    version: String,
    settings: String,
    options: InstanceOptions,
    is_postgres: bool,
}

impl WireServer {
    /// PostgreSQL over a new cluster.
    pub(in crate::dbms) fn postgresql(
        programs: &PostgresPrograms,
        options: InstanceOptions,
    ) -> Result<Self> {
        let megabytes = options.buffer_bytes >> 20;
        let settings = [
            format!("shared_buffers={megabytes}MB"),
            format!("max_connections={}", options.clients + 20),
            "max_parallel_workers_per_gather=0".to_owned(),
            "jit=off".to_owned(),
            "autovacuum=off".to_owned(),
            "fsync=off".to_owned(),
            "wal_level=minimal".to_owned(),
            "max_wal_senders=0".to_owned(),
            "max_wal_size=64GB".to_owned(),
            "work_mem=256MB".to_owned(),
        ];
        let directory = tempfile::tempdir_in(&options.directory)?;
        let server = DatabaseServer::postgresql(programs, directory, &settings, options.mask)?;
        let (version, settings) = (programs.version(), settings.join(", "));
        Ok(Self { server, version, settings, options, is_postgres: true })
    }

    /// `atoll serve`, all data in memory.
    pub(in crate::dbms) fn atoll(options: InstanceOptions) -> Result<Self> {
        let directory = tempfile::tempdir_in(&options.directory)?;
        let (threads, mask) = (options.threads, options.mask);
        let server = DatabaseServer::atoll(directory, threads, false, mask)?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let settings = format!("{threads} workers, in memory");
        Ok(Self { server, version, settings, options, is_postgres: false })
    }

    fn address(&self) -> ServerAddress {
        let DatabaseServer { address, user, database, .. } = self.server;
        ServerAddress { address, user, database, patience: self.options.patience }
    }
}

impl DbmsEngine for WireServer {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn process(&self) -> (u32, i32) {
        self.server.process()
    }

    fn load(&mut self, data: &DbmsData) -> Result<()> {
        let mut client = self.address().connect()?;
        if !self.is_postgres && self.options.is_placed {
            // The policy of the process, not Atoll's own placement.
            client.run("SET atoll.placement = 'default'")?;
        }
        for table in data.tables() {
            let name = table.name;
            client.run(&table.create(Dialect::Postgres))?;
            if data.is_filled(name) {
                let file = data.text(name);
                let open =
                    File::open(&file).with_context(|| format!("cannot open {}", literal(&file)))?;
                let copy = format!("COPY {name} FROM STDIN (FORMAT csv, DELIMITER '|')");
                client.copy(&copy, open).with_context(|| format!("cannot load {name}"))?;
            }
            let keys = match self.is_postgres {
                true => table.indexes(),
                false => table.written_key().into_iter().collect(),
            };
            keys.iter().try_for_each(|sql| client.run(sql).map(|_| ()))?;
            if self.is_postgres {
                client.run(&format!("VACUUM ANALYZE {name}"))?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, sql: &str) -> Result<Answer> {
        let mut answer = Answer::default();
        self.address().connect()?.visit(sql, &mut |kind, body| {
            match kind {
                b'T' => answer.columns = columns(body).context("columns that cannot be read")?,
                _ => answer.values.push(values(body).context("a row that cannot be read")?),
            }
            Ok(())
        })?;
        Ok(answer)
    }

    fn run(&mut self, work: &DbmsWork) -> Result<DbmsOutcome> {
        let address = self.address();
        drive(|| address.connect(), work, self.options.cpus.as_ref())
    }
}

/// Where clients connect.
#[derive(Clone, Copy)]
struct ServerAddress {
    address: SocketAddr,
    user: &'static str,
    database: &'static str,
    patience: Duration,
}

impl ServerAddress {
    fn connect(&self) -> Result<WireClient> {
        WireClient::connect(self.address, self.user, self.database, self.patience)
    }
}

impl DbmsClient for WireClient {
    fn run(&mut self, sql: &str, is_summed: bool) -> Result<Check> {
        if !is_summed {
            return Ok(Check { rows: Self::run(self, sql)?.rows, checksum: 0 });
        }
        let mut checksum = 0_u64;
        let done = self.visit(sql, &mut |kind, body| {
            if kind == b'D' {
                checksum = checksum.wrapping_add(row_sum(body));
            }
            Ok(())
        })?;
        Ok(Check { rows: done.rows, checksum })
    }
}

/// Kinds of the columns that a message describes.
fn columns(body: &[u8]) -> Option<Vec<Kind>> {
    let (count, mut rest) = take::<2>(body)?;
    let mut kinds = Vec::new();
    for _ in 0..u16::from_be_bytes(count) {
        let name = rest.iter().position(|byte| *byte == 0)?;
        // After the name: the table, the column, and then the type.
        let (_, after) = take::<6>(rest.get(name + 1..)?)?;
        let (kind, after) = take::<4>(after)?;
        kinds.push(match u32::from_be_bytes(kind) {
            20 | 21 | 23 => Kind::Integer,
            1700 => Kind::Decimal,
            700 | 701 => Kind::Float,
            _ => Kind::Text,
        });
        // The size and modifier of the type, and the format.
        (_, rest) = take::<8>(after)?;
    }
    Some(kinds)
}

/// Values of a row.
fn values(body: &[u8]) -> Option<Vec<Option<String>>> {
    let (count, mut rest) = take::<2>(body)?;
    let mut values = Vec::new();
    for _ in 0..u16::from_be_bytes(count) {
        let (length, after) = take::<4>(rest)?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(length)) else {
            values.push(None);
            rest = after;
            continue;
        };
        values.push(Some(String::from_utf8_lossy(after.get(..length)?).into_owned()));
        rest = after.get(length..)?;
    }
    Some(values)
}

fn take<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
    bytes.split_first_chunk::<N>().map(|(first, rest)| (*first, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_rows_are_read() {
        let column = |name: &str, kind: u32| {
            [name.as_bytes(), &[0; 7], &kind.to_be_bytes(), &[0; 8]].concat()
        };
        let body = [&2_u16.to_be_bytes()[..], &column("a", 1700), &column("bc", 25)].concat();
        assert_eq!(columns(&body), Some(vec![Kind::Decimal, Kind::Text]));
        assert_eq!(columns(&body[..20]), None);
        let body = [&2_u16.to_be_bytes()[..], &(-1_i32).to_be_bytes(), &1_i32.to_be_bytes(), b"x"];
        assert_eq!(values(&body.concat()), Some(vec![None, Some("x".to_owned())]));
    }
}
