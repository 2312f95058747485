//! Threads at work until all are through.

use super::SimulationError;
use super::interconnect::{Interconnect, Usage, Work};

/// Parts of a flow that end within this share of a moment end together: rounding keeps equal threads
/// apart otherwise.
const TOGETHER: f64 = 1e-9;

/// Whether threads wait for one another between their steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A step starts when all are through with the one before.
    Tight,
    /// Each goes on as it can.
    Loose,
}

/// What a simulation came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimulationOutcome {
    /// Time until the last thread is through, ns.
    pub time: f64,
    /// Bytes read and written, in all.
    pub bytes: f64,
}

impl SimulationOutcome {
    /// Bytes in a nanosecond, which are GB/s; zero where nothing was done.
    pub fn bandwidth(&self) -> f64 {
        if self.time > 0.0 { self.bytes / self.time } else { 0.0 }
    }
}

/// A thread under way.
struct SimulatedThread {
    /// What its steps take, the next one last.
    ahead: Vec<Usage>,
    /// Share of the current one that is left to do.
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

    /// Goes on until the first of the running threads is through with its step; tells the time.
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
            // What takes no time is over at once, whatever has passed.
            it.left = if pace.is_finite() { it.left - passed * pace } else { 0.0 };
            if it.left <= TOGETHER {
                it.ahead.pop();
                it.left = 1.0;
            }
        }
        passed
    }

    /// Share of its step that each thread does in a nanosecond. Those that touch no memory only
    /// compute.
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
