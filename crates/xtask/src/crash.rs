//! `crash`: kills a process that commits, many times, and looks for what it committed.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::cargo;

const HELP: &str = "\
cargo xtask crash [--kills N] [--seed N]

Kills a child process that commits at random moments (SIGKILL) and opens its data directory again: what it
said it had committed must be there, and the last transaction whole or not at all. The transactions of a
seed are the same in every run; the moments are not.";

/// Runs the driver, which is a test of the store.
pub fn run(root: &Path, arguments: &[&str]) -> Result<ExitCode> {
    let (mut kills, mut seed) = (1000_u64, 1_u64);
    let mut rest = arguments;
    loop {
        rest = match rest {
            [] => break,
            ["--help" | "-h", ..] => {
                println!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            ["--kills", count, rest @ ..] => {
                kills = count.parse().context("--kills expects a number")?;
                rest
            }
            ["--seed", number, rest @ ..] => {
                seed = number.parse().context("--seed expects a number")?;
                rest
            }
            [other, ..] => bail!("crash: unexpected '{other}'\n\n{HELP}"),
        };
    }
    println!("crash: {kills} kills from seed {seed} on");
    let test = "kills::committed_changes_survive_every_kill";
    let status = cargo()
        .args(["test", "--release", "--locked", "-p", "atoll-store", "--test", "it", "--"])
        .args(["--exact", test, "--nocapture"])
        .env("ATOLL_KILLS", kills.to_string())
        .env("ATOLL_SEED", seed.to_string())
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
