//! `cargo xtask loom`: small concurrent pieces in every order that their threads may take.
//!
//! The models are a workspace of their own (`loom/`), so that loom stays out of every other build.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{cargo, target_directory};

/// Builds and runs the models; seconds once they are built.
///
/// # Errors
/// A model that fails.
pub fn run(root: &Path) -> Result<()> {
    let status = cargo()
        .current_dir(root)
        .env("CARGO_TARGET_DIR", target_directory(root).join("loom"))
        .args(["run", "--locked", "--release", "--quiet", "--manifest-path", "loom/Cargo.toml"])
        .status()
        .context("cargo did not start")?;
    ensure!(status.success(), "a model fails; loom/src names it above");
    Ok(())
}
