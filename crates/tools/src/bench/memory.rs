//! `bench memory`: flags and output of the experiments.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::sync::Arc;

use anyhow::Context;
use atoll_experiments::{
    Arm, Arrangement, By, Custom, ExperimentOptions, ExperimentResults, Kind, Operation,
    PartProgram, Plan, PlanError, RunConditions, Which, plan, plot, table,
};
use atoll_placement::{Kernel, LiveKernel, Strategy};
use atoll_sys::{Root, block_signals};
use atoll_topology::{Bytes, Machine};
use clap::ValueEnum;
use serde_json::json as object;

use super::manifest::is_lab;
use super::reproduce::{Paper, Reproduction, reproduce};
use super::{Document, Form, Manifest, Measurement, OutputArgs, json, put};
use crate::exit::{CommandError, Exit};
use crate::{bytes, terminal};

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench memory                              the paper's four experiments on this machine
  atoll bench memory --experiment 1,2 --json
  atoll bench memory -e 3 -o run.svg              a picture; by suffix also .json and .txt
  atoll bench memory --experiment 4 --by domain   caches shared by domain on a single node
  atoll bench memory --threads 8 --size 64MiB --operation write --placement interleave,farthest
  atoll bench memory --size 1GiB --kind dependent --migrations 0,10
  atoll lab run -m westmere-ex-4 --cache-divisor 16 -- atoll bench memory -e 4 --scale 16

Threads read or write random bytes of arrays; each row compares arms with the first of it. 'placed' is
the share of the arrays' pages that the kernel found where they were wanted. Measure on an idle
machine: the spread over the repetitions shows how idle it was.";

/// Largest part that a process reads from stdin.
const PART_MAX: u64 = 64 << 20;

/// Arguments.
#[derive(clap::Args, Debug)]
pub struct MemoryArgs {
    /// Boot the paper's machine in the lab, and print its figures next to ours
    #[arg(long, value_name = "PAPER", conflicts_with_all = ["experiment", "own", "migrations", "by", "kind", "accesses", "runs", "scale", "turn", "slices", "seed"])]
    reproduce: Option<Paper>,
    /// Experiments of the paper: 1 remote memory, 2 migration of a thread, 3 migration into others'
    /// caches, 4 caches shared by groups, or all [default: all]
    #[arg(short, long, value_name = "N", value_delimiter = ',', value_parser = experiment)]
    experiment: Vec<BTreeSet<u8>>,
    #[command(flatten)]
    custom: CustomArgs,
    /// Times that each thread is moved on during a run; several are compared
    #[arg(long, value_name = "N", value_delimiter = ',')]
    migrations: Vec<u32>,
    /// Between what threads are dealt out and migrate [default: node; in experiment 4 domain where
    /// there is one node]
    #[arg(long, value_name = "WHAT")]
    by: Option<ByName>,
    /// Whether an access waits for the one before
    #[arg(long, value_name = "KIND", default_value = "independent")]
    kind: KindName,
    /// Accesses of each thread, or four numbers, one for each experiment [default: what takes 0.3 s]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    accesses: Vec<u64>,
    /// Runs of each arm; the median counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: u32,
    /// Divide the arrays' sizes by this, as a machine's caches were divided
    #[arg(long, value_name = "K", default_value_t = 1)]
    scale: u32,
    /// Accesses after which threads that share a cache wait for each other, for emulators that run
    /// few at a time
    /// [default: never; in the lab 1024]
    #[arg(long, value_name = "N")]
    turn: Option<u64>,
    /// Parts of a run that are timed one by one
    #[arg(long, value_name = "N", default_value_t = 50)]
    slices: u32,
    /// Seed of the random places
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputArgs,
}

/// The flags of a custom run.
#[derive(clap::Args, Debug)]
#[group(id = "own", multiple = true, conflicts_with = "experiment")]
struct CustomArgs {
    /// Threads of each group, which share an array [default: 1]
    #[arg(long, value_name = "N", help_heading = "Custom run")]
    threads: Option<u32>,
    /// Groups; each has an array of its own [default: 1]
    #[arg(long, value_name = "N", help_heading = "Custom run")]
    groups: Option<u32>,
    /// Sizes of the arrays [default: 128MiB]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = bytes::parse, help_heading = "Custom run")]
    size: Vec<Bytes>,
    /// read, write or both [default: read]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', help_heading = "Custom run")]
    operation: Vec<OperationName>,
    /// Threads of a group on one node or domain, or dealt out [default: co-located]
    #[arg(long, value_name = "HOW", value_delimiter = ',', help_heading = "Custom run")]
    arrangement: Vec<ArrangementName>,
    /// Where the arrays lie, seen from their group: aligned, farthest, ahead(k), interleave, …
    /// [default: aligned]
    #[arg(long, value_name = "STRATEGY", value_delimiter = ',', help_heading = "Custom run")]
    placement: Vec<Strategy>,
    /// Each group is its own process
    #[arg(long, help_heading = "Custom run")]
    processes: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ByName {
    Node,
    Domain,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindName {
    Independent,
    Dependent,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OperationName {
    Read,
    Write,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ArrangementName {
    CoLocated,
    RoundRobin,
}

fn experiment(text: &str) -> Result<BTreeSet<u8>, String> {
    match text {
        "all" => Ok((1..=4).collect()),
        "1" | "2" | "3" | "4" => Ok(text.parse().into_iter().collect()),
        _ => Err("the experiments are 1, 2, 3, 4 or all".to_owned()),
    }
}

impl MemoryArgs {
    fn which(&self) -> Which {
        match self.custom.is_asked_for()
            || (self.experiment.is_empty() && !self.migrations.is_empty())
        {
            true => Which::Custom(self.custom.custom(&self.migrations)),
            false if self.experiment.is_empty() => Which::Experiments((1..=4).collect()),
            false => Which::Experiments(self.experiment.iter().flatten().copied().collect()),
        }
    }

    fn options(&self) -> ExperimentOptions {
        ExperimentOptions {
            scale: self.scale,
            repetitions: self.runs,
            accesses: self.accesses.clone(),
            slices: self.slices,
            turn: self.turn.unwrap_or(if is_lab() { TURN_LAB } else { 0 }),
            migrations: (!self.migrations.is_empty()).then(|| self.migrations.clone()),
            by: self.by.map(|by| match by {
                ByName::Node => By::Node,
                ByName::Domain => By::Domain,
            }),
            kind: match self.kind {
                KindName::Independent => Kind::Independent,
                KindName::Dependent => Kind::Dependent,
            },
            seed: self.seed,
        }
    }
}

impl CustomArgs {
    fn is_asked_for(&self) -> bool {
        self.threads.is_some()
            || self.groups.is_some()
            || !self.size.is_empty()
            || !self.operation.is_empty()
            || !self.arrangement.is_empty()
            || !self.placement.is_empty()
            || self.processes
    }

    fn custom(&self, migrations: &[u32]) -> Custom {
        let operation = |name: &OperationName| match name {
            OperationName::Read => Operation::Read,
            OperationName::Write => Operation::Write,
        };
        let arrangement = |name: &ArrangementName| match name {
            ArrangementName::CoLocated => Arrangement::CoLocated,
            ArrangementName::RoundRobin => Arrangement::RoundRobin,
        };
        Custom {
            groups: self.groups.unwrap_or(1),
            threads: self.threads.unwrap_or(1),
            sizes: or(self.size.clone(), Bytes(128 << 20)),
            operations: or(self.operation.iter().map(operation).collect(), Operation::Read),
            migrations: or(migrations.to_vec(), 0),
            arrangements: or(
                self.arrangement.iter().map(arrangement).collect(),
                Arrangement::CoLocated,
            ),
            placements: or(self.placement.clone(), Strategy::Aligned),
            processes: self.processes,
        }
    }
}

/// The values, or the default if there are none.
fn or<T>(values: Vec<T>, otherwise: T) -> Vec<T> {
    if values.is_empty() { vec![otherwise] } else { values }
}

/// Accesses between two waits in the lab, where two cpus may have to emulate sixteen.
const TURN_LAB: u64 = 1024;

/// Plans, runs, prints.
pub(super) fn run(args: &MemoryArgs) -> Result<(), CommandError> {
    let outputs = args.output.outputs(true)?;
    if let Some(paper) = args.reproduce {
        let mut manifest = Manifest::here(1, 0, args.seed)?;
        let reproduction = reproduce(paper)?;
        manifest.end([]);
        return outputs.write(|form| show(&reproduction, &manifest, form));
    }
    let machine = this_machine()?;
    let options = args.options();
    let plan = plan(&machine, &args.which(), &options).map_err(not_planned)?;
    let mut manifest = Manifest::new(&machine, args.runs, 0, args.seed);
    let results = measured(&machine, plan, &options)?;
    manifest.end([]);
    outputs.write(|form| match form {
        Form::Text => Ok(table(&results)),
        Form::Json => json(&Document {
            benchmark: "memory",
            manifest: &manifest,
            measurements: measurements(&results),
            details: &results,
        }),
        Form::Svg => Ok(plot::results(&results)),
    })?;
    match results.arms.iter().all(|arm| arm.failure.is_some()) {
        true => Err(CommandError::with(Exit::Placement, "no arm could be run")),
        false => Ok(()),
    }
}

fn measurements(results: &ExperimentResults) -> Vec<Measurement> {
    let of = |arm: &atoll_experiments::ArmOutcome| {
        let case = object!({ "experiment": arm.arm.experiment, "arm": arm.arm.title() });
        Measurement::times(&case, "atoll", "ns", arm.runs_ns.clone())
    };
    results.arms.iter().map(of).collect()
}

fn show(
    reproduction: &Reproduction,
    manifest: &Manifest,
    form: Form,
) -> Result<String, CommandError> {
    match form {
        Form::Text => Ok(reproduction.text()),
        Form::Json => json(&Document {
            benchmark: "memory --reproduce",
            manifest,
            measurements: Vec::new(),
            details: reproduction,
        }),
        Form::Svg => Ok(reproduction.svg()),
    }
}

/// The part of this machine that the process may use.
fn this_machine() -> Result<Arc<Machine>, CommandError> {
    let machine = Machine::discover().context("this machine cannot be described");
    Ok(Arc::new(machine?))
}

fn not_planned(error: PlanError) -> CommandError {
    let exit = match error {
        PlanError::Options(_) => Exit::Usage,
        PlanError::NotHere(_) | PlanError::Strategy(_) => Exit::NotHere,
    };
    CommandError::with(exit, error)
}

fn measured(
    machine: &Arc<Machine>,
    plan: Plan,
    options: &ExperimentOptions,
) -> Result<ExperimentResults, CommandError> {
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    let program = program()?;
    let conditions = RunConditions { machine, kernel: &kernel, program: Some(&program) };
    let count = plan.arms.len();
    let arms = atoll_experiments::run(&conditions, &plan, options, &mut |index, arm: &Arm| {
        terminal::say(format_args!("{:>2}/{count}  {}", index + 1, arm.title()));
    });
    let manifest =
        atoll_experiments::ExperimentManifest::new(machine, &Root::live(), options, is_lab());
    Ok(ExperimentResults { manifest, arms, rows: plan.rows, notes: plan.notes })
}

/// This program, as a process of a run.
fn program() -> Result<PartProgram, CommandError> {
    let mask = block_signals(&[]).map_err(anyhow::Error::from)?;
    let mut command = super::own_words()?;
    command.push("part".into());
    Ok(PartProgram { command, mask })
}

/// Arguments of a process of a run.
#[derive(clap::Args, Debug)]
pub struct PartArgs {
    /// Descriptor of the words that the processes share
    descriptor: i32,
}

/// Runs the part that stdin holds.
pub(super) fn part(args: &PartArgs) -> Result<(), CommandError> {
    let machine = this_machine()?;
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    let mut text = String::new();
    io::stdin().take(PART_MAX).read_to_string(&mut text)?;
    let answer = atoll_experiments::serve(&machine, &kernel, args.descriptor, &text);
    let answer = answer.map_err(|error| CommandError::with(Exit::Own, error))?;
    put(None, &answer)
}
