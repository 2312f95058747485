//! Runs threads until all are done.

use super::SimulationError;
use super::interconnect::{Interconnect, Usage, Work};

/// Flows that end within this share of a moment end together; otherwise rounding would separate equal threads.
const TOGETHER: f64 = 1e-9;

/// Whether threads wait for one another between their steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A step starts when all have completed the previous one.
    Tight,
    /// Each thread proceeds independently.
    Loose,
}

/// The result of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimulationOutcome {
    /// Time until the last thread is done, ns.
    pub time: f64,
    /// Total bytes read and written.
    pub bytes: f64,
}

impl SimulationOutcome {
    /// Bytes per nanosecond, which are GB/s; zero if nothing was done.
    pub fn bandwidth(&self) -> f64 {
        if self.time > 0.0 { self.bytes / self.time } else { 0.0 }
    }
}

/// A running thread.
struct SimulatedThread {
    /// The demands of its steps, the next one last.
    ahead: Vec<Usage>,
    /// Remaining share of the current step.
    left: f64,
}

impl Interconnect {
    /// Runs the steps of all threads: `threads` has one list of [`Work`] for each, a step each.
    pub fn run(
        &self,
        threads: &[Vec<Work>],
        waiting: Waiting,
    ) -> Result<SimulationOutcome, SimulationError> {
        let mut under_way = Vec::with_capacity(threads.len());
        for steps in threads {
            let ahead = steps.iter().rev().map(|work| self.usage(work));
            let ahead = ahead.collect::<Result<Vec<_>, _>>()?;
            under_way.push(SimulatedThread { ahead, left: 1.0 });
        }
        let bytes = under_way.iter().flat_map(|it| &it.ahead).map(|usage| usage.bytes).sum();
        let mut time = 0.0;
        loop {
            let step = under_way.iter().map(|it| it.ahead.len()).max().unwrap_or(0);
            if step == 0 {
                return Ok(SimulationOutcome { time, bytes });
            }
            let is_running = |it: &SimulatedThread| match waiting {
                Waiting::Tight => it.ahead.len() == step,
                Waiting::Loose => !it.ahead.is_empty(),
            };
            time += self.advance(&mut under_way, is_running);
        }
    }

    /// Advances until the first running thread completes its step; returns the time.
    fn advance(
        &self,
        threads: &mut [SimulatedThread],
        is_running: impl Fn(&SimulatedThread) -> bool,
    ) -> f64 {
        let running: Vec<usize> =
            (0..threads.len()).filter(|at| is_running(&threads[*at])).collect();
        let current: Vec<&Usage> =
            running.iter().filter_map(|at| threads[*at].ahead.last()).collect();
        let paces = self.paces(&current);
        let needed = |(at, pace): (&usize, &f64)| threads[*at].left / pace;
        let passed = running.iter().zip(&paces).map(needed).fold(f64::INFINITY, f64::min);
        for (at, pace) in running.iter().zip(&paces) {
            let it = &mut threads[*at];
            // Work without duration completes at once.
            it.left = if pace.is_finite() { it.left - passed * pace } else { 0.0 };
            if it.left <= TOGETHER {
                it.ahead.pop();
                it.left = 1.0;
            }
        }
        passed
    }

    /// Share of its step that each thread completes per nanosecond. Threads that access no memory only compute.
    fn paces(&self, current: &[&Usage]) -> Vec<f64> {
        let flows: Vec<&Usage> = current.iter().copied().filter(|it| it.bytes > 0.0).collect();
        let mut rates = self.rates(&flows).into_iter();
        let pace = |usage: &&Usage| match usage.bytes > 0.0 {
            true => rates.next().unwrap_or_default() / usage.bytes,
            false if usage.least > 0.0 => 1.0 / usage.least,
            // Nothing to do takes no time.
            false => f64::INFINITY,
        };
        current.iter().map(pace).collect()
    }
}
