//! `--reproduce kiefer`: the paper's machines in the lab, an instance of a system on each node, and the accesses of its
//! clients counted under each arm.
//!
//! | File | Owns |
//! |---|---|
//! | `guest` | a machine that runs the benchmark and counts |
//! | `counts` | what was counted under an arm |
//! | `expected` | what the paper and the placements let expect of it |

mod counts;
mod expected;
mod guest;

use anyhow::Result;
use atoll_tools::bench::{Document, Form, Manifest, Outputs, json};
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::terminal;
use clap::ValueEnum;
use serde::Serialize;

use super::data::DbmsData;
use super::system::SystemName;
use super::{DbmsArgs, findings::Finding};
use crate::cache;
use crate::table::table;
use crate::trials::unique;
use counts::ArmCounts;

/// Papers that are reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Paper {
    /// Kiefer 2013, section 4, in the lab
    Kiefer,
}

/// The paper's machines, with two and four nodes.
const MACHINES: [&str; 2] = ["istanbul-2", "westmere-ex-4"];
/// The paper's arms.
const ARMS: [&str; 4] = ["default", "aligned", "ahead(1)", "interleave"];
/// A scan, and a join that also reads at random.
const QUERIES: &str = "q6,hash-join";
/// Scale factor of each instance: an emulator that counts is slow.
const SCALE_FACTOR: f64 = 0.01;
/// Statements of each client for each query.
const STATEMENTS: u32 = 2;
/// Modelled caches are divided by this, so that such tables exceed them as the paper's did.
const CACHE_DIVISOR: u32 = 64;
/// Cpus of each node, each with a client: even idle ones slow an emulator down.
const CPUS: u32 = 2;

/// A machine's counts.
#[derive(Debug, Serialize)]
struct ReproducedMachine {
    machine: &'static str,
    nodes: usize,
    /// How the guest differs from the machine.
    notes: Vec<String>,
    systems: Vec<ReproducedSystem>,
    /// Texts whose results were the same in all instances and arms.
    texts: usize,
}

/// A system's counts.
#[derive(Debug, Serialize)]
struct ReproducedSystem {
    system: SystemName,
    version: String,
    arms: Vec<ArmCounts>,
    findings: Vec<Finding>,
}

/// Boots both machines, one after the other, and writes what was counted.
pub(super) fn run(args: &DbmsArgs) -> Result<(), CommandError> {
    let outputs = args.output.outputs(false)?;
    let systems = match args.systems.is_empty() {
        true => vec![SystemName::Atoll],
        false => unique(args.systems.iter().copied()),
    };
    if let Some(other) = systems.iter().find(|it| !guest::can_run(**it)) {
        let message =
            format!("{} does not run in the lab; atoll, duckdb and sqlite do", other.name());
        return Err(CommandError::with(Exit::Usage, message));
    }
    let mut manifest = Manifest::here(1, 0, args.seed)?;
    let directory = cache::databases(args.directory.as_deref())?;
    let patience = std::time::Duration::from_secs_f64(args.timeout);
    let data = DbmsData::generate(directory.path(), SCALE_FACTOR, None, patience)?;
    let mut machines = Vec::new();
    for machine in MACHINES {
        terminal::say(format_args!("{machine} in the lab, some minutes"));
        machines.push(guest::reproduced(machine, &systems, data.directory(), args)?);
    }
    let engines = machines.first().into_iter().flat_map(|it: &ReproducedMachine| &it.systems);
    manifest.end(engines.map(|it| (it.system.name().to_owned(), it.version.clone())));
    write(&outputs, &manifest, &machines)
}

fn write(
    outputs: &Outputs,
    manifest: &Manifest,
    machines: &[ReproducedMachine],
) -> Result<(), CommandError> {
    outputs.write(|form| match form {
        Form::Json => json(&Document {
            benchmark: "dbms --reproduce",
            manifest,
            measurements: Vec::new(),
            details: &machines,
        }),
        _ => Ok(to_markdown(machines, manifest)),
    })
}

fn to_markdown(machines: &[ReproducedMachine], manifest: &Manifest) -> String {
    let mut text = format!(
        "# Kiefer 2013, section 4, in the lab\n\n{manifest}\
         - an instance on each node with {CPUS} clients, TPC-H at scale factor {SCALE_FACTOR}; each client runs \
         {STATEMENTS} statements of each of {QUERIES}; pages are small, caches divided by {CACHE_DIVISOR}\n\
         - nothing is timed: the lab counts accesses, models caches and links, and estimates how long cpus wait\n"
    );
    for it in machines {
        text.push_str(&format!("\n## {}: {} instances\n", it.machine, it.nodes));
        if !it.notes.is_empty() {
            text.push('\n');
        }
        it.notes.iter().for_each(|note| text.push_str(&format!("- {note}\n")));
        it.systems.iter().for_each(|system| text.push_str(&system.to_markdown()));
        text.push_str(&format!(
            "\nThe results of {} texts were equal in all clients, instances and arms of a system.\n",
            it.texts
        ));
    }
    text
}

impl ReproducedSystem {
    fn to_markdown(&self) -> String {
        let what = match self.arms.iter().any(|arm| arm.is_of_tables) {
            true => "Misses are those of lines of tables.",
            false => "Misses are all: the pages of its tables are not known.",
        };
        let head = ArmCounts::HEAD.map(str::to_owned);
        let rows: Vec<Vec<String>> = self.arms.iter().map(ArmCounts::row).collect();
        let counted = table(&head, &rows);
        let head = ["expected", "counted", "here"].map(str::to_owned);
        let row = |it: &Finding| vec![it.says.clone(), it.because.clone(), it.verdict.to_string()];
        let found = table(&head, &self.findings.iter().map(row).collect::<Vec<_>>());
        format!("\n### {} {}\n\n{what}\n\n{counted}\n{found}", self.system.name(), self.version)
    }
}
