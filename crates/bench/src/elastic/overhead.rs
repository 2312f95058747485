//! The cost of following: `atoll elastic attach` as its own process, on a target of many threads with much
//! memory, whose cpu time and resident pages the kernel reports.
//!
//! The target is observed with the requested memory and with little; a line through both costs predicts what more
//! memory than fits here would take.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use atoll_sys::{block_signals, process_cpu_time_of, signal, tie_to_parent};
use atoll_tools::bench::{Document, Form, Manifest, Measurement, Outputs, json};
use atoll_tools::exit::CommandError;
use atoll_tools::terminal;
use clap::Args;
use serde::Serialize;
use serde_json::json as object;

use crate::programs::{atoll_command, own_command};
use crate::table::table;

/// Looks are more frequent in the beginning; they are regular after this time.
const BEGINNING: Duration = Duration::from_secs(12);
/// Memory of the target that counts as none.
const LITTLE: u64 = 64 << 20;
/// A second size for which the overhead is reported.
const EXTRAPOLATED: u64 = 64 << 30;
/// Threads of the target that work; the others wait.
const BUSY: u32 = 2;
/// Bytes of a page.
const PAGE: usize = 4096;
const GIB: f64 = (1_u64 << 30) as f64;

/// How the overhead is measured.
#[derive(Args, Clone, Debug)]
pub(super) struct OverheadArgs {
    /// Threads of the target of --overhead
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    target_threads: u32,
    /// GiB of memory that the target of --overhead has touched
    #[arg(long, value_name = "GIB", default_value_t = 8.0)]
    target_memory: f64,
    /// Seconds over which --overhead is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    over: u64,
}

/// The target of `--overhead`.
#[derive(Args, Debug)]
pub(crate) struct ElasticLoadArgs {
    #[arg(long)]
    threads: u32,
    #[arg(long)]
    bytes: u64,
}

/// Touches memory, starts threads, says so, and lives until its input ends.
///
/// # Errors
/// Where threads cannot be started.
pub(crate) fn run_load(
    args: &ElasticLoadArgs,
    input: impl BufRead,
    output: &mut impl Write,
) -> Result<()> {
    let mut memory = vec![0_u8; usize::try_from(args.bytes).context("--bytes is too large")?];
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    let turns = Arc::new(AtomicU64::new(0));
    for number in 0..args.threads.saturating_sub(1) {
        let turns = Arc::clone(&turns);
        let work = move || match number < BUSY {
            true => count(&turns),
            false => wait(),
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(work).context("a thread")?;
    }
    writeln!(output, "ready").and_then(|()| output.flush())?;
    // Until the benchmark closes it.
    let _ = input.lines().count();
    std::hint::black_box(&memory);
    Ok(())
}

/// Works until the process ends.
fn count(turns: &AtomicU64) {
    loop {
        turns.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until the process ends.
fn wait() {
    loop {
        std::thread::park();
    }
}

/// What one way of giving cores costs.
#[derive(Clone, Debug, Serialize)]
struct Overhead {
    actuator: &'static str,
    target_bytes: u64,
    /// Share of one cpu in the beginning.
    first_percent: f64,
    /// Share of one cpu after that.
    percent: f64,
    /// Resident memory at its highest.
    peak_bytes: u64,
    /// Resident memory of its own, without the program's file.
    own_bytes: u64,
}

#[derive(Debug, Serialize)]
struct OverheadReport {
    threads: u32,
    over_seconds: u64,
    measured: Vec<Overhead>,
    /// Percent of one cpu for a target of 64 GiB, by actuator; a line through the two sizes.
    extrapolated: Vec<(&'static str, f64)>,
}

pub(super) fn run(args: &OverheadArgs, outputs: &Outputs) -> Result<(), CommandError> {
    let mut manifest = Manifest::here(1, 0, 0)?;
    let mut measured = Vec::new();
    let most = (args.target_memory.clamp(0.0, 1e6) * GIB) as u64;
    for bytes in [LITTLE, most.max(LITTLE)] {
        for actuator in ["auto", "affinity"] {
            terminal::say(format_args!(
                "{actuator}: {} threads, {:.1} GiB, {} s",
                args.target_threads,
                bytes as f64 / GIB,
                BEGINNING.as_secs() + args.over
            ));
            measured.push(measure(args, actuator, bytes)?);
        }
    }
    manifest.end([]);
    let report = OverheadReport::new(args, measured);
    outputs.write(|form| match form {
        Form::Json => json(&Document {
            benchmark: "elastic-overhead",
            manifest: &manifest,
            measurements: report.measurements(),
            details: &report,
        }),
        _ => Ok(report.to_markdown(&manifest)),
    })
}

/// A process that ends with this one.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(mut command: Command, arguments: &[String]) -> Result<Ended> {
    tie_to_parent(&mut command, signal::KILL, block_signals(&[])?);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    Ok(Ended(command.spawn().context("cannot start this program")?))
}

fn measure(args: &OverheadArgs, actuator: &'static str, bytes: u64) -> Result<Overhead> {
    let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let threads = args.target_threads;
    let mut target =
        start(own_command()?, &words(format!("elastic-load --threads {threads} --bytes {bytes}")))?;
    let mut line = String::new();
    let said = target.0.stdout.take().context("its output")?;
    BufReader::new(said).read_line(&mut line)?;
    if line.trim() != "ready" {
        bail!("the target did not start");
    }
    let home = tempfile::tempdir()?;
    let mut flags =
        words(format!("elastic attach --pid {} --actuator {actuator} --journal", target.0.id()));
    flags.push(home.path().join("journals").display().to_string());
    let mut run = start(atoll_command()?, &flags)?;
    let clock = |run: &mut Ended| -> Result<Duration> {
        match run.0.try_wait()? {
            None => Ok(process_cpu_time_of(run.0.id())?),
            Some(status) => bail!("atoll elastic attach ended with {status}; its message is above"),
        }
    };
    std::thread::sleep(BEGINNING);
    let first = clock(&mut run)?;
    std::thread::sleep(Duration::from_secs(args.over));
    let used = clock(&mut run)?.saturating_sub(first);
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.0.id()))?;
    let of = |field| crate::memory::of_status(&status, field).unwrap_or_default();
    let overhead = Overhead {
        actuator,
        target_bytes: bytes,
        first_percent: first.as_secs_f64() / BEGINNING.as_secs_f64() * 100.0,
        percent: used.as_secs_f64() / args.over as f64 * 100.0,
        peak_bytes: of("VmHWM"),
        own_bytes: of("RssAnon"),
    };
    // Ends on a signal, so that it gives back its cores.
    atoll_sys::kill_process(run.0.id().cast_signed(), signal::TERM)?;
    run.0.wait()?;
    Ok(overhead)
}

impl OverheadReport {
    fn new(args: &OverheadArgs, measured: Vec<Overhead>) -> Self {
        let line = |actuator: &'static str| {
            let mut of = measured.iter().filter(|it| it.actuator == actuator);
            let (little, much) = (of.next()?, of.next()?);
            let bytes = much.target_bytes.saturating_sub(little.target_bytes).max(1) as f64;
            let slope = ((much.percent - little.percent) / bytes).max(0.0);
            let beyond = EXTRAPOLATED.saturating_sub(much.target_bytes) as f64;
            Some((actuator, much.percent + slope * beyond))
        };
        let extrapolated = ["auto", "affinity"].into_iter().filter_map(line).collect();
        Self { threads: args.target_threads, over_seconds: args.over, measured, extrapolated }
    }

    fn measurements(&self) -> Vec<Measurement> {
        let of = |it: &Overhead| {
            let case = object!({ "actuator": it.actuator, "target_bytes": it.target_bytes });
            [
                Measurement::times(&case, "cpu", "% of a cpu", vec![it.percent]),
                Measurement::times(&case, "memory", "bytes", vec![it.peak_bytes as f64]),
            ]
        };
        self.measured.iter().flat_map(of).collect()
    }

    fn to_markdown(&self, manifest: &Manifest) -> String {
        let head = ["actuator", "target GiB", "first 12 s, %", "then, %", "peak MB", "own MB"];
        let row = |it: &Overhead| {
            vec![
                it.actuator.to_owned(),
                format!("{:.1}", it.target_bytes as f64 / GIB),
                format!("{:.2}", it.first_percent),
                format!("{:.2}", it.percent),
                format!("{:.1}", it.peak_bytes as f64 / 1e6),
                format!("{:.1}", it.own_bytes as f64 / 1e6),
            ]
        };
        let rows: Vec<Vec<String>> = self.measured.iter().map(row).collect();
        let mut text = format!(
            "# What following costs\n\n{manifest}\n- a target of {} threads, {} of which work, over {} s; percent \
             of one cpu\n\n{}",
            self.threads,
            BUSY.min(self.threads),
            self.over_seconds,
            table(&head.map(str::to_owned), &rows)
        );
        for (actuator, percent) in &self.extrapolated {
            text.push_str(&format!(
                "\n{actuator}: {percent:.2} % for 64 GiB, by a line through both sizes (extrapolated)\n"
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_than_measured_is_extrapolated_by_a_line() {
        let args = OverheadArgs { target_threads: 2, target_memory: 8.0, over: 1 };
        let one = |actuator, target_bytes, percent| Overhead {
            actuator,
            target_bytes,
            first_percent: 0.0,
            percent,
            peak_bytes: 1,
            own_bytes: 1,
        };
        let measured = vec![
            one("auto", 0, 0.5),
            one("affinity", 0, 0.6),
            one("auto", 8 << 30, 0.6),
            one("affinity", 8 << 30, 0.5),
        ];
        let report = OverheadReport::new(&args, measured);
        let percents: Vec<f64> = report.extrapolated.iter().map(|it| it.1).collect();
        assert!((percents[0] - 1.3).abs() < 1e-9, "{percents:?}");
        assert!((percents[1] - 0.5).abs() < 1e-9, "{percents:?}");
    }
}
