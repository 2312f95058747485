//! `top` and `replay`: the live view, of a program or of a trace.

use std::io::{IsTerminal, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use atoll_elastic::monitor::{LoadMeter, TargetSource, WorkKind};
use atoll_elastic::trace::{TraceRow, parse};
use atoll_topology::Machine;
use clap::ValueHint;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};

use super::control::TargetArgs;
use super::record::RunningThreads;
use super::screen::CoreView;
use super::setup::{Surroundings, inspect_error};
use crate::exit::{CommandError, Exit};

/// Arguments of `top`.
#[derive(clap::Args, Debug)]
pub(super) struct TopArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Time between two moments, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 250,
          value_parser = clap::value_parser!(u64).range(50..=60_000))]
    interval: u64,
}

/// Arguments of `replay`.
#[derive(clap::Args, Debug)]
pub(super) struct ReplayArgs {
    /// The trace, as `--trace FILE.csv` wrote it
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// So many times as fast as it happened
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = speed)]
    speed: f64,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.01..=1000.0).contains(&speed) => Ok(speed),
        _ => Err("expected a number from 0.01 to 1000".to_owned()),
    }
}

pub(super) fn run(args: &TopArgs) -> Result<(), CommandError> {
    let surroundings = Surroundings::open()?;
    let target = surroundings.target(&args.target)?;
    let (mut source, _) = surroundings.open_target(&target, WorkKind::Cpu)?;
    let mut view = CoreView::new(&surroundings.machine);
    let (mut meter, mut threads) = (LoadMeter::default(), RunningThreads::default());
    let began = Instant::now();
    let name = target.to_string();
    on_screen(|terminal| {
        loop {
            let at = began.elapsed();
            let processes = source.processes(at).map_err(inspect_error)?;
            if processes.is_empty() {
                return Err(CommandError::with(Exit::Statement, "the target has ended"));
            }
            let clocks: Vec<_> =
                processes.iter().filter_map(|id| Some((*id, source.cpu_time(*id)?))).collect();
            let demand = meter.demand(at, clocks).unwrap_or_default();
            let cpus = surroundings.allowed(&processes, None)?;
            if let Some(pages) = source.pages(at) {
                view.set_pages(pages.in_order());
            }
            view.push(TraceRow {
                at_seconds: at.as_secs_f64(),
                target: name.clone(),
                load_percent: demand / cpus.len().max(1) as f64 * 100.0,
                demand_cpus: demand,
                performance: None,
                rules: Vec::new(),
                gave: Vec::new(),
                released: Vec::new(),
                cores: cores(&surroundings.machine, &cpus),
                cpus,
                threads: threads.look(&processes, at),
            });
            terminal.draw(|frame| {
                let area = frame.area();
                view.draw(frame.buffer_mut(), area);
            })?;
            if is_to_end(Duration::from_millis(args.interval))? {
                return Ok(());
            }
        }
    })
}

fn cores(machine: &Machine, cpus: &atoll_topology::CpuSet) -> usize {
    machine.cores.iter().filter(|core| !core.cpus.intersection(cpus).is_empty()).count()
}

pub(super) fn replay(args: &ReplayArgs) -> Result<(), CommandError> {
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("{}", args.file.display()))?;
    let rows = parse(&text).map_err(|error| {
        CommandError::with(Exit::Usage, format!("{}: {error}", args.file.display()))
    })?;
    let mut view = CoreView::of_trace(&rows);
    on_screen(|terminal| {
        let mut before = None;
        for row in rows {
            let at = row.at_seconds;
            let gap = (at - before.replace(at).unwrap_or(at)).clamp(0.0, 60.0) / args.speed;
            view.push(row);
            terminal.draw(|frame| {
                let area = frame.area();
                view.draw(frame.buffer_mut(), area);
            })?;
            if is_to_end(Duration::from_secs_f64(gap))? {
                return Ok(());
            }
        }
        while !is_to_end(Duration::from_secs(1))? {}
        Ok(())
    })
}

/// Takes the terminal and restores it in every case.
fn on_screen(
    work: impl FnOnce(&mut DefaultTerminal) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    if !stdout().is_terminal() {
        let message =
            "stdout is not a terminal; `--trace FILE.csv` and `status --json` are for programs";
        return Err(CommandError::with(Exit::Usage, message));
    }
    let mut terminal = ratatui::try_init()?;
    let result = work(&mut terminal);
    ratatui::restore();
    result
}

/// Waits; returns whether a key asked to end.
fn is_to_end(wait: Duration) -> Result<bool, CommandError> {
    let until = Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if !event::poll(left)? {
            return Ok(false);
        }
        let Event::Key(key) = event::read()? else { continue };
        let is_control_c =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
            return Ok(true);
        }
    }
}
