//! `lab compare`: two runs side by side.

use std::path::{Path, PathBuf};

use anyhow::Context;
use atoll_lab::view::{RunComparison, svg_pair};
use atoll_sys::write_whole;
use clap::ValueHint;

use super::report::{RecordFormat, form_of, print, read};
use crate::exit::CommandError;

/// What `--help` shows.
pub(super) const EXAMPLES: &str = "\
Examples:
  atoll lab run -m symas-8 --report before.json -- ./program
  atoll lab run -m symas-8 --report after.json -- atoll run --placement aligned ./program
  atoll lab compare before.json after.json
  atoll lab compare before.json after.json -o both.svg        a picture; also .json and .txt";

/// Arguments.
#[derive(clap::Args, Debug)]
pub(super) struct CompareArgs {
    /// File that 'lab run --report' wrote
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    a: PathBuf,
    /// Another one
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    b: PathBuf,
    /// One JSON document
    #[arg(long)]
    json: bool,
    /// File to write it to: .txt, .json, or .svg for a picture of both on one scale
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// Runs it.
pub(super) fn run(args: &CompareArgs) -> Result<(), CommandError> {
    let by_suffix = args.output.as_deref().map(form_of).transpose()?;
    let form = by_suffix.unwrap_or(if args.json { RecordFormat::Json } else { RecordFormat::Text });
    let text = written(args, form)?;
    match &args.output {
        Some(file) => write_whole(file, text).with_context(|| file.display().to_string())?,
        None => print(&text)?,
    }
    Ok(())
}

/// The comparison in this form, ending in a line break.
fn written(args: &CompareArgs, form: RecordFormat) -> Result<String, CommandError> {
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let comparison = RunComparison::from_records(&a, &b);
    let names = [&args.a, &args.b].map(|file| file.display().to_string());
    Ok(match form {
        RecordFormat::Text => comparison.text([&names[0], &names[1]]),
        RecordFormat::Json => {
            let text = serde_json::to_string_pretty(&comparison);
            text.context("a comparison as JSON")? + "\n"
        }
        RecordFormat::Svg => svg_pair([(&stem(&args.a), &a), (&stem(&args.b), &b)]),
    })
}

/// A file's name without its directory and suffix.
fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
