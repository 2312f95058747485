//! `variants`: the queries of the SQL suite in other forms.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::cargo;

const HELP: &str = "\
cargo xtask variants [--file NAME] [--seed N]

Runs the records of crates/sql/tests/slt, and variants of every query among them: expressions next to their casts,
columns twice, aliases that clash with column names in plans; the query grouped, in a view, joined with itself.
--file runs one file of the suite. --seed runs a tenth of the variants, chosen by this seed, as `make test` does
with the seed 1.";

const TEST: &str = "logic::the_suite_and_variants_of_its_queries_hold_on_the_live_machine";

/// Runs the test of the suite with all variants.
///
/// # Errors
/// An argument that is not known, or cargo that cannot be started.
pub fn run(root: &Path, arguments: &[&str]) -> Result<ExitCode> {
    let (mut share, mut file) = ("all", "");
    let mut rest = arguments;
    while let [flag, tail @ ..] = rest {
        let value = tail.first().copied();
        match *flag {
            "--help" | "-h" => {
                println!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            "--seed" => {
                let is_number = |seed: &&str| seed.parse::<u64>().is_ok();
                share = value.filter(is_number).context("--seed expects a number")?;
            }
            "--file" => file = value.context("--file expects the name of a file, such as views")?,
            other => bail!("variants: unexpected '{other}'\n\n{HELP}"),
        }
        rest = &tail[1..];
    }
    let path = root.join(format!("crates/sql/tests/slt/{}.slt", file.trim_end_matches(".slt")));
    if !file.is_empty() && !path.is_file() {
        bail!("variants: {} does not exist", path.display());
    }
    let status = cargo()
        .args(["test", "--release", "--locked", "-p", "atoll-sql", "--test", "it", "--"])
        .args(["--exact", TEST, "--nocapture"])
        .env("ATOLL_VARIANTS", share)
        .env("ATOLL_VARIANTS_FILE", file)
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
