//! `cargo xtask sanitize`: the tests of the crates with `unsafe` code that programs run, under
//! AddressSanitizer.
//!
//! The sanitizer is an option of nightly compilers that a stable one takes if it believes that it builds
//! itself. Everything is compiled again, in a target directory of its own.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{cargo, target_directory};

/// The crates with their tests.
const CRATES: [&str; 5] =
    ["atoll-sys", "atoll-placement", "atoll-runtime", "atoll-primitives", "atoll-capi"];

/// The sanitizer, and the flags of `.cargo/config.toml`, which these replace.
const FLAGS: &str = "-Zsanitizer=address -Ctarget-cpu=x86-64-v3";

/// Without optimisation the primitives take many minutes.
const OPTIMISED: &str = "profile.dev.package.atoll-primitives.opt-level=1";

/// Runs them; takes minutes.
///
/// # Errors
/// A test that fails, or memory that is not the tests' to touch.
pub fn run(root: &Path) -> Result<()> {
    let status = cargo()
        .current_dir(root)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", FLAGS)
        .env("CARGO_TARGET_DIR", target_directory(root).join("sanitize"))
        // A target that is named keeps the flags away from build scripts.
        .args(["test", "--locked", "--lib", "--tests", "--no-fail-fast", "--config", OPTIMISED])
        .args(CRATES.map(|name| format!("--package={name}")))
        .args(["--target", "x86_64-unknown-linux-gnu"])
        // A plain C program does not link with a library that calls the sanitizer.
        .args(["--", "--skip", "the_example_in_c_compiles"])
        .status()
        .context("cargo did not start")?;
    ensure!(status.success(), "tests fail under AddressSanitizer");
    Ok(())
}
