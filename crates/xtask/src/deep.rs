//! `deep`: runs in full what `make test` samples.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{cargo, clients, crash, differential, soak, variants};

const HELP: &str = "\
cargo xtask deep [PART …]

Runs in full what `make test` samples; without PART all of it, which takes about two hours:

  forms          the SQL suite in all its forms
  variants       all variants of its queries
  kills          1000 kills of a process that commits
  soak           1000 clients of a server that is killed, for 30 minutes
  clients        projects of real clients
  differential   random queries against DuckDB, for 10 minutes
  lab            systems and engines on the papers' machines

The outcome of each part is written to docs/deep-tests.md with its day and commit; parts that did not run keep theirs.";

/// Where the last outcomes are.
const RESULT: &str = "docs/deep-tests.md";

/// A part: its name, what it is, and what runs it.
struct Part {
    name: &'static str,
    what: &'static str,
    run: fn(&Path) -> Result<ExitCode>,
}

const PARTS: [Part; 7] = [
    Part { name: "forms", what: "the SQL suite in all its forms", run: all_forms },
    Part {
        name: "variants",
        what: "all variants of its queries",
        run: |root| variants::run(root, &[]),
    },
    Part {
        name: "kills",
        what: "1000 kills of a process that commits",
        run: |root| crash::run(root, &[]),
    },
    Part {
        name: "soak",
        what: "1000 clients of a server that is killed",
        run: |root| soak::run(root, &[]),
    },
    Part { name: "clients", what: "projects of real clients", run: |root| clients::run(root, &[]) },
    Part {
        name: "differential",
        what: "random queries against DuckDB",
        run: |root| differential::run(root, &["--minutes", "10"]),
    },
    Part { name: "lab", what: "systems and engines on the papers' machines", run: lab },
];

/// Runs the parts that `arguments` name, or all, also after one that fails, and records each outcome as it comes.
///
/// # Errors
/// An argument that names no part, or a result that cannot be written.
pub fn run(root: &Path, arguments: &[&str]) -> Result<ExitCode> {
    if let ["--help" | "-h"] = arguments {
        println!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(other) = arguments.iter().find(|name| PARTS.iter().all(|p| p.name != **name)) {
        bail!("deep: unexpected '{other}'\n\n{HELP}");
    }
    let path = root.join(RESULT);
    let mut all_passed = true;
    for part in PARTS.iter().filter(|p| arguments.is_empty() || arguments.contains(&p.name)) {
        println!("deep: {}", part.what);
        let start = Instant::now();
        let outcome = (part.run)(root);
        let passed = matches!(outcome, Ok(code) if code == ExitCode::SUCCESS);
        if let Err(error) = outcome {
            eprintln!("deep: {}: {error:#}", part.name);
        }
        all_passed &= passed;
        let (word, minutes) =
            (if passed { "passed" } else { "FAILED" }, start.elapsed().as_secs() / 60);
        println!("deep: {}: {word} in {minutes} minutes", part.what);
        let row = format!("{word} | {minutes} | {} | {}", today()?, revision());
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, page(&before, part, &row)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("deep: wrote {RESULT}");
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The page `before` with `row` as the outcome of the part `ran`.
fn page(before: &str, ran: &Part, row: &str) -> Result<String> {
    let mut page =
        "# Deep tests\n\n`make test-deep` writes this page: the last outcome of each part.\n\n\
                    | Part | Outcome | Minutes | Day | Commit |\n|---|---|---|---|---|\n"
            .to_owned();
    for Part { name, what, .. } in &PARTS {
        let key = format!("| {what} | ");
        if *name == ran.name {
            writeln!(page, "{key}{row} |")?;
        } else {
            let kept = before.lines().find(|line| line.starts_with(&key));
            let kept = kept.map_or_else(|| format!("{key}not run | | | |"), str::to_owned);
            writeln!(page, "{kept}")?;
        }
    }
    Ok(page)
}

/// Runs the tests of the suite over all of its files.
fn all_forms(root: &Path) -> Result<ExitCode> {
    let tests = ["test", "--release", "--locked", "-p", "atoll-sql", "--test", "it", "--"];
    succeeds(cargo().args(tests).arg("logic::").env("ATOLL_DEEP", "1").current_dir(root))
}

/// Runs the tests that boot the papers' machines.
fn lab(root: &Path) -> Result<ExitCode> {
    // Guests run the programs that are next to the benchmark's, and the counter is there too.
    let built = succeeds(cargo().args(["build", "--release", "--locked"]).current_dir(root))?;
    if built != ExitCode::SUCCESS {
        return Ok(built);
    }
    let tests = ["test", "--release", "--locked", "-p", "atoll-bench", "--test", "it", "--"];
    let one_by_one = ["--ignored", "--test-threads=1", "lab::"];
    succeeds(cargo().args(tests).args(one_by_one).current_dir(root))
}

fn succeeds(command: &mut Command) -> Result<ExitCode> {
    let status = command.status().context("cannot run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
    fn a_part_that_ran_leaves_the_rows_of_the_others() -> Result<()> {
        let first = page("", &PARTS[0], "passed | 3 | 2026-11-28 | abc")?;
        assert!(first.contains("forms | passed | 3 | 2026-11-28 | abc |\n"), "{first}");
        assert_eq!(first.matches("| not run | | | |\n").count(), PARTS.len() - 1);
        let second = page(&first, &PARTS[3], "FAILED | 30 | 2026-11-29 | def")?;
        assert!(second.contains("forms | passed | 3 | 2026-11-28 | abc |\n"), "{second}");
        assert!(second.contains("killed | FAILED | 30 | 2026-11-29 | def |\n"), "{second}");
        Ok(())
    }
}
