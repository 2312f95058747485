//! The `atoll-bench` binary: the command line of the benchmarks. See the crate's README.

#![forbid(unsafe_code)]

mod cli;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use atoll_bench::{differential, runtime, tpch, worker};
use clap::Parser;

use cli::{Cli, Command, DifferentialArgs, RuntimeArgs, TpchArgs};

/// As in the `atoll` binary, and for plain DataFusion alike.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Engines disagree, or a query failed.
const DIFFERENT: u8 = 1;
/// The benchmark itself failed.
const OWN: u8 = 125;

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(OWN)
        }
    }
}

fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Tpch(args) => compare_queries(args),
        Command::Differential(args) => compare_answers(args),
        Command::Runtime(args) => compare_runtimes(args),
        Command::Worker(options) => {
            worker::run(options, io::stdin().lock(), &mut io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn compare_queries(args: &TpchArgs) -> Result<ExitCode> {
    let report = tpch::run(&args.options()?, &mut |what| eprintln!("{what}"))?;
    let json = serde_json::to_string_pretty(&report).context("the report has no JSON")? + "\n";
    let markdown = report.to_string();
    if let Some(file) = &args.out {
        write(file, &markdown)?;
    }
    match args.json.as_deref() {
        Some("-") => print(&json)?,
        Some(file) => {
            write(file.as_ref(), &json)?;
            print(&markdown)?;
        }
        None => print(&markdown)?,
    }
    report.problems.iter().for_each(|problem| eprintln!("error: {problem}"));
    match report.problems.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::from(DIFFERENT)),
    }
}

fn compare_answers(args: &DifferentialArgs) -> Result<ExitCode> {
    let options = args.options()?;
    let mut progress = |what: &str| eprintln!("{what}");
    if let Some(file) = &args.record {
        write(file, &differential::record(&options, &mut progress)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = differential::run(&options, &mut progress)?;
    print(&report.to_string())?;
    match report.findings.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::from(DIFFERENT)),
    }
}

fn compare_runtimes(args: &RuntimeArgs) -> Result<ExitCode> {
    let comparison = runtime::compare(&args.options())?;
    print(&comparison.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn write(file: &std::path::Path, text: &str) -> Result<()> {
    atoll_sys::write_whole(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn print(text: &str) -> Result<()> {
    io::stdout().write_all(text.as_bytes()).context("cannot write the report")
}
