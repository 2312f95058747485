//! `lab compare`: two runs side by side.

use std::path::PathBuf;

use anyhow::Context;
use atoll_lab::view::Comparison;
use clap::ValueHint;

use super::report::{print, read};
use crate::exit::Ends;

/// What `--help` shows.
pub(super) const EXAMPLES: &str = "\
Examples:
  atoll lab run -m symas-8 --report before.json -- ./program
  atoll lab run -m symas-8 --report after.json -- atoll run --placement aligned ./program
  atoll lab compare before.json after.json";

/// Arguments.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// File that 'lab run --report' wrote
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    a: PathBuf,
    /// Another one
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    b: PathBuf,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) fn run(args: &Args) -> Result<(), Ends> {
    let comparison = Comparison::of(&read(&args.a)?, &read(&args.b)?);
    if args.json {
        let text = serde_json::to_string_pretty(&comparison).context("a comparison as JSON")?;
        return print(&format!("{text}\n"));
    }
    let names = [&args.a, &args.b].map(|file| file.display().to_string());
    print(&comparison.text([&names[0], &names[1]]))
}
