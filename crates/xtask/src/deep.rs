//! `deep`: runs in full what `make test` samples.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{cargo, clients, crash, differential, soak, variants};

const HELP: &str = "\
cargo xtask deep

Runs in full what `make test` samples: the SQL suite in all its forms, all variants of its queries, 1000 kills of a
process that commits, 1000 clients of a server that is killed for 30 minutes, projects of real clients, and random
queries against DuckDB for 10 minutes. Takes about two hours. The results are written to docs/deep-tests.md.";

/// Where the last result is.
const RESULT: &str = "docs/deep-tests.md";

/// A part: its name, and what runs it.
type Part = (&'static str, fn(&Path) -> Result<ExitCode>);

const PARTS: [Part; 6] = [
    ("the SQL suite in all its forms", all_forms),
    ("all variants of its queries", |root| variants::run(root, &[])),
    ("1000 kills of a process that commits", |root| crash::run(root, &[])),
    ("1000 clients of a server that is killed", |root| soak::run(root, &[])),
    ("projects of real clients", |root| clients::run(root, &[])),
    ("random queries against DuckDB", |root| differential::run(root, &[])),
];

/// Runs every part, also after one that fails, and records the outcome of each.
///
/// # Errors
/// An argument, or a result that cannot be written.
pub fn run(root: &Path, arguments: &[&str]) -> Result<ExitCode> {
    match arguments {
        [] => {}
        ["--help" | "-h"] => {
            println!("{HELP}");
            return Ok(ExitCode::SUCCESS);
        }
        [other, ..] => bail!("deep: unexpected '{other}'\n\n{HELP}"),
    }
    let (mut rows, mut all_passed) = (String::new(), true);
    for (name, part) in PARTS {
        println!("deep: {name}");
        let start = Instant::now();
        let outcome = part(root);
        let passed = matches!(outcome, Ok(code) if code == ExitCode::SUCCESS);
        if let Err(error) = outcome {
            eprintln!("deep: {name}: {error:#}");
        }
        all_passed &= passed;
        let (word, minutes) =
            (if passed { "passed" } else { "FAILED" }, start.elapsed().as_secs() / 60);
        println!("deep: {name}: {word} in {minutes} minutes");
        writeln!(rows, "| {name} | {word} | {minutes} |")?;
    }
    let path = root.join(RESULT);
    std::fs::write(&path, page(&revision(), &today()?, &rows))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("deep: wrote {RESULT}");
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the tests of the suite over all of its files.
fn all_forms(root: &Path) -> Result<ExitCode> {
    let status = cargo()
        .args(["test", "--release", "--locked", "-p", "atoll-sql", "--test", "it", "--", "logic::"])
        .env("ATOLL_DEEP", "1")
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn page(revision: &str, date: &str, rows: &str) -> String {
    format!(
        "# Deep tests\n\n`make test-deep` wrote this page on {date}, for the commit {revision}.\n\n\
         | Part | Outcome | Minutes |\n|---|---|---|\n{rows}"
    )
}

/// The commit, as `make` passes it: a copy of the checkout has none of its own.
fn revision() -> String {
    std::env::var("ATOLL_REVISION").unwrap_or_else(|_| "unknown".to_owned())
}

/// Today's date in UTC, as YYYY-MM-DD.
fn today() -> Result<String> {
    let output = Command::new("date").args(["-u", "+%F"]).output();
    let output = output.context("date cannot be started")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_commit_and_outcome() {
        let page = page("abc", "2026-11-28", "| a | passed | 3 |\n");
        assert!(page.contains("commit abc") && page.ends_with("| a | passed | 3 |\n"));
    }
}
