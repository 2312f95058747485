//! `cargo xtask <chore>`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use atoll_xtask::{
    ci, clients, crash, deep, differential, loom, one_build, package, repository_root, sanitize,
    soak, tidy, variants,
};

const HELP: &str = "\
cargo xtask <chore>

  tidy          check the house rules (layers, dependencies, banned calls, dead files, links)
  one-build     check that builds and tests compile each dependency with the same features
  loom          the exchange's gate and the steps' queues in every order of their threads
  sanitize      tests of crates with unsafe code under AddressSanitizer (minutes; not among what ci
                runs)
  differential  random queries under many settings, against DuckDB or PostgreSQL (--help lists its flags;
                --minutes 10; not among what ci runs)
  crash         kills a process that commits, 1000 times, and looks for what it committed (--help
                lists its flags; not among what ci runs, whose tests kill 50 times)
  soak          1000 clients of a server that is killed 20 times in 30 minutes (--help lists its flags; not
                among what ci runs, whose tests take some seconds of it)
  clients       projects of real clients (Django, Alembic, dbt, TypeORM, gorm, …) against a server; names of
                clients run only those (minutes; installs packages; not among what ci runs)
  variants      variants of all queries of the SQL suite (--help lists its flags; minutes; ci runs a tenth of
                them)
  deep          all of what ci samples: suites in all forms, variants, kills, soak, clients, random queries (hours;
                `make test-deep`)
  package       a Debian package of what `make install` installs; --check runs it where nothing else is
  ci            everything `make test` checks: format, tidy, one-build, licences, loom, clippy, the
                portable kernels, tests;
                --may-skip NEED,… accepts tests that are skipped for want of it
  help          this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match chore(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn chore(arguments: &[String]) -> Result<ExitCode> {
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["tidy"] => run_tidy(),
        ["ci", rest @ ..] => {
            ci::run(&repository_root(), &may_skip(rest)?).map(|()| ExitCode::SUCCESS)
        }
        ["one-build"] => one_build::check(&repository_root()).map(|()| ExitCode::SUCCESS),
        ["loom"] => loom::run(&repository_root()).map(|()| ExitCode::SUCCESS),
        ["sanitize"] => sanitize::run(&repository_root()).map(|()| ExitCode::SUCCESS),
        ["crash", rest @ ..] => crash::run(&repository_root(), rest),
        ["package", rest @ ..] => package::run(&repository_root(), rest),
        ["deep", rest @ ..] => deep::run(&repository_root(), rest),
        ["clients", rest @ ..] => clients::run(&repository_root(), rest),
        ["soak", rest @ ..] => soak::run(&repository_root(), rest),
        ["variants", rest @ ..] => variants::run(&repository_root(), rest),
        ["differential", rest @ ..] => differential::run(&repository_root(), rest),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        [] => bail!("no chore given\n\n{HELP}"),
        other => bail!("'{}' is not a chore\n\n{HELP}", other.join(" ")),
    }
}

/// What `ci --may-skip NEED,…` names.
fn may_skip(arguments: &[&str]) -> Result<Vec<String>> {
    match arguments {
        [] => Ok(Vec::new()),
        ["--may-skip", needs] => Ok(needs.split(',').map(str::to_owned).collect()),
        other => bail!("ci: unexpected '{}'; expected --may-skip NEED,…", other.join(" ")),
    }
}

fn run_tidy() -> Result<ExitCode> {
    let report = tidy::run(&repository_root())?;
    println!("{report}");
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
