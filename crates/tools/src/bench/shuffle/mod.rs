//! `bench shuffle`: every shuffle on this machine, and, simulated, on a machine that is not here.

mod live;
mod predict;
mod published;
mod references;
mod text;
mod variants;

use atoll_runtime::THREADS_MAX;
use atoll_topology::Bytes;

use super::{ChartAxis, Curve, CurveChart, Document, Form, Manifest, OutputArgs, json, picture};
use crate::bytes;
use crate::exit::{CommandError, Exit};
use variants::{CoordinationName, MovedName, OrderName};

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench shuffle                                      every shuffle, one thread on each cpu
  atoll bench shuffle --order naive,ring --moved pulled --threads 1,2,4,8 -o figure7.svg
  atoll bench shuffle --bytes 4GiB --runs 20 --json
  atoll bench shuffle --simulate --machine nehalem-ex-4    figures 6, 7 and 10 of Li 2013, next to ours
  atoll bench shuffle --simulate --machine intel-8
  atoll lab run -m westmere-ex-4 --cpus 1 --count region -- atoll bench shuffle --bytes 8MiB --runs 1

Each of N workers holds N pieces of 64-bit integers and computes the mean of the N that are meant for
it; pushed pieces are written into its memory. Means are checked. Shares are of what the same workers
read, or for pushed pieces copy with memcpy, in the same run.";

/// Arguments.
#[derive(clap::Args, Debug)]
pub struct ShuffleArgs {
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
    /// Runs of each, in turn; the median counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "simulate")]
    runs: u32,
    /// Runs of each before them, which do not count
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "simulate")]
    warmup: u32,
    /// Seed of the integers and of random orders
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Simulate a machine that is not here, and print published figures next to ours
    #[arg(long, requires = "machine")]
    simulate: bool,
    /// The machine to simulate: a name of 'atoll lab list', or a file
    #[arg(short, long, value_name = "MACHINE", requires = "simulate")]
    machine: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs or simulates, and prints.
pub(super) fn run(args: &ShuffleArgs) -> Result<(), CommandError> {
    let outputs = args.output.outputs(true)?;
    if let Some(machine) = &args.machine {
        let prediction = predict::predict(machine, args)?;
        let manifest = Manifest::here(0, 0, args.seed)?;
        return outputs.write(|form| match form {
            Form::Text => Ok(text::prediction(&prediction)),
            Form::Json => json(&Document {
                benchmark: "shuffle --simulate",
                manifest: &manifest,
                measurements: Vec::new(),
                details: &prediction,
            }),
            Form::Svg => Ok(by_threads(prediction.title(), prediction.curves())),
        });
    }
    let results = live::measure(args)?;
    outputs.write(|form| match form {
        Form::Text => Ok(text::results(&results)),
        Form::Json => json(&Document {
            benchmark: "shuffle",
            manifest: &results.manifest,
            measurements: results.measurements(),
            details: &results,
        }),
        Form::Svg => Ok(by_threads(results.title(), results.curves())),
    })
}

/// A picture of bandwidths.
fn by_threads(title: String, curves: Vec<Curve>) -> String {
    let axis = |label| ChartAxis { label, logarithmic: false };
    let chart =
        CurveChart { title: title.clone(), across: axis("threads"), up: axis("GB/s"), curves };
    picture(&title, &[chart])
}

fn not_here(error: impl std::fmt::Display) -> CommandError {
    CommandError::with(Exit::NotHere, error)
}
