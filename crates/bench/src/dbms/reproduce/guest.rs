//! A guest that runs the benchmark, with the host's data, while the lab counts what clients do.

use std::ffi::OsString;
use std::io::stderr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use atoll_lab::{Guest, GuestShape, RunOutcome, RunRequest, Streams, flows};
use atoll_model::{Assumptions, Costs, Estimate};
use atoll_simulation::{Counting, Region, Report};
use atoll_tools::exit::{CommandError, Exit};
use atoll_topology::Bytes;
use serde::Deserialize;

use super::counts::ArmCounts;
use super::{
    ARMS, CACHE_DIVISOR, CPUS, QUERIES, ReproducedMachine, ReproducedSystem, SCALE_FACTOR,
    STATEMENTS, expected,
};
use crate::dbms::DbmsArgs;
use crate::dbms::case::DbmsResult;
use crate::dbms::plan::DbmsPlan;
use crate::dbms::system::SystemName;
use crate::dbms::systems::embedded;
use crate::programs::own_command;

const NODE_MEMORY: Bytes = Bytes(1 << 30);
/// Tables of a few megabytes are a handful of huge pages, which no interleaving spreads evenly.
const SMALL_PAGES: &str = "transparent_hugepage=never";
/// Longest run of a machine: an emulator on a busy host is slow.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// The part of the guest's document that is read.
#[derive(Deserialize)]
struct Printed {
    details: PrintedDetails,
}

#[derive(Deserialize)]
struct PrintedDetails {
    plan: DbmsPlan,
    results: Vec<DbmsResult>,
    problems: Vec<String>,
    refused: Vec<String>,
}

/// Whether a system can be packed.
pub(super) fn can_run(system: SystemName) -> bool {
    matches!(system, SystemName::Atoll | SystemName::Duckdb | SystemName::Sqlite)
}

/// Boots a machine, runs the benchmark there, and reads what was counted.
pub(super) fn reproduced(
    machine: &'static str,
    systems: &[SystemName],
    data: &Path,
    args: &DbmsArgs,
) -> Result<ReproducedMachine, CommandError> {
    let known = atoll_formats::open(machine).map_err(anyhow::Error::from)?;
    let shape = GuestShape {
        cpus_per_node: Some(CPUS),
        memory_per_node: Some(NODE_MEMORY),
        cache_divisor: CACHE_DIVISOR,
        ..GuestShape::default()
    };
    let guest = Guest::try_from_knowledge(&known, &shape).map_err(anyhow::Error::from)?;
    let request = request(guest, systems, data, args)?;
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
    Ok(counted(machine, &outcome, &printed.details)?)
}

fn request(
    guest: Guest,
    systems: &[SystemName],
    data: &Path,
    args: &DbmsArgs,
) -> Result<RunRequest> {
    let own = own_command()?;
    let mut words = vec![own.get_program().to_owned()];
    words.extend(own.get_args().map(ToOwned::to_owned));
    let names: Vec<&str> = systems.iter().map(|it| it.name()).collect();
    words.push("dbms".into());
    let settings = [
        ("--systems", names.join(",")),
        ("--arms", ARMS.join(",")),
        ("--queries", QUERIES.to_owned()),
        ("--scale-factor", SCALE_FACTOR.to_string()),
        ("--statements", STATEMENTS.to_string()),
        ("--repetitions", "1".to_owned()),
        ("--seed", args.seed.to_string()),
    ];
    for (flag, value) in settings {
        words.extend([flag.into(), OsString::from(value)]);
    }
    words.extend(["--json".into(), "--data".into(), data.as_os_str().to_owned()]);
    let mut with = vec![data.to_owned()];
    if let Some(packed) = embedded::packed_python(systems, args.python.as_deref())? {
        words.extend(["--python".into(), packed.program.as_os_str().to_owned()]);
        with.push(packed.program);
        with.extend(packed.packages);
    }
    let mut request = RunRequest::new(guest, words);
    request.with = with;
    request.counting = Some(Counting::Within);
    request.balancing = Some(false);
    request.kernel_arguments.push(SMALL_PAGES.to_owned());
    request.timeout = TIMEOUT;
    if let Some(size) = std::env::var_os("RUST_MIN_STACK") {
        request.environment.push(("RUST_MIN_STACK".into(), size));
    }
    Ok(request)
}

fn counted(
    machine: &'static str,
    outcome: &RunOutcome,
    details: &PrintedDetails,
) -> Result<ReproducedMachine> {
    let report = outcome.report.as_ref().context("the lab counted nothing")?;
    if let Some(failure) = &report.calibration.failure {
        return Err(anyhow!("the lab could not count: {failure}"));
    }
    let texts = equal_texts(details)?;
    let costs = Costs::from_knowledge(outcome.guest.knowledge(), &Assumptions::default())?;
    let nodes = report.setup.nodes.len();
    let system = |system: &SystemName| -> Result<ReproducedSystem> {
        let of = |arm: &&'static str| of_arm(*system, arm, details, report, &costs);
        let arms = ARMS.iter().map(of).collect::<Result<Vec<_>>>()?;
        let answer = details.results.iter().filter(|it| it.case.system == *system);
        let version =
            answer.filter_map(|it| it.answer.as_ref()).map(|it| it.version.clone()).next();
        Ok(ReproducedSystem {
            system: *system,
            version: version.unwrap_or_default(),
            findings: expected::findings(*system, nodes, &arms),
            arms,
        })
    };
    Ok(ReproducedMachine {
        machine,
        nodes,
        notes: outcome.guest.notes().to_vec(),
        systems: details.plan.systems.iter().map(system).collect::<Result<_>>()?,
        texts,
    })
}

/// The counts of a system under an arm.
fn of_arm(
    system: SystemName,
    arm: &'static str,
    details: &PrintedDetails,
    report: &Report,
    costs: &Costs,
) -> Result<ArmCounts> {
    let what = || format!("the lab has no counts of {} under {arm}", system.name());
    let number = details.plan.lab_number(system, arm).with_context(what)?;
    let is_it = |it: &&Region| it.number == number;
    let region = report.regions.iter().find(is_it).with_context(what)?;
    let estimate = Estimate::from_flows(costs, &flows(&report.setup, &region.traffic))?;
    let mut counts = ArmCounts::new(arm, region, system == SystemName::Atoll).with_context(what)?;
    counts.wait_ms = estimate.nodes.iter().map(|node| node.waits.sum().0).sum::<f64>() / 1e6;
    let cases = details.results.iter().filter(|it| it.case.system == system && it.case.arm == arm);
    let seen: Vec<_> =
        cases.filter_map(|it| it.answer.as_ref()).flat_map(|it| &it.instances).collect();
    counts.own_pages =
        seen.iter().filter_map(|it| it.local_share()).sum::<f64>() / seen.len().max(1) as f64;
    Ok(counts)
}

/// Number of texts, whose results are equal in all arms.
fn equal_texts(details: &PrintedDetails) -> Result<usize> {
    let wrong: Vec<&str> =
        details.problems.iter().chain(&details.refused).map(String::as_str).collect();
    ensure!(wrong.is_empty(), "in the lab: {}", wrong.join("; "));
    if let Some(error) = details.results.iter().find_map(|it| it.error.as_ref()) {
        return Err(anyhow!("a case failed in the lab: {error}"));
    }
    let answers = details.results.iter().filter_map(|it| it.answer.as_ref());
    Ok(answers.map(|answer| answer.checks.iter().flatten().count()).sum())
}
