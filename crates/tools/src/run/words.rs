//! The plan in words and as JSON.

use std::io::{self, Write};

use atoll_process::launch::{InstancePlan, LaunchPlan, Obstacle, Program};
use atoll_sys::{Ending, signal_name};
use serde::Serialize;

/// What `--dry-run` says.
pub(super) fn dry_run(
    plan: &LaunchPlan,
    programs: &[Program],
    found: &[Obstacle],
    out: &mut dyn Write,
) -> io::Result<()> {
    for (instance, program) in plan.instances.iter().zip(programs) {
        if plan.instances.len() > 1 {
            writeln!(out, "instance {}, {}", instance.index, place(instance))?;
        }
        match &instance.cpus {
            Some(cpus) => writeln!(out, "  sched_setaffinity  cpus {cpus}")?,
            None => writeln!(out, "  (affinity stays as it is)")?,
        }
        match &instance.memory {
            Some(policy) => writeln!(out, "  set_mempolicy      {policy}")?,
            None => writeln!(out, "  (memory policy stays as it is)")?,
        }
        writeln!(out, "  execve             {}", command(program))?;
    }
    for note in &plan.notes {
        writeln!(out, "note: {note}")?;
    }
    for obstacle in found {
        writeln!(out, "obstacle: {obstacle}")?;
    }
    match (found.is_empty(), plan.is_empty()) {
        (true, false) => {
            writeln!(out, "no obstacles: a thread asked the kernel, and it accepted")
        }
        (true, true) => writeln!(out, "nothing is asked of the kernel"),
        _ => writeln!(out, "refused settings are left out; with --strict nothing is started"),
    }
}

#[derive(Serialize)]
struct DryRun<'a> {
    instances: Vec<DryInstance<'a>>,
    obstacles: &'a [Obstacle],
    notes: &'a [String],
}

#[derive(Serialize)]
struct DryInstance<'a> {
    #[serde(flatten)]
    plan: &'a InstancePlan,
    command: Vec<String>,
    environment: Vec<String>,
}

/// The same as one JSON document.
pub(super) fn dry_run_json(
    plan: &LaunchPlan,
    programs: &[Program],
    found: &[Obstacle],
    out: &mut dyn Write,
) -> io::Result<()> {
    let instance = |(plan, program): (_, &Program)| DryInstance {
        plan,
        command: words(program),
        environment: variables(program),
    };
    let document = DryRun {
        instances: plan.instances.iter().zip(programs).map(instance).collect(),
        obstacles: found,
        notes: &plan.notes,
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// `node 1`, `domain 3 on node 1`
pub(super) fn place(instance: &InstancePlan) -> String {
    match instance.domain {
        Some(domain) => format!("domain {domain} on node {}", instance.node),
        None => format!("node {}", instance.node),
    }
}

/// The request for an instance, in one line.
pub(super) fn asked(instance: &InstancePlan) -> String {
    let cpus = instance.cpus.as_ref().map(|cpus| format!("threads on cpus {cpus}"));
    let memory = instance.memory.as_ref().map(|policy| format!("memory {policy}"));
    let (cpus, memory) = (cpus.as_deref(), memory.as_deref());
    format!("{}, {}", cpus.unwrap_or("threads free"), memory.unwrap_or("memory policy inherited"))
}

/// `code 0`, `SIGTERM (15)`
pub(super) fn ending(ending: Ending) -> String {
    match ending {
        Ending::Code(code) => format!("code {code}"),
        Ending::Signal(number) => format!("{} ({number})", signal_name(number)),
    }
}

/// The command as one types it in a shell.
pub(super) fn command(program: &Program) -> String {
    let quoted = |word: String| match is_plain(&word) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let all = variables(program).into_iter().chain(words(program));
    all.map(quoted).collect::<Vec<_>>().join(" ")
}

fn words(program: &Program) -> Vec<String> {
    let all = std::iter::once(&program.name).chain(&program.arguments);
    all.map(|word| word.to_string_lossy().into_owned()).collect()
}

fn variables(program: &Program) -> Vec<String> {
    let one = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
        format!("{}={}", name.to_string_lossy(), value.to_string_lossy())
    };
    program.environment.iter().map(one).collect()
}

fn is_plain(word: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    !word.is_empty() && word.bytes().all(is_plain)
}
