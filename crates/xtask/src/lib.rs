//! The project's chores: [`tidy`], the rules of the house that no compiler checks; [`one_build`],
//! the same features in builds and tests; and [`ci`], all stages of `make test` in one place.
//!
//! A crate of its own because it must build in seconds and run before anything else does: it knows
//! `std` and `anyhow`, no crate of Atoll and nothing of DataFusion.

use std::path::{Path, PathBuf};

mod cargo;
pub mod ci;
pub mod one_build;
pub mod tidy;

use cargo::cargo;

/// Root of the repository this crate was built from.
pub fn repository_root() -> PathBuf {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_dir.ancestors().nth(2).unwrap_or(crate_dir).to_path_buf()
}
