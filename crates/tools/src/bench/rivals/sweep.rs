//! A benchmark from its first case to its report.

use std::sync::Arc;

use anyhow::Result;
use atoll_primitives::{Part, Tuning};
use atoll_topology::Machine;

use super::args::Shared;
use super::columns::Table;
use super::report::{Case, Conditions, Report};
use super::rig::Rig;
use crate::exit::Ends;
use crate::terminal;
use crate::topo::live;

/// A benchmark under way.
#[derive(Debug)]
pub(crate) struct Sweep {
    machine: Arc<Machine>,
    tuning: Tuning,
    /// Numbers of threads to run with.
    pub(crate) threads: Vec<usize>,
    report: Report,
}

impl Sweep {
    /// Starts on this machine, as it is tuned.
    ///
    /// # Errors
    /// When the machine cannot be described.
    pub(crate) fn start(benchmark: &'static str, shared: &Shared) -> Result<Self, Ends> {
        let known = live()?;
        let tuning = Tuning::of(&known);
        let machine = known.machine;
        let conditions = Conditions::of(&machine, shared.seed, shared.runs, &tuning);
        let machine = Arc::new(machine);
        let threads = shared.threads(&machine);
        let report = Report { benchmark, conditions, cases: Vec::new() };
        Ok(Self { machine, tuning, threads, report })
    }

    /// Workers and memory for a number of threads.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub(crate) fn rig(&self, threads: usize) -> Result<Rig> {
        Rig::start(&self.machine, threads, &self.tuning)
    }

    /// Takes a case, and says on stderr what came out.
    pub(crate) fn add(&mut self, case: Option<Case>) {
        if let Some(case) = case {
            terminal::say(&case);
            self.report.cases.push(case);
        }
    }

    /// The report.
    pub(crate) fn end(mut self) -> Report {
        if self.threads.len() > 1 {
            speed_ups(&mut self.report.cases);
        }
        self.report.conditions.end(&self.report.cases);
        self.report
    }
}

/// Times faster than the first case that differs in its threads only (Li et al. 2013, figure 8).
fn speed_ups(cases: &mut [Case]) {
    let of = |case: &Case| {
        let mut settings = case.settings.clone();
        settings.remove("threads");
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

/// The parts of each worker: those that it made, as even as whole parts allow.
pub(crate) fn workers_parts(rig: &Rig, table: &Table) -> Vec<Vec<Part>> {
    let mut shares = vec![Vec::new(); rig.threads];
    let mut row = 0;
    for part in &table.parts {
        // The worker in whose share the part begins: parts are cut at the shares' ends.
        let worker = ((row + 1) * rig.threads as u64 - 1) / table.len.max(1);
        shares[(worker as usize).min(rig.threads - 1)].push(part.clone());
        row += part.rows.num_rows() as u64;
    }
    shares
}
