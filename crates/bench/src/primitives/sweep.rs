//! A benchmark from its first case to its report.

use std::sync::Arc;

use anyhow::Result;
use atoll_primitives::Tuning;
use atoll_tools::bench::{Document, Form, Manifest, Outputs, json};
use atoll_tools::exit::CommandError;
use atoll_tools::terminal;
use atoll_tools::topo::live;
use atoll_tools::workload::Rig;
use atoll_topology::Machine;

use super::contest::ContestSettings;
use super::report::{Case, ContestReport};
use crate::flags::PrimitiveArgs;
use crate::rivals::Rival;

/// A benchmark under way.
#[derive(Debug)]
pub(crate) struct Sweep {
    benchmark: &'static str,
    machine: Arc<Machine>,
    tuning: Tuning,
    outputs: Outputs,
    manifest: Manifest,
    report: ContestReport,
    /// Settings of the runs.
    pub(crate) settings: ContestSettings,
    /// Numbers of threads to run with.
    pub(crate) threads: Vec<usize>,
}

impl Sweep {
    /// Starts on this machine, with its tuning; `able` are the rivals that support this benchmark.
    ///
    /// # Errors
    /// When the flags make no sense, and when the machine cannot be described.
    pub(crate) fn start(
        benchmark: &'static str,
        args: &PrimitiveArgs,
        able: &[Rival],
    ) -> Result<Self, CommandError> {
        let contest = &args.contest;
        let outputs = contest.run.output.outputs(false)?;
        let settings = ContestSettings {
            rivals: contest.rivals(able)?,
            runs: contest.run.runs,
            warmup: contest.run.warmup,
            seed: contest.seed(),
            python: contest.python.clone(),
            patience: contest.patience(),
            resident: args.resident,
        };
        let known = live()?;
        let tuning = Tuning::from_knowledge(&known);
        let machine = Arc::new(known.machine);
        let ContestSettings { runs, warmup, seed, .. } = settings;
        let manifest = Manifest::new(&machine, runs, warmup, seed);
        let threads = args.threads(&machine);
        let report = ContestReport { tuning: format!("{tuning:?}"), cases: Vec::new() };
        Ok(Self { benchmark, machine, tuning, outputs, manifest, report, settings, threads })
    }

    /// Workers and memory for a number of threads.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub(crate) fn rig(&self, threads: usize) -> Result<Rig> {
        Rig::start(&self.machine, threads, &self.tuning)
    }

    /// Adds a case and reports it on stderr.
    pub(crate) fn add(&mut self, case: Option<Case>) {
        if let Some(case) = case {
            terminal::say(&case);
            self.report.cases.push(case);
        }
    }

    /// Writes the report.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn end(mut self) -> Result<(), CommandError> {
        if self.threads.len() > 1 {
            speed_ups(&mut self.report.cases);
        }
        let rivals = self.report.cases.iter().flat_map(|case| &case.rivals);
        self.manifest.end(rivals.map(|rival| (rival.name.clone(), rival.version.clone())));
        let Self { benchmark, manifest, report, .. } = &self;
        let cases = report.cases.iter();
        self.outputs.write(|form| match form {
            Form::Json => json(&Document {
                benchmark,
                manifest,
                measurements: cases.clone().flat_map(|case| case.measurements.clone()).collect(),
                details: report,
            }),
            _ => Ok(format!("# bench {benchmark}\n\n{manifest}{report}")),
        })
    }
}

/// Times faster than the first case that differs in its threads only (Li et al. 2013, figure 8).
fn speed_ups(cases: &mut [Case]) {
    let of = |case: &Case| {
        let mut settings = case.settings.clone();
        _ = settings.as_object_mut().and_then(|settings| settings.remove("threads"));
        let medians = case.ours.iter().map(|ours| ours.seconds.median);
        (settings, medians.collect::<Vec<_>>())
    };
    let all: Vec<_> = cases.iter().map(of).collect();
    for (at, case) in cases.iter_mut().enumerate() {
        let Some((_, first)) = all.iter().find(|other| other.0 == all[at].0) else { continue };
        for (ours, first) in case.ours.iter_mut().zip(first) {
            ours.speed_up = Some(first / ours.seconds.median);
        }
    }
}
