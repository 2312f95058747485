//! `atoll bench`: benchmarks that need no other engine run here, the others in `atoll-bench`, which contains the rivals.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;
use atoll_tools::bench::ToolsBenchArgs;
use atoll_tools::exit::{CommandError, Exit};
use clap::{CommandFactory, Parser};

use crate::cli::BenchArgs;

/// The benchmarks that `atoll-tools` has too.
#[derive(Debug, Parser)]
#[command(name = "atoll bench", bin_name = "atoll bench", max_term_width = 100)]
struct OwnBenchmarks {
    #[command(flatten)]
    args: ToolsBenchArgs,
}

pub(crate) fn run(args: &BenchArgs) -> Result<(), CommandError> {
    if is_own(&args.words) {
        let words = [OsString::from("atoll bench")].into_iter().chain(args.words.iter().cloned());
        return OwnBenchmarks::parse_from(words).args.run();
    }
    Err(start(&args.words)?)
}

fn is_own(words: &[OsString]) -> bool {
    let name = words.first().and_then(|word| word.to_str()).unwrap_or_default();
    OwnBenchmarks::command().find_subcommand(name).is_some()
}

/// Becomes `atoll-bench`; returns only where it cannot be started.
fn start(words: &[OsString]) -> anyhow::Result<CommandError> {
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let program = own.with_file_name("atoll-bench");
    let error = Command::new(&program).args(words).exec();
    let program = program.display();
    let (exit, message) = match error.kind() {
        io::ErrorKind::NotFound => {
            let message = format!(
                "{program} is not installed: this benchmark is in atoll-bench, which `make install` puts next to \
                 atoll; `atoll bench memory` and `atoll bench shuffle` run without it"
            );
            (Exit::NotFound, message)
        }
        _ => (Exit::CannotRun, format!("{program} cannot be started: {error}")),
    };
    Ok(CommandError::with(exit, message))
}
