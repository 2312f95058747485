//! The tests of the primitives again, with the loops that processors without AVX2 run.
//!
//! The programs are those of the tests: nothing is compiled again.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// Modules of the loops: scatter, shuffles and copies past the caches.
const FILTERS: [&str; 4] = ["kernel", "partition", "shuffle", "sort"];

/// Runs them, with the arguments that build all tests.
///
/// # Errors
/// A test that fails, or programs that cargo does not name.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let output = cargo()
        .current_dir(root)
        .args(arguments)
        .args(["--no-run", "--message-format=json"])
        .output()
        .context("cargo did not start")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let programs = programs(&String::from_utf8_lossy(&output.stdout));
    ensure!(!programs.is_empty(), "cargo names no tests of the primitives");
    for program in programs {
        let status = Command::new(&program)
            .current_dir(root.join("crates/primitives"))
            .env("ATOLL_KERNELS", "portable")
            .args(FILTERS)
            .arg("--quiet")
            .status()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        ensure!(status.success(), "{} fails with ATOLL_KERNELS=portable", program.display());
    }
    Ok(())
}

/// The test programs of the primitives among cargo's messages, a JSON document in each line.
fn programs(messages: &str) -> Vec<PathBuf> {
    let own = messages.lines().filter(|line| line.contains("/crates/primitives/Cargo.toml"));
    let path = |line: &str| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        rest.split_once('"').map(|(path, _)| PathBuf::from(path))
    };
    own.filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_of_the_primitives_are_found_among_cargos_messages() {
        let messages = r#"{"manifest_path":"/a/crates/primitives/Cargo.toml","executable":null}
{"manifest_path":"/a/crates/primitives/Cargo.toml","executable":"/t/it-1"}
{"manifest_path":"/a/crates/sql/Cargo.toml","executable":"/t/it-2"}
"#;
        assert_eq!(programs(messages), [PathBuf::from("/t/it-1")]);
    }
}
