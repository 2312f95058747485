//! The project's chores: [`tidy`], house rules that no compiler checks; [`one_build`],
//! the same features in builds and tests; [`sanitize`], unsafe code under AddressSanitizer;
//! [`loom`], concurrent pieces in every order of their threads; [`differential`], random queries against
//! DuckDB or PostgreSQL; [`soak`], clients of a server for long; [`clients`], projects of real clients;
//! [`variants`], queries of the SQL suite in other forms; [`package`], a Debian package; [`skips`], tests
//! that did not run; and [`ci`], all stages of `make test` in one place.
//!
//! A crate of its own because it must build in seconds and run before anything else does: it knows
//! `std` and `anyhow`, no crate of Atoll and nothing of DataFusion.

use std::path::{Path, PathBuf};

mod cargo;
pub mod ci;
pub mod clients;
pub mod crash;
pub mod deep;
pub mod differential;
pub mod loom;
pub mod one_build;
pub mod package;
mod portable;
pub mod sanitize;
pub mod skips;
pub mod soak;
mod test_run;
pub mod tidy;
pub mod variants;

use cargo::cargo;

/// Root of the repository whose cargo runs this. Cargo sets it at run time: checkouts that share a
/// target directory share this binary too, and the folder it was built from may be gone.
pub fn repository_root() -> PathBuf {
    let set = std::env::var_os("CARGO_MANIFEST_DIR");
    let crate_dir = set.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    crate_dir.ancestors().nth(2).map_or_else(|| crate_dir.clone(), Path::to_path_buf)
}

/// Where cargo builds to.
fn target_directory(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}
