//! `topo measure`: measures this machine, keeps the figures, shows them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use atoll_formats::{render, store};
use atoll_measure::{
    MeasureError, MeasureOptions, MeasureProgress, MeasureReport, MeasurementKind, estimate,
    measure,
};
use atoll_placement::{Kernel, LiveKernel};
use atoll_sys::{block_signals, signal, wait_signal};
use atoll_topology::{Bytes, Knowledge, Machine};
use indicatif::{ProgressBar, ProgressStyle};

use super::figures;
use super::which::live;
use crate::exit::{CommandError, Exit};
use crate::{bytes, terminal};

/// What `--help` shows.
pub(super) const EXAMPLES: &str = "\
Examples:
  atoll topo measure                              everything, and keep it
  atoll topo measure --quick                      in brief: fewer repetitions and conditions
  atoll topo measure --parts latency,core-to-core
  atoll topo measure --json --no-save > run.json

Measure on an idle machine: the spread shows how idle it was. Failed measurements and their reasons
follow the figures; the exit code is 4 if all failed.";

/// What asks a measurement to end.
const ENDING: [i32; 2] = [signal::INT, signal::TERM];
/// Time between two looks whether all is measured.
const LOOK: Duration = Duration::from_millis(100);

/// Arguments.
#[derive(clap::Args, Debug)]
pub(super) struct MeasureArgs {
    /// In brief: three repetitions of 20 ms, and fewer thread counts, loads and paths
    #[arg(long)]
    quick: bool,
    /// What to measure: latency, bandwidth, loaded, cross-traffic, core-to-core [default: all]
    #[arg(long, value_name = "PARTS", value_delimiter = ',', value_parser = part)]
    parts: Vec<MeasurementKind>,
    /// Memory to read on each node [default: four times the last-level caches, at least 64 MiB]; the
    /// figures are not kept, since those of a small buffer are of caches
    #[arg(long, value_name = "SIZE", value_parser = bytes::parse)]
    buffer: Option<Bytes>,
    /// Repetitions of each figure
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// Seed of the random order of reads
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Do not keep the figures for later commands
    #[arg(long)]
    no_save: bool,
}

fn part(text: &str) -> Result<MeasurementKind, String> {
    MeasurementKind::named(text).ok_or_else(|| {
        format!("expected one of {}", MeasurementKind::ALL.map(MeasurementKind::name).join(", "))
    })
}

impl MeasureArgs {
    fn options(&self) -> MeasureOptions {
        let mut options = if self.quick { MeasureOptions::quick() } else { MeasureOptions::full() };
        if !self.parts.is_empty() {
            options.parts = self.parts.iter().copied().collect();
        }
        options.buffer = self.buffer;
        options.repetitions = self.runs.unwrap_or(options.repetitions);
        options.seed = self.seed.unwrap_or(options.seed);
        options
    }
}

/// Measures, keeps and prints.
pub(super) fn run(args: &MeasureArgs, json: bool) -> Result<(), CommandError> {
    let options = args.options();
    let mut known = live()?;
    let machine = Arc::new(known.machine.clone());
    let time = estimate(&machine, &options).map_err(not_measured)?;
    terminal::say(format_args!("measuring for some {} s; Ctrl-C keeps what is done", whole(time)));
    let report = until_interrupted(&machine, &options)?;
    known.merge(report.facts.iter().cloned());
    let is_kept = !args.no_save && args.buffer.is_none() && !report.facts.is_empty();
    let kept = is_kept.then(|| store::save_live(&report.facts));
    let text = match json {
        true => json_text(&report),
        false => text(&report, &known.machine),
    };
    super::print(&text)?;
    if let Some(kept) = kept {
        let file = kept.map_err(anyhow::Error::from)?;
        terminal::say(format_args!("kept in {}", file.display()));
    }
    if report.cancelled {
        return Err(CommandError::quietly(Exit::Interrupted));
    }
    match report.facts.is_empty() {
        true => Err(CommandError::with(Exit::NotHere, nothing_measured(&report.notes))),
        false => Ok(()),
    }
}

fn not_measured(error: MeasureError) -> CommandError {
    let exit = match error {
        MeasureError::Options { .. } => Exit::Usage,
        _ => Exit::NotHere,
    };
    CommandError::with(exit, error)
}

/// What to say when there is not one figure.
fn nothing_measured(notes: &[String]) -> String {
    let why = match notes {
        [] => "no reason is known",
        [only] => only,
        [_, ..] => "the notes say why",
    };
    format!("nothing was measured: {why}; 'atoll topo check' says which calls are refused here")
}

/// Seconds, at least one.
fn whole(time: Duration) -> u64 {
    time.as_secs_f64().ceil().max(1.0) as u64
}

/// Measures with a progress bar; Ctrl-C calls it off.
fn until_interrupted(
    machine: &Arc<Machine>,
    options: &MeasureOptions,
) -> Result<MeasureReport, CommandError> {
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    // Blocked before any thread starts, so that the signal waits for the one that looks for it.
    block_signals(&ENDING).map_err(anyhow::Error::from)?;
    let is_done = AtomicBool::new(false);
    let bar = bar();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                if !matches!(wait_signal(&ENDING, LOOK), Ok(None)) {
                    options.cancel.store(true, Ordering::Relaxed);
                }
            }
        });
        let report = measure(machine, &kernel, options, &mut |progress| show(&bar, &progress));
        is_done.store(true, Ordering::Relaxed);
        bar.finish_and_clear();
        report.map_err(not_measured)
    })
}

/// A bar on stderr; nothing if that is not a terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(1);
    let style = ProgressStyle::with_template("{elapsed:>4} {bar:30} {pos}/{len} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn show(bar: &ProgressBar, progress: &MeasureProgress) {
    bar.set_length(progress.total as u64);
    bar.set_position(progress.done as u64);
    bar.set_message(format!("{}, {} s left", progress.next, progress.left.as_secs()));
}

fn json_text(report: &MeasureReport) -> String {
    let domains: Vec<String> = report.hidden_domains.iter().map(|cpus| cpus.to_string()).collect();
    let document = serde_json::json!({
        "facts": render::facts_json(&report.facts, SystemTime::now()),
        "notes": report.notes,
        "hidden_domains": domains,
        "cancelled": report.cancelled,
    });
    format!("{document:#}\n")
}

/// The figures, then the notes.
fn text(report: &MeasureReport, machine: &Machine) -> String {
    let measured = Knowledge { machine: machine.clone(), facts: report.facts.clone() };
    let mut text = figures::text(&measured);
    if !report.hidden_domains.is_empty() {
        let groups: Vec<String> =
            report.hidden_domains.iter().map(|cpus| format!("cpus {cpus}")).collect();
        text.push_str(&format!(
            "\nCore-to-core times split the machine's domains: {}\n",
            groups.join("; ")
        ));
    }
    if !report.notes.is_empty() {
        text.push_str(if text.is_empty() { "Notes\n" } else { "\nNotes\n" });
        text.extend(report.notes.iter().map(|note| format!("  {note}\n")));
    }
    text
}
