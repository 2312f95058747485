//! `topo`: the machine, its facts, and its oddities.

mod ask;
mod figures;
mod format;
mod measure;
pub(crate) mod which;

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use atoll_sys::write_whole;
use atoll_topology::check;
use clap::{Subcommand, ValueHint};

use crate::exit::{CommandError, Exit};
use format::{Format, files_of};
use which::{ChosenMachine, MachineArgs};

pub use which::live;

/// What `--help` shows.
pub const EXAMPLES: &str = "\
Examples:

What is this machine?
  atoll topo                              a tree, with what was measured of it
  atoll topo -H                           as numactl -H prints it
  atoll topo -o machine.svg               a picture; by suffix also .txt .xml .toml .json .dump
  atoll topo --json | jq '.nodes[].cpus'

How fast is it?
  atoll topo measure                      latency, bandwidth, core to core; kept for later commands
  atoll topo measure --quick --parts latency
  atoll topo facts                        all that is known, each figure with its source and age

What is odd about it, and what may I use?
  atoll topo check                        with the reason and the command that changes it
  atoll topo best-cores 4 --pages 0=3000,1=1000
  atoll topo route 0 3 --machine nehalem-ex-4

Another machine:
  atoll topo machines                     those that ship
  atoll topo --machine epyc-2-nps4        one of them; or a TOML, hwloc XML or dump file
  atoll topo --machine copy/              a directory with a copy of another machine's sys and proc
  atoll topo --synthetic 'node:4(memory=16GiB) l3:2 core:8 pu:2'
  atoll topo --synthetic 'pack:2 [numa] [numa(memory=64GB)] die:2 l2:4 core:1 pu:2(indexes=pack:core)'";

/// Arguments.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = false)]
pub struct TopoArgs {
    #[command(flatten)]
    which: MachineArgs,
    /// As numactl -H prints it
    #[arg(short = 'H', long, conflicts_with = "of")]
    hardware: bool,
    /// One JSON document
    #[arg(long, global = true)]
    json: bool,
    /// Output format, of which --machine reads xml, toml, numactl and dump [default: by the suffix of --output, else
    /// tree]
    #[arg(long, value_name = "FORMAT", value_enum)]
    of: Option<Format>,
    /// File to write it to
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// A command other than showing the machine
    #[command(subcommand)]
    question: Option<TopoQuestion>,
}

/// The questions.
#[derive(Debug, Subcommand)]
enum TopoQuestion {
    /// Measure latency, bandwidth and core-to-core time of this machine, and keep the figures
    #[command(after_help = measure::EXAMPLES)]
    Measure(measure::MeasureArgs),
    /// Check the machine for what slows down a database: why, and the command that changes it
    Check,
    /// List all that is known, each figure with its source and age
    Facts(ask::FactsArgs),
    /// Find the node nearest to data that has enough free cores
    Nearest(ask::NearestArgs),
    /// Find the best cores for pages on given nodes
    BestCores(ask::BestCoresArgs),
    /// Show the links on the way from one node to another, and the narrowest of them
    Route(ask::RouteArgs),
    /// List the machines that ship
    Machines,
}

/// Runs it.
pub(crate) fn run(args: &TopoArgs) -> Result<(), CommandError> {
    let Some(question) = &args.question else { return show(args) };
    if args.hardware || args.of.is_some() || args.output.is_some() {
        let message = "-H, --of and --output belong to 'topo' itself, not to its questions";
        return Err(CommandError::with(Exit::Usage, message));
    }
    let json = args.json;
    match question {
        TopoQuestion::Measure(measure) => {
            if !args.which.is_live() {
                let message = "only the machine this runs on can be measured; leave out --machine, \
                               --synthetic and $HWLOC_XMLFILE";
                return Err(CommandError::with(Exit::NotHere, message));
            }
            measure::run(measure, json)
        }
        TopoQuestion::Check => print(&odd(&args.which.chosen()?, json)?),
        TopoQuestion::Facts(facts) => print(&ask::facts(facts, &args.which.chosen()?.known, json)?),
        TopoQuestion::Nearest(nearest) => {
            print(&ask::nearest(nearest, &args.which.chosen()?.known, json)?)
        }
        TopoQuestion::BestCores(best) => {
            print(&ask::best_cores(best, &args.which.chosen()?.known, json)?)
        }
        TopoQuestion::Route(route) => print(&ask::route(route, &args.which.chosen()?.known, json)?),
        TopoQuestion::Machines => print(&machines(json)?),
    }
}

/// The machine itself.
fn show(args: &TopoArgs) -> Result<(), CommandError> {
    let format = format(args)?;
    let text = format.write(&args.which.chosen()?)?;
    match &args.output {
        Some(file) => {
            write_whole(file, text).with_context(|| file.display().to_string())?;
            Ok(())
        }
        None => print(&text),
    }
}

fn format(args: &TopoArgs) -> Result<Format, CommandError> {
    if args.json && (args.hardware || args.of.is_some_and(|format| format != Format::Json)) {
        return Err(CommandError::with(
            Exit::Usage,
            "--json and another format exclude each other",
        ));
    }
    let named = if args.json { Some(Format::Json) } else { args.of };
    let named = if args.hardware { Some(Format::Numactl) } else { named };
    match (named, &args.output) {
        (Some(format), _) => Ok(format),
        (None, None) => Ok(Format::Tree),
        (None, Some(file)) => Format::of_file(file).ok_or_else(|| {
            let message = format!(
                "cannot infer the output format of {}; use .svg, .txt, .xml, .toml, .json or \
                 .dump, or --of FORMAT",
                file.display()
            );
            CommandError::with(Exit::Usage, message)
        }),
    }
}

fn odd(chosen: &ChosenMachine, json: bool) -> Result<String, CommandError> {
    let findings = check::check(&chosen.known, files_of(chosen, "a check")?);
    Ok(match (json, findings.is_empty()) {
        (true, _) => format!("{:#}\n", serde_json::json!(findings)),
        (false, true) => "No findings.\n".to_owned(),
        (false, false) => check::text(&findings),
    })
}

fn machines(json: bool) -> Result<String, CommandError> {
    let mut rows = Vec::new();
    for (name, text) in atoll_formats::shipped() {
        let about = atoll_formats::toml::description(text, name).map_err(anyhow::Error::from)?;
        rows.push((
            *name,
            about.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "),
        ));
    }
    if json {
        let row = |(name, about)| serde_json::json!({ "name": name, "description": about });
        let rows: Vec<_> = rows.into_iter().map(row).collect();
        return Ok(format!("{:#}\n", serde_json::json!(rows)));
    }
    let line = |(name, about): &(&str, String)| format!("{name:<24}{}\n", first_sentence(about));
    Ok(rows.iter().map(line).collect())
}

/// The part of a description that fits on a line.
fn first_sentence(text: &str) -> &str {
    text.split_inclusive(". ").next().unwrap_or_default().trim_end_matches([' ', '.'])
}

/// Prints; names in it may come from a file of others and must not steer the terminal.
fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    out.write_all(harmless(text).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The text with its control characters, but for line breaks and tabs, written as `\u{1b}`.
fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let letter = |letter: char| match steers(letter) {
        true => letter.escape_unicode().to_string(),
        false => letter.to_string(),
    };
    Cow::Owned(text.chars().map(letter).collect())
}
