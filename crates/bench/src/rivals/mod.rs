//! Other engines, each in its own process that speaks JSON, one object per line.
//!
//! | File | Owns |
//! |---|---|
//! | `python` | the virtual environment with DuckDB, Polars and DataFusion; SQLite comes with Python |
//! | `process` | a process that answers lines with lines |
//! | `sql` | an engine that answers SQL over TPC-H or over tables created by statements |
//! | `columns` | an engine that runs one query over columns of 64-bit integers |
//! | `store` | an engine whose database sessions change row by row |
//! | `scan` | DuckDB with the queries of `bench scan` |
//! | `files` | those columns, as the engines load them |

pub(crate) mod columns;
pub(crate) mod files;
mod process;
mod python;
pub(crate) mod scan;
mod sql;
pub(crate) mod store;

pub(crate) use process::RivalProcess;
pub use python::find as python;
pub use sql::SqlEngine;

use std::fmt;

use serde::Serialize;

/// The rivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rival {
    /// SQLite
    Sqlite,
    /// PostgreSQL
    Postgresql,
    /// DuckDB
    Duckdb,
    /// Polars
    Polars,
    /// DataFusion
    Datafusion,
}

impl Rival {
    /// Its name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgresql => "postgresql",
            Self::Duckdb => "duckdb",
            Self::Polars => "polars",
            Self::Datafusion => "datafusion",
        }
    }
}

/// Those that run queries over columns.
pub(crate) const ANALYTIC: [Rival; 3] = [Rival::Duckdb, Rival::Polars, Rival::Datafusion];

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// DuckDB as a [`SqlEngine`], run by Python.
pub const DUCKDB_SCRIPT: &str =
    concat!(include_str!("../../rivals/serving.py"), include_str!("../../rivals/sql_engine.py"));
