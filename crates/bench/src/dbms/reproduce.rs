//! `--reproduce kiefer`: the paper's machines in the lab, an instance of Atoll on each node, whose accesses are counted
//! under each arm.

use std::ffi::OsString;
use std::io::stderr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use atoll_lab::{Guest, GuestShape, RunRequest, Streams};
use atoll_simulation::{Counting, Region, Report};
use atoll_tools::bench::{Document, Form, Manifest, Outputs, json};
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::terminal;
use atoll_topology::Bytes;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::case::DbmsResult;
use super::counts::{ArmCounts, CountedFinding, findings};
use super::data::DbmsData;
use crate::cache;
use crate::programs::own_command;
use crate::table::table;

/// Papers that are reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Paper {
    /// Kiefer 2013, section 4, in the lab
    Kiefer,
}

/// The paper's machines, with two and four nodes.
const MACHINES: [&str; 2] = ["istanbul-2", "westmere-ex-4"];
/// The paper's arms.
pub(super) const ARMS: [&str; 4] = ["default", "aligned", "ahead(1)", "interleave"];
/// A scan, and a join that also reads at random.
const QUERIES: &str = "q6,hash-join";
/// Scale factor of each instance: an emulator that counts is slow.
const SCALE_FACTOR: f64 = 0.002;
/// Modelled caches are divided by this, so that such a table exceeds them.
const CACHE_DIVISOR: u32 = 64;
/// Cpus of each node, each with a client: even idle ones slow an emulator down.
const CPUS: u32 = 2;
const NODE_MEMORY: Bytes = Bytes(1 << 30);
/// Longest run of a machine: an emulator on a busy host is slow.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// A machine's counts.
#[derive(Debug, Serialize)]
struct ReproducedMachine {
    machine: &'static str,
    nodes: usize,
    /// How the guest differs from the machine.
    notes: Vec<String>,
    arms: Vec<ArmCounts>,
    findings: Vec<CountedFinding>,
    /// Texts whose results were the same in all instances and arms.
    texts: usize,
}

/// Boots both machines, one after the other, and writes what was counted.
pub(super) fn run(outputs: &Outputs) -> Result<(), CommandError> {
    let mut manifest = Manifest::here(1, 0, 1)?;
    let directory = cache::databases(None)?;
    let data = DbmsData::make(directory.path(), SCALE_FACTOR, TIMEOUT)?;
    let mut machines = Vec::new();
    for machine in MACHINES {
        terminal::say(format_args!("{machine} in the lab, some minutes"));
        machines.push(reproduced(machine, data.directory())?);
    }
    manifest.end([("atoll".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
    outputs.write(|form| match form {
        Form::Json => json(&Document {
            benchmark: "dbms --reproduce",
            manifest: &manifest,
            measurements: Vec::new(),
            details: &machines,
        }),
        _ => Ok(to_markdown(&machines, &manifest)),
    })
}

/// The part of the guest's document that is read.
#[derive(Deserialize)]
struct Printed {
    details: PrintedDetails,
}

#[derive(Deserialize)]
struct PrintedDetails {
    results: Vec<DbmsResult>,
    problems: Vec<String>,
}

fn reproduced(machine: &'static str, data: &Path) -> Result<ReproducedMachine, CommandError> {
    let known = atoll_formats::open(machine).map_err(anyhow::Error::from)?;
    let shape = GuestShape {
        cpus_per_node: Some(CPUS),
        memory_per_node: Some(NODE_MEMORY),
        cache_divisor: CACHE_DIVISOR,
        ..GuestShape::default()
    };
    let guest = Guest::try_from_knowledge(&known, &shape).map_err(anyhow::Error::from)?;
    let mut request = RunRequest::new(guest, command(data)?);
    request.with.push(data.to_owned());
    request.counting = Some(Counting::Region);
    request.balancing = Some(false);
    request.timeout = TIMEOUT;
    if let Some(size) = std::env::var_os("RUST_MIN_STACK") {
        request.environment.push(("RUST_MIN_STACK".into(), size));
    }
    let mut out = Vec::new();
    let streams = Streams { out: &mut out, err: &mut stderr() };
    let outcome = atoll_lab::run(&request, streams)
        .map_err(|error| CommandError::with(Exit::NotHere, error))?;
    if outcome.code != 0 {
        let message = format!("the benchmark failed on {machine} with code {}", outcome.code);
        return Err(CommandError::with(Exit::Own, message));
    }
    let printed: Printed =
        serde_json::from_slice(&out).context("the lab's output is not the benchmark's JSON")?;
    let report = outcome.report.context("the lab counted nothing")?;
    let texts = equal_texts(&printed.details)?;
    let arms = counted(&report)?;
    let nodes = report.setup.nodes.len();
    Ok(ReproducedMachine {
        machine,
        nodes,
        notes: outcome.guest.notes().to_vec(),
        findings: findings(nodes, &arms),
        arms,
        texts,
    })
}

/// The benchmark, as the guest runs it.
fn command(data: &Path) -> Result<Vec<OsString>> {
    let own = own_command()?;
    let mut words = vec![own.get_program().to_owned()];
    words.extend(own.get_args().map(ToOwned::to_owned));
    let arms = ARMS.join(",");
    words.extend(
        [
            "dbms",
            "--systems",
            "atoll",
            "--arms",
            &arms,
            "--queries",
            QUERIES,
            "--scale-factor",
            &SCALE_FACTOR.to_string(),
            "--seconds",
            "0.05",
            "--warmup",
            "0.05",
            "--repetitions",
            "1",
            "--json",
        ]
        .map(OsString::from),
    );
    words.extend(["--data".into(), data.as_os_str().to_owned()]);
    Ok(words)
}

/// Number of texts, whose results are equal in all arms.
fn equal_texts(details: &PrintedDetails) -> Result<usize> {
    ensure!(details.problems.is_empty(), "{}", details.problems.join("; "));
    if let Some(error) = details.results.iter().find_map(|it| it.error.as_ref()) {
        return Err(anyhow!("a case failed in the lab: {error}"));
    }
    let answers = details.results.iter().filter_map(|it| it.answer.as_ref());
    Ok(answers.map(|answer| answer.checks.iter().flatten().count()).sum())
}

/// The number that the lab's counter knows an arm's instances by: 1 is that of all other processes.
pub(super) fn lab_number(arm: usize) -> Option<u8> {
    u8::try_from(arm + 2).ok().filter(|number| *number < atoll_marker::TAGS)
}

/// The counts of each arm's region.
fn counted(report: &Report) -> Result<Vec<ArmCounts>> {
    if let Some(failure) = &report.calibration.failure {
        return Err(anyhow!("the lab could not count: {failure}"));
    }
    let of = |(at, arm): (usize, &&'static str)| {
        let region = |it: &&Region| Some(it.number) == lab_number(at);
        let region = report.regions.iter().find(region);
        let region = region.with_context(|| format!("the lab has no counts of {arm}"))?;
        ArmCounts::new(arm, region).with_context(|| format!("no table was read under {arm}"))
    };
    ARMS.iter().enumerate().map(of).collect()
}

fn to_markdown(machines: &[ReproducedMachine], manifest: &Manifest) -> String {
    let mut text = format!(
        "# Kiefer 2013, section 4, in the lab\n\n{manifest}\
         - an instance of Atoll on each node, TPC-H at scale factor {SCALE_FACTOR}, queries {QUERIES}; \
         caches divided by {CACHE_DIVISOR}\n\
         - nothing is timed: the lab counts the queries' accesses, and models caches and links\n"
    );
    for it in machines {
        text.push_str(&format!("\n## {}: {} instances\n\n", it.machine, it.nodes));
        it.notes.iter().for_each(|note| text.push_str(&format!("- {note}\n")));
        let rows: Vec<Vec<String>> = it.arms.iter().map(ArmCounts::row).collect();
        text.push_str(&format!("\n{}\n", table(&ArmCounts::HEAD.map(str::to_owned), &rows)));
        let head = ["expected", "counted", "here"].map(str::to_owned);
        let row = |it: &CountedFinding| {
            vec![it.says.to_owned(), it.because.clone(), it.verdict.to_string()]
        };
        text.push_str(&table(&head, &it.findings.iter().map(row).collect::<Vec<_>>()));
        text.push_str(&format!(
            "\nThe results of {} texts were equal in all clients, instances and arms.\n",
            it.texts
        ));
    }
    text
}
