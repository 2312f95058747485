//! Permission to name files of the server.

use atoll_sql_common::error::SqlState;
use datafusion::common::Result;

/// A role that reads and writes files on the server.
pub const SERVER_FILES: &str = "pg_read_write_server_files";

/// Refuses a statement or function that names files of the server without permission.
///
/// # Errors
/// Without permission.
pub fn check_files(may_use_files: bool, what: &str) -> Result<()> {
    match may_use_files {
        true => Ok(()),
        false => Err(SqlState::INSUFFICIENT_PRIVILEGE.error(format!(
            "permission denied to use files of the server in {what}; only superusers and members of \
             {SERVER_FILES} may"
        ))),
    }
}
