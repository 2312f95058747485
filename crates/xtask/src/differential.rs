//! `cargo xtask differential`: random queries, answered by Atoll under many settings and by DuckDB or
//! PostgreSQL.
//! The comparison itself is in `crates/differential`; this builds it and passes its arguments on.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::{cargo, target_directory};

/// Builds and runs it with these arguments; its exit code.
///
/// # Errors
/// When it cannot be built or started.
pub fn run(root: &Path, arguments: &[&str]) -> Result<ExitCode> {
    let status = cargo()
        .current_dir(root)
        .args(["build", "--locked", "--release", "--package", "atoll-differential"])
        .status()
        .context("cargo did not start")?;
    ensure!(status.success(), "atoll-differential cannot be built");
    let program = target_directory(root).join("release/atoll-differential");
    let status = Command::new(&program)
        .args(arguments)
        .status()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
