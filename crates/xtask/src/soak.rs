//! `soak`: many clients of a server, for long.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::cargo;

const HELP: &str = "\
cargo xtask soak [--minutes N] [--clients N] [--kills N] [--seed N]

Clients of `atoll serve` connect, write, read, cancel, vanish and send garbage while the server is killed (SIGKILL) and
started again. What was acknowledged must be there in the end, and every refusal has an SQLSTATE. With --kills 0
no connection may be lost, and the server's memory must not grow.";

/// Runs the driver, which is a test of the binary.
pub fn run(root: &Path, arguments: &[&str]) -> Result<ExitCode> {
    let (mut minutes, mut clients, mut kills, mut seed) = (30_u64, 1000_u64, 20_u64, 1_u64);
    let mut rest = arguments;
    while let [flag, tail @ ..] = rest {
        if ["--help", "-h"].contains(flag) {
            println!("{HELP}");
            return Ok(ExitCode::SUCCESS);
        }
        let place = match *flag {
            "--minutes" => &mut minutes,
            "--clients" => &mut clients,
            "--kills" => &mut kills,
            "--seed" => &mut seed,
            other => bail!("soak: unexpected '{other}'\n\n{HELP}"),
        };
        let number = tail.first().and_then(|text| text.parse().ok());
        *place = number.with_context(|| format!("{flag} expects a number"))?;
        rest = &tail[1..];
    }
    println!("soak: {clients} clients for {minutes} minutes, {kills} kills, seed {seed}");
    let test = match kills {
        0 => "soak::an_uninterrupted_server_loses_no_client",
        _ => "soak::acknowledged_changes_survive_kills_under_load",
    };
    let status = cargo()
        .args(["test", "--release", "--locked", "-p", "atoll-db", "--test", "it", "--"])
        .args(["--exact", test, "--nocapture"])
        .env("ATOLL_SOAK_SECONDS", (minutes * 60).to_string())
        .env("ATOLL_SOAK_CLIENTS", clients.to_string())
        .env("ATOLL_SOAK_KILLS", kills.to_string())
        .env("ATOLL_SOAK_SEED", seed.to_string())
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
