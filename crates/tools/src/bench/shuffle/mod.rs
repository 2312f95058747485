//! `bench shuffle`: every shuffle on this machine, and, simulated, on a machine that is not here.

mod chart;
mod live;
mod predict;
mod published;
mod references;
mod text;
mod variants;

use std::path::PathBuf;

use atoll_runtime::THREADS_MAX;
use atoll_topology::Bytes;
use clap::ValueHint;

use super::form::{Form, document, put};
use crate::bytes;
use crate::exit::{Ends, Exit};
use variants::{CoordinationName, MovedName, OrderName};

/// What `--help` shows.
pub(super) const EXAMPLES: &str = "\
Examples:
  atoll bench shuffle                                      every shuffle, one thread on each cpu
  atoll bench shuffle --order naive,ring --moved pulled --threads 1,2,4,8 -o figure7.svg
  atoll bench shuffle --bytes 4GiB --runs 20 --json
  atoll bench shuffle --simulate --machine nehalem-ex-4    figures 6, 7 and 10 of Li 2013, beside ours
  atoll bench shuffle --simulate --machine intel-8
  atoll lab run -m westmere-ex-4 --cpus 1 --count region -- atoll bench shuffle --bytes 8MiB --runs 1

Each of N workers holds N pieces of 64-bit integers and computes the mean of the N that are meant for
it; pushed pieces are written into its memory. Means are checked. Shares are of what the same workers
read, or for pushed pieces copy with memcpy, in the same run.";

/// Arguments.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// In which order each worker takes its turns [default: all]
    #[arg(long, value_name = "ORDER", value_delimiter = ',')]
    order: Vec<OrderName>,
    /// What crosses the machine [default: all]
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    moved: Vec<MovedName>,
    /// Whether the workers wait for one another between the steps [default: both]
    #[arg(long, value_name = "HOW", value_delimiter = ',')]
    coordination: Vec<CoordinationName>,
    /// Workers; several numbers are compared [default: one for each cpu]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    threads: Vec<u16>,
    /// Size of all pieces together
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = bytes::parse, conflicts_with = "simulate")]
    bytes: Bytes,
    /// Runs of each; their mean, least and most are told
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "simulate")]
    runs: u32,
    /// Seed of the integers and of random orders
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Simulate a machine that is not here, and print published figures beside ours
    #[arg(long, requires = "machine")]
    simulate: bool,
    /// The machine to simulate: a name of 'atoll lab list', or a file
    #[arg(short, long, value_name = "MACHINE", requires = "simulate")]
    machine: Option<String>,
    /// How the results are written [default: by the suffix of --output, else text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    of: Option<Form>,
    /// The same as --of json
    #[arg(long, conflicts_with = "of")]
    json: bool,
    /// File to write them to instead of stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

impl Args {
    fn form(&self) -> Result<Form, Ends> {
        let form = if self.json { Some(Form::Json) } else { self.of };
        Form::asked_for(form, self.output.as_deref())
    }
}

/// Runs or simulates, and prints.
pub(super) fn run(args: &Args) -> Result<(), Ends> {
    let form = args.form()?;
    let text = match &args.machine {
        Some(machine) => {
            let prediction = predict::predict(machine, args)?;
            match form {
                Form::Text => text::prediction(&prediction),
                Form::Json => document(&prediction)?,
                Form::Svg => chart::by_threads(&prediction.title(), &prediction.curves()),
            }
        }
        None => {
            let results = live::measure(args)?;
            match form {
                Form::Text => text::results(&results),
                Form::Json => document(&results)?,
                Form::Svg => chart::by_threads(&results.title(), &results.curves()),
            }
        }
    };
    put(args.output.as_ref(), &text)
}

fn not_here(error: impl std::fmt::Display) -> Ends {
    Ends::with(Exit::NotHere, error)
}
