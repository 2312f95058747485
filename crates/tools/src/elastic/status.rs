//! `status` and `undo`: runs and their cores, and the leftovers of killed runs.

use std::io::Write;
use std::time::Duration;

use atoll_elastic::actuate::{FoundJournal, JournalDirectory, Undone};
use atoll_elastic::monitor::MonitorState;
use atoll_topology::CpuSet;
use serde_json::{Value, json};

use super::control::JournalArgs;
use super::followed::Followed;
use super::setup::{Surroundings, journal_error};
use crate::exit::{CommandError, Exit};
use crate::terminal;

/// The state of a run.
#[derive(serde::Serialize)]
pub(super) struct RunStatus {
    elapsed_seconds: f64,
    targets: Vec<TargetStatus>,
}

/// The state of a target.
#[derive(serde::Serialize)]
struct TargetStatus {
    name: String,
    actuator: Option<String>,
    cores: usize,
    cpus: CpuSet,
    cores_free: usize,
    saturated_nodes: Vec<u32>,
    pages: Vec<(u32, u64)>,
    monitors: Vec<MonitorState>,
}

impl RunStatus {
    pub(super) fn new(targets: &[Followed], at: Duration) -> Self {
        let of = |target: &Followed| {
            let session = &target.session;
            let controller = session.controller();
            TargetStatus {
                name: session.name().to_owned(),
                actuator: session.actuator(),
                cores: controller.map_or(0, |it| it.given().len()),
                cpus: controller.map(|it| it.cpus()).unwrap_or_default(),
                cores_free: controller.map_or(0, |it| it.free().len()),
                saturated_nodes: controller
                    .map(|it| it.saturated().iter().map(|node| node.0).collect())
                    .unwrap_or_default(),
                pages: session.pages().in_order().into_iter().map(|(n, p)| (n.0, p)).collect(),
                monitors: session.monitors(),
            }
        };
        Self { elapsed_seconds: at.as_secs_f64(), targets: targets.iter().map(of).collect() }
    }
}

/// Arguments of `status`.
#[derive(clap::Args, Debug)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    journal: JournalArgs,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

/// Arguments of `undo`.
#[derive(clap::Args, Debug)]
pub(super) struct UndoArgs {
    #[command(flatten)]
    journal: JournalArgs,
    /// Say what would be undone
    #[arg(long)]
    dry_run: bool,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

/// What became of a run.
fn state(surroundings: &Surroundings, journal: &FoundJournal) -> &'static str {
    match (journal.is_stale(&surroundings.root), journal.is_live(&surroundings.root)) {
        (true, _) => "gone",
        (false, true) => "running",
        (false, false) => "killed",
    }
}

pub(super) fn show(args: &StatusArgs) -> Result<(), CommandError> {
    let surroundings = Surroundings::open()?;
    let directory = JournalDirectory::open(&args.journal.path()).map_err(journal_error)?;
    let journals = directory.list().map_err(journal_error)?;
    let document = |journal: &FoundJournal| {
        let run = journal.writer().and_then(|writer| directory.status(writer));
        let run: Value = run.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let targets = run["targets"].as_array().into_iter().flatten();
        let mut own = targets.filter(|target| target["name"] == journal.target());
        json!({
            "target": journal.target(),
            "pid": journal.writer().map(|writer| writer.pid),
            "state": state(&surroundings, journal),
            "elapsed_seconds": run["elapsed_seconds"],
            "now": own.next().cloned().unwrap_or_default(),
        })
    };
    let runs: Vec<Value> = journals.iter().map(document).collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", json!({ "runs": runs }))?;
        return Ok(());
    }
    if runs.is_empty() {
        writeln!(out, "no elastic run")?;
    }
    for run in &runs {
        write_run(&mut out, run)?;
    }
    Ok(())
}

fn write_run(out: &mut impl Write, run: &Value) -> std::io::Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let now = &run["now"];
    writeln!(
        out,
        "{} (followed by process {}): {}",
        text(&run["target"]),
        run["pid"],
        text(&run["state"])
    )?;
    if run["state"] == "killed" {
        writeln!(out, "  its changes are still there; `atoll elastic undo` gives everything back")?;
    }
    if now.is_object() {
        writeln!(out, "  cores: {}, cpus {}", now["cores"], text(&now["cpus"]))?;
        writeln!(out, "  by {}", text(&now["actuator"]))?;
        for monitor in now["monitors"].as_array().into_iter().flatten() {
            let (name, source) = (text(&monitor["monitor"]), text(&monitor["source"]));
            writeln!(out, "  {name:<32} {source:<9} {}", text(&monitor["says"]))?;
        }
    }
    Ok(())
}

pub(super) fn undo_all(args: &UndoArgs) -> Result<(), CommandError> {
    let surroundings = Surroundings::open()?;
    let directory = JournalDirectory::open(&args.journal.path()).map_err(journal_error)?;
    let mut documents = Vec::new();
    let mut has_failed = false;
    for journal in directory.list().map_err(journal_error)? {
        let state = state(&surroundings, &journal);
        let mut document = json!({ "target": journal.target(), "state": state });
        if state == "running" {
            let pid = journal.writer().map_or(0, |writer| writer.pid);
            terminal::say(format_args!(
                "{}: its run (pid {pid}) gives everything back itself: kill -TERM {pid}",
                journal.target()
            ));
        } else if args.dry_run {
            document["records"] = json!(journal.records);
        } else {
            let (undone, is_left) = surroundings.undo(&journal);
            if state == "killed" || undone != Undone::default() {
                for failed in undone.left.iter().chain(&undone.failed) {
                    terminal::say(format_args!("warning: {failed}"));
                }
                has_failed |= !undone.failed.is_empty();
                document["undone"] = json!(undone);
            }
            if is_left {
                terminal::say(format_args!(
                    "the journal of {} is kept: run `atoll elastic undo` again when its DBMS answers",
                    journal.target()
                ));
            } else {
                directory.remove(&journal.name).map_err(journal_error)?;
            }
            if let Some(writer) = journal.writer() {
                directory.remove_status(writer);
            }
        }
        documents.push(document);
    }
    write_undone(args, &documents)?;
    match has_failed {
        true => Err(CommandError::quietly(Exit::Placement)),
        false => Ok(()),
    }
}

fn write_undone(args: &UndoArgs, documents: &[Value]) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", json!({ "runs": documents }))?;
        return Ok(());
    }
    for document in documents {
        let target = document["target"].as_str().unwrap_or_default();
        if let Some(records) = document["records"].as_array() {
            writeln!(out, "{target}: {} records would be undone", records.len())?;
        } else if document["undone"].is_object() {
            let (threads, groups) = (&document["undone"]["threads"], &document["undone"]["groups"]);
            let knobs = &document["undone"]["knobs"];
            writeln!(
                out,
                "{target}: given back (threads: {threads}, groups: {groups}, knobs: {knobs})"
            )?;
        }
    }
    if documents.is_empty() {
        writeln!(out, "nothing to undo")?;
    }
    Ok(())
}
