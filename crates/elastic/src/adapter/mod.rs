//! Connects to a DBMS: sets its thread knob to the number of cores and reads its work counter, with its own client.
//!
//! | Adapter | Knob | Counter |
//! |---|---|---|
//! | `postgres` | `max_parallel_workers`, `max_parallel_workers_per_gather` (`ALTER SYSTEM`, reload) | `xact_commit` of `pg_stat_database` |
//! | `mariadb`, `mysql` | `thread_pool_size`, else `innodb_thread_concurrency` (`SET GLOBAL`) | `Questions` of `SHOW GLOBAL STATUS` |
//! | `duckdb` | a file with `SET threads = N`, which the program reads | a file with a number, which it writes |
//! | `atoll` | `atoll.cores` | `statements` of `atoll.database` |
//!
//! The journal records the old value of a knob before it is set; the end of the run or `undo` restores it. A PostgreSQL
//! knob outlives a reboot, and so does its record.

mod knob;
mod live;

use std::fmt;
use std::path::PathBuf;

pub use knob::{Knob, UndoneKnobs, undo_knobs};
pub use live::LiveAdapters;

pub use crate::journal::KnobSetting;

/// A DBMS and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// By `psql` with this connection string.
    Postgres(String),
    /// By `mariadb` with these arguments.
    MariaDb(String),
    /// By `mysql` with these arguments.
    MySql(String),
    /// By the file that its program reads.
    DuckDb(PathBuf),
    /// By `psql` with this connection string.
    Atoll(String),
}

/// Why a request to a DBMS failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{adapter}: {reason}")]
pub struct AdapterError {
    /// The adapter.
    pub adapter: &'static str,
    /// The reason, and what to do.
    pub reason: String,
}

/// Requests to a DBMS, as a trait, so that tests can fake it.
pub trait AdapterCalls: Send + Sync + fmt::Debug {
    /// The settings of its knob, as they are to be restored.
    fn settings(&self, adapter: &Adapter) -> Result<Vec<KnobSetting>, AdapterError>;

    /// Sets them.
    fn set(&self, adapter: &Adapter, settings: &[KnobSetting]) -> Result<(), AdapterError>;

    /// Its work so far.
    fn work(&self, adapter: &Adapter) -> Result<f64, AdapterError>;
}

impl Adapter {
    /// Parses an adapter such as `postgres:host=/run/postgresql`.
    pub fn named(text: &str) -> Result<Self, String> {
        let (kind, how) = text.split_once(':').unwrap_or((text, ""));
        let how = how.trim().to_owned();
        match kind {
            "postgres" => Ok(Self::Postgres(how)),
            "mariadb" => Ok(Self::MariaDb(how)),
            "mysql" => Ok(Self::MySql(how)),
            "duckdb" if how.is_empty() => {
                Err("duckdb: name the file that its program reads: duckdb:/run/app/threads.sql"
                    .to_owned())
            }
            "duckdb" => Ok(Self::DuckDb(how.into())),
            "atoll" => Ok(Self::Atoll(how)),
            _ => Err(format!(
                "unknown DBMS '{kind}'; expected postgres, mariadb, mysql, duckdb or atoll, and after a colon \
                 how its client reaches it"
            )),
        }
    }

    /// The kind of DBMS.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "postgres",
            Self::MariaDb(_) => "mariadb",
            Self::MySql(_) => "mysql",
            Self::DuckDb(_) => "duckdb",
            Self::Atoll(_) => "atoll",
        }
    }

    /// Whether its settings outlive the DBMS, in a file.
    pub fn is_kept(&self) -> bool {
        matches!(self, Self::Postgres(_) | Self::DuckDb(_))
    }

    /// The counter for its performance.
    pub fn counter(&self) -> String {
        match self {
            Self::Postgres(_) => {
                "transactions committed: xact_commit of pg_stat_database".to_owned()
            }
            Self::MariaDb(_) | Self::MySql(_) => {
                "statements of clients: Questions of SHOW GLOBAL STATUS".to_owned()
            }
            Self::DuckDb(file) => {
                format!("the number that its program writes to {}", work_file(file).display())
            }
            Self::Atoll(_) => "statements of clients: atoll.database".to_owned(),
        }
    }

    /// The settings for this many cores; `before` are the original ones.
    pub fn wanted(&self, before: &[KnobSetting], cores: usize) -> Vec<KnobSetting> {
        let value = |name: &str| match name {
            // The session's process works as well.
            "max_parallel_workers_per_gather" => cores.saturating_sub(1),
            _ => cores,
        };
        let set = |old: &KnobSetting| KnobSetting {
            name: old.name.clone(),
            value: Some(value(&old.name).to_string()),
        };
        before.iter().map(set).collect()
    }

    fn error(&self, reason: impl Into<String>) -> AdapterError {
        AdapterError { adapter: self.kind(), reason: reason.into() }
    }
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(how) | Self::MariaDb(how) | Self::MySql(how) | Self::Atoll(how) => {
                write!(f, "{}:{how}", self.kind())
            }
            Self::DuckDb(file) => write!(f, "duckdb:{}", file.display()),
        }
    }
}

/// Where a program that uses DuckDB writes its work counter.
fn work_file(file: &std::path::Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".work");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_an_adapter_and_how_it_is_reached() {
        for text in [
            "postgres:host=/tmp user=a",
            "mariadb:--socket=/run/m.sock",
            "mysql:",
            "duckdb:/run/threads.sql",
            "atoll:host=127.0.0.1 port=5433",
        ] {
            assert_eq!(Adapter::named(text).unwrap().to_string(), text);
        }
        assert_eq!(Adapter::named("postgres"), Ok(Adapter::Postgres(String::new())));
        assert!(Adapter::named("oracle:x").unwrap_err().contains("expected postgres, mariadb"));
        assert!(Adapter::named("duckdb").unwrap_err().contains("name the file"));
    }

    #[test]
    fn settings_count_a_thread_per_core_including_the_session() {
        let before = |names: &[&str]| -> Vec<KnobSetting> {
            names.iter().map(|name| KnobSetting { name: (*name).to_owned(), value: None }).collect()
        };
        let postgres = Adapter::Postgres(String::new());
        let names = ["max_parallel_workers", "max_parallel_workers_per_gather"];
        let values = |cores| {
            let wanted = postgres.wanted(&before(&names), cores).into_iter();
            wanted.filter_map(|it| it.value).collect::<Vec<_>>()
        };
        assert_eq!(
            (values(4), values(1)),
            (vec!["4".into(), "3".into()], vec!["1".into(), "0".into()])
        );
        let wanted = Adapter::MySql(String::new()).wanted(&before(&["thread_pool_size"]), 3);
        assert_eq!(wanted[0].value.as_deref(), Some("3"));
    }
}
