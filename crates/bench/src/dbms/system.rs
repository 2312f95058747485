//! Systems behind one trait: what is started for an instance, loaded, and asked.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use atoll_sys::SignalMask;
use atoll_topology::CpuSet;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::clients::{DbmsOutcome, DbmsWork};
use super::data::DbmsData;
use super::dialect::Dialect;
use super::systems::embedded::{self, Embedded};
use super::systems::mysql::{Mysql, MysqlPrograms, MysqlTables};
use super::systems::postgresql_18;
use super::systems::wire::WireServer;
use crate::protocol::Answer;
use crate::server::process::PostgresPrograms;

/// A system that runs, with an instance's data.
pub(super) trait DbmsEngine: Send {
    /// Its version.
    fn version(&self) -> String;

    /// Settings that matter, in the system's words.
    fn settings(&self) -> String;

    /// The number of its first process, and the signal that ends it with all its children.
    fn process(&self) -> (u32, i32);

    /// Makes and fills the tables.
    fn load(&mut self, data: &DbmsData) -> Result<()>;

    /// The whole result of a statement.
    fn answer(&mut self, sql: &str) -> Result<Answer>;

    /// Runs the clients.
    fn run(&mut self, work: &DbmsWork) -> Result<DbmsOutcome>;
}

/// What an instance is started with.
#[derive(Clone, Debug)]
pub(super) struct InstanceOptions {
    /// Cpus of its clients; `None` if they are free.
    pub(super) cpus: Option<CpuSet>,
    /// Threads that it may use, where it asks.
    pub(super) threads: usize,
    /// Whether the placement of the process decides, and not the system's own.
    pub(super) is_placed: bool,
    pub(super) clients: u32,
    /// Bytes of buffers that hold its data.
    pub(super) buffer_bytes: u64,
    /// A directory of its own, which exists.
    pub(super) directory: PathBuf,
    /// The Python that has embedded systems.
    pub(super) python: Option<PathBuf>,
    pub(super) patience: Duration,
    /// Its number in the lab.
    pub(super) lab: Option<u8>,
    /// Signals that its processes start with blocked.
    pub(super) mask: SignalMask,
}

/// The systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub(super) enum SystemName {
    /// PostgreSQL
    Postgresql,
    /// PostgreSQL 18
    #[serde(rename = "postgresql-18")]
    #[value(name = "postgresql-18")]
    Postgresql18,
    /// `atoll serve`
    AtollServer,
    /// Atoll in a program
    Atoll,
    /// DuckDB in a program
    Duckdb,
    /// SQLite in a program
    Sqlite,
    /// MariaDB, MEMORY tables
    MariadbMemory,
    /// MariaDB, InnoDB tables
    MariadbInnodb,
    /// MySQL 5.5, MEMORY tables (the paper's)
    MysqlMemory,
    /// MySQL 5.5, InnoDB tables
    MysqlInnodb,
    /// MonetDB in a program
    Monetdb,
    /// ClickHouse in a program
    Clickhouse,
}

impl SystemName {
    /// Its name on the command line and in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Postgresql => "postgresql",
            Self::Postgresql18 => "postgresql-18",
            Self::AtollServer => "atoll-server",
            Self::Atoll => "atoll",
            Self::Duckdb => "duckdb",
            Self::Sqlite => "sqlite",
            Self::MariadbMemory => "mariadb-memory",
            Self::MariadbInnodb => "mariadb-innodb",
            Self::MysqlMemory => "mysql-memory",
            Self::MysqlInnodb => "mysql-innodb",
            Self::Monetdb => "monetdb",
            Self::Clickhouse => "clickhouse",
        }
    }

    /// Which SQL it takes.
    pub(super) fn dialect(self) -> Dialect {
        match self {
            Self::Postgresql
            | Self::Postgresql18
            | Self::AtollServer
            | Self::Atoll
            | Self::Duckdb
            | Self::Monetdb => Dialect::Postgres,
            Self::Sqlite => Dialect::Sqlite,
            Self::MariadbMemory | Self::MariadbInnodb | Self::MysqlMemory | Self::MysqlInnodb => {
                Dialect::Mysql
            }
            Self::Clickhouse => Dialect::Clickhouse,
        }
    }

    /// Whether several statements of it are one transaction.
    pub(super) fn has_transactions(self) -> bool {
        !matches!(self, Self::Clickhouse | Self::MariadbMemory | Self::MysqlMemory)
    }

    /// Whether it is measured unless systems are named: those that no one has to install.
    pub(super) fn is_default(self) -> bool {
        match self {
            Self::Postgresql18 => postgresql_18::is_installed(),
            Self::MariadbMemory | Self::MariadbInnodb => MysqlPrograms::mariadb().is_ok(),
            Self::MysqlMemory | Self::MysqlInnodb => MysqlPrograms::mysql().is_ok(),
            Self::Duckdb | Self::Monetdb | Self::Clickhouse => embedded::is_installed(self),
            _ => true,
        }
    }

    /// Starts an instance; the calling thread's placement is that of the instance.
    ///
    /// # Errors
    /// When the system is missing or does not start.
    pub(super) fn start(self, options: InstanceOptions) -> Result<Box<dyn DbmsEngine>> {
        let mysql = |programs: Result<MysqlPrograms>, tables| -> Result<Box<dyn DbmsEngine>> {
            Ok(Box::new(Mysql::start(programs?, tables, options.clone())?))
        };
        Ok(match self {
            Self::Postgresql => {
                Box::new(WireServer::postgresql(&PostgresPrograms::find()?, options)?)
            }
            Self::Postgresql18 => {
                let programs = postgresql_18::programs(&options.directory)?;
                Box::new(WireServer::postgresql(&programs, options)?)
            }
            Self::AtollServer => Box::new(WireServer::atoll(options)?),
            Self::Atoll => Box::new(Embedded::atoll(options)?),
            Self::Duckdb | Self::Sqlite | Self::Monetdb | Self::Clickhouse => {
                Box::new(Embedded::python(self, options)?)
            }
            Self::MariadbMemory => mysql(MysqlPrograms::mariadb(), MysqlTables::Memory)?,
            Self::MariadbInnodb => mysql(MysqlPrograms::mariadb(), MysqlTables::Innodb)?,
            Self::MysqlMemory => mysql(MysqlPrograms::mysql(), MysqlTables::Memory)?,
            Self::MysqlInnodb => mysql(MysqlPrograms::mysql(), MysqlTables::Innodb)?,
        })
    }
}
