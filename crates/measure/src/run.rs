//! [`measure`]: runs the plan node by node, with notes on what could not be measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_placement::Kernel;
use atoll_topology::{CpuId, CpuSet, Fact, Machine};

use crate::buffers::Buffers;
use crate::options::{MeasureOptions, MeasurementKind};
use crate::parts::{PathContext, bandwidth, core_to_core, cross_traffic, latency, loaded};
use crate::plan::MeasurePlan;
use crate::step::{MeasureStep, Turn};
use crate::{MeasureError, MeasureStepError, cluster};

/// Maximum number of failed pairs of cpus that are named; the others are counted.
const PAIRS_NAMED: usize = 3;

/// The result of a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasureReport {
    /// Figures, in the order of measurement.
    pub facts: Vec<Fact>,
    /// What could not be measured and why, and remarks about the figures.
    pub notes: Vec<String>,
    /// The groups, if core-to-core times split domains of the machine clearly. Cpus of one core are represented by the
    /// first.
    pub hidden_domains: Vec<CpuSet>,
    /// Whether it was cancelled.
    pub cancelled: bool,
}

/// Progress of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureProgress {
    /// The next step: `latency 0-1`, `memory of node 0`; `done` at the end.
    pub next: String,
    /// Steps done.
    pub done: usize,
    /// Total number of steps.
    pub total: usize,
    /// Estimated remaining time.
    pub left: Duration,
}

/// Estimates the time of [`measure`] for an idle machine with typical memory; an emulated machine takes several times
/// as long.
///
/// # Errors
/// Those of [`measure`].
pub fn estimate(machine: &Machine, options: &MeasureOptions) -> Result<Duration, MeasureError> {
    Ok(MeasurePlan::new(machine, options)?.time(machine, options))
}

/// Measures the machine on which this kernel places memory and threads. The figures hold only for
/// the machine the program runs on, so `machine` is the discovered one; tests pass another with a
/// simulated kernel and get figures of no meaning.
///
/// The calling thread is never bound; `progress` is called before every step and at the end. A step that fails (node
/// full, binding refused, pages elsewhere) gives a note instead of facts.
///
/// # Errors
/// [`MeasureError::Options`] for options out of bounds, [`MeasureError::NoCpus`] and
/// [`MeasureError::NoMemory`] for a machine on which nothing can be measured.
pub fn measure(
    machine: &Arc<Machine>,
    kernel: &Arc<dyn Kernel>,
    options: &MeasureOptions,
    progress: &mut dyn FnMut(MeasureProgress),
) -> Result<MeasureReport, MeasureError> {
    let plan = MeasurePlan::new(machine, options)?;
    let report = MeasureReport { notes: plan.notes.clone(), ..MeasureReport::default() };
    let (total, planned) = (plan.steps(), plan.time(machine, options));
    let (start, planned_done) = (Instant::now(), Duration::ZERO);
    let mut run = Measurement {
        machine,
        kernel,
        options,
        report,
        progress,
        done: 0,
        total,
        start,
        planned,
        planned_done,
    };
    // Cancelling ends the run; the figures so far are kept.
    run.report.cancelled = run.all(&plan).is_err();
    run.tell(if run.report.cancelled { "cancelled" } else { "done" }.to_owned());
    Ok(run.report)
}

/// A running measurement.
struct Measurement<'a> {
    machine: &'a Arc<Machine>,
    kernel: &'a Arc<dyn Kernel>,
    options: &'a MeasureOptions,
    report: MeasureReport,
    progress: &'a mut dyn FnMut(MeasureProgress),
    done: usize,
    total: usize,
    start: Instant,
    /// Estimated time of all steps.
    planned: Duration,
    /// The part of it that is done.
    planned_done: Duration,
}

/// Cancelled.
struct MeasureCancelled;

impl Measurement<'_> {
    fn all(&mut self, plan: &MeasurePlan) -> Result<(), MeasureCancelled> {
        for turn in &plan.turns {
            self.turn(turn)?;
        }
        if !plan.pair_cpus.is_empty() {
            self.pairs(&plan.pair_cpus)?;
        }
        Ok(())
    }

    fn turn(&mut self, turn: &Turn) -> Result<(), MeasureCancelled> {
        self.tell(format!("memory of node {}", turn.node));
        let notes = &mut self.report.notes;
        let allocated = Buffers::allocate(self.machine, self.kernel, self.options, turn, notes);
        self.check_cancelled()?;
        match allocated {
            Ok(mut buffers) => {
                self.finish(turn.prepare_time(self.machine, self.options), 0);
                for step in &turn.steps {
                    self.step(step, &mut buffers)?;
                }
            }
            Err(why) => {
                self.report.notes.push(format!("{why}; no figures of its memory"));
                // Its steps are skipped, and their estimated time was not needed.
                self.planned = self.planned.saturating_sub(turn.time(self.machine, self.options));
                self.done += turn.steps.len();
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &MeasureStep, buffers: &mut Buffers) -> Result<(), MeasureCancelled> {
        let name = format!("{} {}-{}", step.part, step.from, step.to);
        self.tell(name.clone());
        let measured = self.facts(step, buffers);
        self.check_cancelled()?;
        match measured.map_err(|error| error.to_string()) {
            Ok(facts) => match buffers.check_after() {
                Ok(()) => self.report.facts.extend(facts),
                Err(why) => self.report.notes.push(format!("{name}: no figure: {why}")),
            },
            Err(why) => self.report.notes.push(format!("{name}: no figure: {why}")),
        }
        self.finish(step.time(self.machine, self.options), 1);
        Ok(())
    }

    fn facts(
        &self,
        step: &MeasureStep,
        buffers: &mut Buffers,
    ) -> Result<Vec<Fact>, MeasureStepError> {
        let Some(from) = self.machine.node(step.from) else { return Ok(Vec::new()) };
        let (machine, kernel, options) = (self.machine, self.kernel.as_ref(), self.options);
        let context = PathContext { machine, kernel, options, from, to: step.to };
        let chain = buffers.chain.as_ref().map_or(&[][..], |chain| chain.as_slice());
        let stream = buffers.stream.as_mut().map_or(&mut [][..], |stream| stream.as_mut_slice());
        match step.part {
            MeasurementKind::Latency => latency::measure(context, chain),
            MeasurementKind::Bandwidth => bandwidth::measure(context, stream),
            MeasurementKind::Loaded => loaded::measure(context, chain, stream),
            MeasurementKind::CrossTraffic => cross_traffic::measure(context, stream),
            MeasurementKind::CoreToCore => Ok(Vec::new()),
        }
    }

    /// Core-to-core, one step for each cpu with all later ones.
    fn pairs(&mut self, cpus: &[CpuId]) -> Result<(), MeasureCancelled> {
        let (mut times, mut failures) = (core_to_core::HandoverTimes::new(), Vec::new());
        for (i, cpu) in cpus.iter().enumerate().take(cpus.len().saturating_sub(1)) {
            let others = &cpus[i + 1..];
            self.tell(format!("{} from cpu {cpu}", MeasurementKind::CoreToCore));
            let (kernel, row) = (self.kernel.as_ref(), (*cpu, others));
            match core_to_core::measure_row(kernel, self.options, row, &mut times) {
                Ok(failed) => failures.extend(failed),
                Err(_) => break,
            }
            self.finish(core_to_core::time(others.len() as u64), 1);
        }
        self.note_failures(failures);
        self.report.facts.extend(core_to_core::facts(&times));
        self.check_cancelled()?;
        // The fastest batch: interference makes a transfer slower, never faster.
        let time = |a, b| times.get(&(a, b)).or_else(|| times.get(&(b, a))).map(|s| s.min());
        self.report.hidden_domains = cluster::hidden_domains(self.machine, time);
        Ok(())
    }

    fn note_failures(&mut self, failures: Vec<String>) {
        let more = failures.len().saturating_sub(PAIRS_NAMED);
        self.report.notes.extend(failures.into_iter().take(PAIRS_NAMED));
        if more > 0 {
            self.report.notes.push(format!("core-to-core: {more} more pairs give no figure"));
        }
    }

    fn check_cancelled(&self) -> Result<(), MeasureCancelled> {
        if self.options.is_cancelled() { Err(MeasureCancelled) } else { Ok(()) }
    }

    /// Counts steps as done, whose time was estimated as this.
    fn finish(&mut self, planned: Duration, steps: usize) {
        self.done += steps;
        self.planned_done += planned;
    }

    fn tell(&mut self, next: String) {
        let (done, total) = (self.done, self.total);
        let left = left(self.planned, self.planned_done, self.start.elapsed());
        (self.progress)(MeasureProgress { next, done, total, left });
    }
}

/// Remaining time: the planned time of the remaining steps, scaled by the slowdown so far, but never below the plan.
fn left(planned: Duration, done: Duration, elapsed: Duration) -> Duration {
    let rest = planned.saturating_sub(done);
    let stretched = elapsed.as_secs_f64() / done.as_secs_f64().max(1e-9);
    match done.is_zero() {
        true => rest,
        false => {
            Duration::try_from_secs_f64(rest.as_secs_f64() * stretched.max(1.0)).unwrap_or(rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_stretches_on_a_busy_machine_and_is_never_short() {
        let s = Duration::from_secs;
        assert_eq!(left(s(10), s(0), s(3)), s(10));
        assert_eq!(left(s(10), s(4), s(8)), s(12));
        assert_eq!(left(s(10), s(4), s(1)), s(6));
        assert_eq!(left(s(10), s(10), s(50)), s(0));
    }
}
