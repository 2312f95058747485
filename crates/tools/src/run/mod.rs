//! `run`: starts a program with its threads and memory placed, or one for each node or domain.

mod args;
mod report;
mod words;

use std::ffi::OsStr;
use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use atoll_process::launch::{
    InstancePlan, LaunchError, LaunchOutcome, LaunchPlan, LaunchPlanError, LiveCalls,
    MachineCounters, Obstacle, OutputSink, Program, Supervision, apply, probe, replace, supervise,
};
use atoll_sys::{Root, write_whole};
use atoll_topology::{Allowed, DiscoverError, Machine};

use crate::exit::{CommandError, Exit};
use crate::terminal;

pub use args::LaunchArgs;
use args::ReportTo;
pub(crate) use args::time;

/// What `--help` shows.
pub const EXAMPLES: &str = "\
Examples:

How do I put PostgreSQL on node 1?
  atoll run -N 1 -m 1 -- postgres -D /data         threads and memory on node 1 and nowhere else
  atoll run --placement aligned -N 1 -- postgres -D /data
                                                   the same, but a full node 1 spills to others
  atoll run -N 1 -m same --dry-run -- postgres     what would be asked of the kernel, and refused
  atoll run -N 1 -m 1 --report -- postgres …       and say afterwards where its pages were

Memory on all nodes, for one big server:
  atoll run -i all -- mysqld                       as numactl --interleave=all
  atoll run --placement spread -- mysqld           the same by name

One server for each node, on its own data and port:
  atoll run --instances nodes --logs /var/log/pg -- postgres -D /data/{node} -p 543{i}
  atoll run --instances 4 --placement 'ahead(1)' -- …     memory one node ahead: the worst case

Ctrl-C, or the failure of one, stops all instances (SIGTERM, after --grace SIGKILL). Without
--instances, --logs and --report Atoll becomes the program, as numactl does: same process id. The
exit code is the program's; where several ran, that of the first that failed. Nodes and cpus that do
not exist start nothing (4). Refusals of the kernel are reported on stderr and left out; --strict starts
nothing instead (3 refused, 4 not here).";

/// Runs it.
pub(crate) fn run(args: &LaunchArgs) -> Result<(), CommandError> {
    let machine = discover(args).map_err(anyhow::Error::from)?;
    let plan = LaunchPlan::new(&machine, &args.request()).map_err(without_plan)?;
    let programs = programs(args, &machine, &plan)?;
    let found = probe(&machine, &plan, &LiveCalls);
    if args.is_dry() {
        return dry_run(args, &plan, &programs, &found);
    }
    warn(&plan, &found);
    if args.is_strict() && !found.is_empty() {
        return Err(CommandError::with(refusal(&found), "not started (--strict)"));
    }
    let is_watched = args.is_several() || args.logs().is_some() || args.report().is_some();
    match (is_watched, plan.instances.first(), programs.first()) {
        (false, Some(instance), Some(program)) => Err(become_program(instance, program)),
        _ => watch(args, &plan, programs, &found),
    }
}

fn discover(args: &LaunchArgs) -> Result<Machine, DiscoverError> {
    match args.is_beyond_allowed() {
        true => Machine::discover_at(&Root::live(), &Allowed::everything()),
        false => Machine::discover(),
    }
}

fn programs(
    args: &LaunchArgs,
    machine: &Machine,
    plan: &LaunchPlan,
) -> Result<Vec<Program>, CommandError> {
    let program = args.program();
    if !args.is_several() {
        return Ok(vec![program]);
    }
    let of = |instance: &InstancePlan| program.of_instance(machine, instance);
    plan.instances.iter().map(of).collect::<Result<_, _>>().map_err(without_program)
}

fn dry_run(
    args: &LaunchArgs,
    plan: &LaunchPlan,
    programs: &[Program],
    found: &[Obstacle],
) -> Result<(), CommandError> {
    match args.is_json() {
        true => words::dry_run_json(plan, programs, found, &mut stdout())?,
        false => words::dry_run(plan, programs, found, &mut stdout())?,
    }
    if let Some(program) = programs.iter().find(|program| !is_found(&program.name)) {
        let message = format!("{}: no such program", program.name.to_string_lossy());
        return Err(CommandError::with(Exit::NotFound, message));
    }
    match args.is_strict() && !found.is_empty() {
        true => Err(CommandError::quietly(refusal(found))),
        false => Ok(()),
    }
}

/// Whether there is a file of that name: the path itself if it has a slash, otherwise in a directory of `$PATH`.
fn is_found(name: &OsStr) -> bool {
    if name.as_encoded_bytes().contains(&b'/') {
        return Path::new(name).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

fn warn(plan: &LaunchPlan, found: &[Obstacle]) {
    for note in &plan.notes {
        terminal::say(format_args!("note: {note}"));
    }
    for obstacle in found {
        terminal::say(format_args!("warning: {obstacle}"));
    }
}

/// Returns only when the program cannot be run.
fn become_program(instance: &InstancePlan, program: &Program) -> CommandError {
    // A refusal now repeats one that was reported a moment ago.
    apply(instance, &LiveCalls);
    without_program(replace(program))
}

fn watch(
    args: &LaunchArgs,
    plan: &LaunchPlan,
    programs: Vec<Program>,
    known: &[Obstacle],
) -> Result<(), CommandError> {
    let supervision = Supervision {
        sink: sink(args),
        is_strict: args.is_strict(),
        is_alone: !args.is_several(),
        is_sampled: args.report().is_some(),
        grace: args.grace(),
    };
    let commands: Vec<String> = programs.iter().map(words::command).collect();
    let mut on_obstacle = |obstacle: &Obstacle| {
        if !known.contains(obstacle) {
            terminal::say(format_args!("warning: {obstacle}"));
        }
    };
    let before = MachineCounters::read(&Root::live());
    let outcome = supervise(plan, programs, &supervision, Arc::new(LiveCalls), &mut on_obstacle)
        .map_err(without_program)?;
    let counted = MachineCounters::read(&Root::live()).since(&before);
    if let Some(to) = args.report() {
        let report = report::LaunchReport::new(plan, &commands, &outcome, known, counted);
        deliver(&report, &to, args.is_json())?;
    }
    ended(&outcome)
}

fn sink(args: &LaunchArgs) -> OutputSink {
    match (args.logs(), args.is_several()) {
        (Some(directory), _) => OutputSink::Logs(directory),
        (None, false) => OutputSink::Through,
        (None, true) => OutputSink::Marked {
            stdout: Arc::new(Mutex::new(stdout())),
            stderr: Arc::new(Mutex::new(stderr())),
        },
    }
}

fn deliver(
    report: &report::LaunchReport,
    to: &ReportTo,
    is_json: bool,
) -> Result<(), CommandError> {
    let mut text = Vec::new();
    match is_json {
        true => report.write_json(&mut text)?,
        false => report.write_text(&mut text)?,
    }
    match to {
        ReportTo::Stderr => stderr().write_all(&text)?,
        ReportTo::File(path) => write_whole(path, &text)
            .with_context(|| format!("the report cannot be written to {}", path.display()))?,
    }
    Ok(())
}

fn ended(outcome: &LaunchOutcome) -> Result<(), CommandError> {
    if let Some(failed) = outcome.failed.filter(|_| outcome.instances.len() > 1) {
        let how = words::ending(outcome.instances[failed].ended.ending);
        terminal::say(format_args!("instance {failed} failed ({how}); all were stopped"));
    }
    match outcome.code() {
        0 => Ok(()),
        code => Err(CommandError::quietly(Exit::Child(code))),
    }
}

/// 4 if this machine can never do it, 3 if rights or circumstances forbid it.
fn refusal(found: &[Obstacle]) -> Exit {
    match found.iter().all(|obstacle| obstacle.cause.is_not_here()) {
        true => Exit::NotHere,
        false => Exit::Placement,
    }
}

fn without_plan(error: LaunchPlanError) -> CommandError {
    let exit = match &error {
        LaunchPlanError::Strategy(_) | LaunchPlanError::NoCpus { .. } => Exit::NotHere,
        LaunchPlanError::NowhereToStart { obstacles } => refusal(obstacles),
        LaunchPlanError::NotThere { .. } => Exit::NotHere,
        _ => Exit::Usage,
    };
    CommandError::with(exit, error)
}

fn without_program(error: LaunchError) -> CommandError {
    let exit = match &error {
        LaunchError::NotFound { .. } => Exit::NotFound,
        LaunchError::CannotRun { .. } => Exit::CannotRun,
        LaunchError::Refused { obstacles } => refusal(obstacles),
        LaunchError::NoDomain => Exit::Usage,
        LaunchError::Log { .. } | LaunchError::NoThread { .. } | LaunchError::Watch(_) => Exit::Own,
    };
    CommandError::with(exit, error)
}
