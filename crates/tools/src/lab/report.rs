//! `lab report`: the counts of a run again, also under other assumptions.

use std::ffi::OsStr;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context;
use atoll_lab::record::RunRecord;
use atoll_lab::view;
use atoll_model::{Assumption, Assumptions};
use atoll_sys::write_whole;
use clap::{ValueEnum, ValueHint};

use crate::exit::{CommandError, Exit};

/// What `--help` shows.
pub(super) const EXAMPLES: &str = "\
Examples:
  atoll lab run -m symas-8 --report run.json -- ./program
  atoll lab report run.json                       as 'lab run' printed it
  atoll lab report run.json -o run.svg            a picture; by suffix also .json and .txt
  atoll lab report run.json --region 2            one region alone
  atoll lab report run.json --in-flight 4 --busy-cpus 1";

/// Arguments.
#[derive(clap::Args, Debug)]
pub(super) struct ReportArgs {
    /// File that 'lab run --report' wrote
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Output format [default: by the suffix of --output, else text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    of: Option<RecordFormat>,
    /// File to write it to
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Only the counts of this region
    #[arg(long, value_name = "NUMBER")]
    region: Option<u8>,
    /// Number of accesses in flight per cpu for the estimate [default: as in the run]
    #[arg(long, value_name = "N")]
    in_flight: Option<f64>,
    /// Number of busy cpus per node for the estimate [default: as counted]
    #[arg(long, value_name = "N")]
    busy_cpus: Option<f64>,
}

/// The forms of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RecordFormat {
    /// Text tables
    Text,
    /// All of it, for 'lab report' and 'lab compare'
    Json,
    /// A picture
    Svg,
}

impl RecordFormat {
    /// The form that the suffix of a file name asks for.
    pub(super) fn of_file(file: &Path) -> Option<Self> {
        match file.extension().and_then(OsStr::to_str)? {
            "txt" => Some(Self::Text),
            "json" => Some(Self::Json),
            "svg" => Some(Self::Svg),
            _ => None,
        }
    }

    /// The record in this form, ending in a line break.
    pub(super) fn write(self, record: &RunRecord) -> String {
        match self {
            Self::Text => view::text(record),
            Self::Json => record.json(),
            Self::Svg => view::svg(record),
        }
    }
}

/// Runs it.
pub(super) fn run(args: &ReportArgs) -> Result<(), CommandError> {
    let by_suffix = args.output.as_deref().map(form_of);
    let form = args.of.map(Ok).or(by_suffix).unwrap_or(Ok(RecordFormat::Text))?;
    let record = assumed(args, read(&args.file)?)?;
    let record = match args.region {
        Some(number) => of_region(&record, number, &args.file)?,
        None => record,
    };
    let text = form.write(&record);
    match &args.output {
        Some(file) => write_whole(file, text).with_context(|| file.display().to_string())?,
        None => print(&text)?,
    }
    Ok(())
}

/// The form of a file that is to be written.
pub(super) fn form_of(file: &Path) -> Result<RecordFormat, CommandError> {
    RecordFormat::of_file(file).ok_or_else(|| {
        let file = file.display();
        CommandError::with(
            Exit::Usage,
            format_args!(
                "cannot infer the output format of {file}; use .txt, \
                                              .json or .svg"
            ),
        )
    })
}

/// A record that was written.
pub(super) fn read(file: &Path) -> Result<RunRecord, CommandError> {
    Ok(RunRecord::read(file).map_err(anyhow::Error::from)?)
}

/// Writes to stdout.
pub(super) fn print(text: &str) -> Result<(), CommandError> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The record under the assumptions asked for.
fn assumed(args: &ReportArgs, record: RunRecord) -> Result<RunRecord, CommandError> {
    if args.in_flight.is_none() && args.busy_cpus.is_none() {
        return Ok(record);
    }
    let mut assumptions = Assumptions::default();
    if let Some(number) = args.in_flight {
        assumptions.in_flight = Assumption::new(number, "--in-flight");
    }
    assumptions.busy_cpus = args.busy_cpus.map(|number| Assumption::new(number, "--busy-cpus"));
    record.assuming(&assumptions).map_err(|error| CommandError::with(Exit::Usage, error))
}

fn of_region(record: &RunRecord, number: u8, file: &Path) -> Result<RunRecord, CommandError> {
    record.of_region(number).ok_or_else(|| {
        let numbers = record.regions.iter().map(|region| region.number.to_string());
        let there = match numbers.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "it has none".to_owned(),
            numbers => format!("it has {numbers}"),
        };
        let file = file.display();
        CommandError::with(Exit::Usage, format_args!("{file} has no region {number}; {there}"))
    })
}
