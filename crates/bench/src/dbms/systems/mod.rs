//! How each system is started, loaded and asked.
//!
//! | File | Systems |
//! |---|---|
//! | `wire` | PostgreSQL and `atoll serve`, over PostgreSQL's protocol |
//! | `mysql`, `mysql_client` | MySQL and MariaDB, over theirs |
//! | `postgresql_18` | the programs of PostgreSQL 18 |
//! | `embedded` | Atoll, DuckDB, SQLite, MonetDB and ClickHouse, each in a program whose threads are the clients |

pub(super) mod embedded;
pub(super) mod mysql;
mod mysql_client;
pub(super) mod postgresql_18;
pub(super) mod wire;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cache;

/// The user that fetched servers run as when the benchmark runs as root.
const UNPRIVILEGED: &str = "daemon";

/// Where `setup` keeps systems.
pub(super) fn directory() -> Result<PathBuf> {
    Ok(cache::directory()?.join("dbms"))
}

/// Whether another user can run a program: all directories above it must let others pass.
fn is_public(program: &Path) -> bool {
    let lets_pass =
        |path: &Path| fs::metadata(path).is_ok_and(|about| about.permissions().mode() & 0o001 != 0);
    program.canonicalize().is_ok_and(|program| program.ancestors().all(lets_pass))
}
