//! Other engines, each in a process of its own that speaks JSON, one object per line.
//!
//! | File | Owns |
//! |---|---|
//! | `python` | the virtual environment with DuckDB, Polars and DataFusion |
//! | `process` | a process that answers lines with lines |
//! | `sql` | an engine that answers SQL over TPC-H or over tables that it is told to make |
//! | `columns` | an engine that runs one query over columns of 64-bit integers |
//! | `files` | those columns, as the engines load them |

pub(crate) mod columns;
pub(crate) mod files;
mod process;
mod python;
mod sql;

pub use python::find as python;
pub use sql::SqlEngine;

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

/// The rivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rival {
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
            Self::Duckdb => "duckdb",
            Self::Polars => "polars",
            Self::Datafusion => "datafusion",
        }
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// DuckDB as a [`SqlEngine`], run by Python.
pub const DUCKDB_SCRIPT: &str = include_str!("../../rivals/sql_engine.py");
