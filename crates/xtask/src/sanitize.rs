//! `cargo xtask sanitize`: the tests of the primitives, whose loops are `unsafe`, under
//! AddressSanitizer.
//!
//! The sanitizer is an option of nightly compilers that a stable one takes when told that it builds
//! itself. Everything is compiled again, in a target directory of its own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// The sanitizer, and the flags of `.cargo/config.toml`, which these replace.
const FLAGS: &str = "-Zsanitizer=address -Ctarget-cpu=x86-64-v3";

/// Runs them; takes minutes.
///
/// # Errors
/// A test that fails, or memory that is not the tests' to touch.
pub fn run(root: &Path) -> Result<()> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let status = cargo()
        .current_dir(root)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", FLAGS)
        .env("CARGO_TARGET_DIR", target.join("sanitize"))
        // A target that is named keeps the flags away from build scripts.
        .args(["test", "--package", "atoll-primitives", "--lib", "--tests"])
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .status()
        .context("cargo did not start")?;
    ensure!(status.success(), "the tests of the primitives fail under AddressSanitizer");
    Ok(())
}
