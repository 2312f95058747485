//! How each system is started, loaded and asked.
//!
//! | File | Systems |
//! |---|---|
//! | `wire` | PostgreSQL and `atoll serve`, over PostgreSQL's protocol |
//! | `mysql`, `mysql_client` | MySQL and MariaDB, over theirs |
//! | `embedded` | Atoll, DuckDB, SQLite, MonetDB and ClickHouse, each in a program whose threads are the clients |

pub(super) mod embedded;
pub(super) mod mysql;
mod mysql_client;
pub(super) mod wire;

use std::path::PathBuf;

use anyhow::Result;

use crate::cache;

/// Where `setup` keeps systems.
pub(super) fn directory() -> Result<PathBuf> {
    Ok(cache::directory()?.join("dbms"))
}

/// Memory for pages that holds a database of this scale factor with its indexes.
fn buffer_bytes(scale_factor: f64) -> u64 {
    (scale_factor * 3.0 * (1 << 30) as f64) as u64 + (64 << 20)
}
