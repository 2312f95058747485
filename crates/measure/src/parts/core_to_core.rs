//! Time for a cache line to go from one cpu to another: two bound threads take turns at one atomic
//! word, by compare-and-swap.
//!
//! ```text
//! word    0 ──cpu a──▶ 1 ──cpu b──▶ 0 ──cpu a──▶ 1 …
//! ```
//!
//! A round is two transfers; half a round is the time one way, the same in both directions by construction, so each
//! pair has one fact, with the smaller cpu first. Every thread spins until it is its turn to change the word; after
//! spinning for long it yields, because its partner may need the same cpu.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use atoll_placement::Kernel;
use atoll_topology::{Conditions, CpuId, Fact, Machine, Quantity, Subject};
use crossbeam_utils::CachePadded;

use crate::MeasureStepError;
use crate::crew::bind;
use crate::options::MeasureOptions;
use crate::samples::Samples;

/// Rounds of one batch, fewer if they are slow: about 0.1 ms.
const ROUNDS: u32 = 500;
/// Batches of a pair.
const BATCHES: usize = 21;
/// Time limit of a pair whose cpus are busy with other work; its completed batches count.
const PAIR_TIME_MAX: Duration = Duration::from_secs(2);
/// Longest first batch.
const BATCH_TIME_MAX: Duration = Duration::from_millis(20);
/// Minimum number of batches for a figure.
const BATCHES_MIN: usize = 3;
/// Time of one pair, threads started and ended, for the estimate.
const PAIR_TIME: Duration = Duration::from_millis(4);
/// Failed attempts between checks of the stop flag.
const SPINS: u32 = 1 << 14;

/// Cpus whose pairs are all measured: all, one of each core, or an evenly spaced sample of those, whichever first has
/// no more pairs than wanted. Adds a note about cpus that are left out.
pub(crate) fn cpus(
    machine: &Machine,
    options: &MeasureOptions,
    notes: &mut Vec<String>,
) -> Vec<CpuId> {
    let all: Vec<CpuId> = machine.cpus.iter().map(|cpu| cpu.id).collect();
    if all.len() < 2 {
        notes.push("core-to-core: needs two cpus".into());
        return Vec::new();
    }
    let pairs_max = u64::from(options.pairs_max.max(1));
    if pairs(all.len()) <= pairs_max {
        return all;
    }
    let cores: Vec<CpuId> = machine.cores.iter().filter_map(|core| core.cpus.first()).collect();
    let most = (2..=all.len()).take_while(|n| pairs(*n) <= pairs_max).last().unwrap_or(2);
    let (count, chosen) = (all.len(), if cores.len() < 2 { all } else { cores });
    let most = most.min(chosen.len());
    let sampled: Vec<CpuId> = (0..most).map(|i| chosen[i * chosen.len() / most]).collect();
    notes.push(format!(
        "core-to-core: {most} of {count} cpus, one of a core and evenly spaced, so that no more \
         than {pairs_max} pairs are measured"
    ));
    sampled
}

/// Number of pairs of this number of cpus.
pub(crate) fn pairs(cpus: usize) -> u64 {
    let cpus = cpus as u64;
    cpus * cpus.saturating_sub(1) / 2
}

/// Time for so many pairs.
pub(crate) fn time(pairs: u64) -> Duration {
    PAIR_TIME.saturating_mul(u32::try_from(pairs).unwrap_or(u32::MAX))
}

/// Transfer times by pair, smaller cpu first.
pub(crate) type HandoverTimes = BTreeMap<(CpuId, CpuId), Samples>;

/// Adds the transfer times between one cpu and each later one; returns the failures as text.
pub(crate) fn measure_row(
    kernel: &dyn Kernel,
    options: &MeasureOptions,
    (a, others): (CpuId, &[CpuId]),
    times: &mut HandoverTimes,
) -> Result<Vec<String>, MeasureStepError> {
    let mut failures = Vec::new();
    for b in others {
        match pair(kernel, options, a, *b) {
            Ok(samples) => drop(times.insert((a, *b), samples)),
            Err(MeasureStepError::Cancelled) => return Err(MeasureStepError::Cancelled),
            Err(error) => failures.push(format!("core-to-core {a}-{b}: {error}")),
        }
    }
    Ok(failures)
}

/// The facts of transfer times.
pub(crate) fn facts(times: &HandoverTimes) -> Vec<Fact> {
    let fact = |((from, to), samples): (&(CpuId, CpuId), &Samples)| {
        let subject = Subject::CpuPair { from: *from, to: *to };
        samples.fact(subject, Quantity::CoreToCore, Conditions::default())
    };
    times.iter().map(fact).collect()
}

/// The shared word.
#[derive(Debug, Default)]
struct Ball {
    turn: CachePadded<AtomicU32>,
    /// Set by the thread that ends first: the other ends too.
    over: CachePadded<AtomicBool>,
}

struct OverOnDrop<'a>(&'a Ball);

impl Drop for OverOnDrop<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

impl Ball {
    /// Waits for the word to be `mine` and makes it `theirs`; false when stopped.
    fn play(&self, mine: u32, theirs: u32) -> bool {
        let swap = || {
            // Release and acquire as in a real transfer of data.
            let (ok, err) = (Ordering::AcqRel, Ordering::Relaxed);
            self.turn.compare_exchange(mine, theirs, ok, err).is_ok()
        };
        loop {
            if (0..SPINS).any(|_| swap()) {
                return true;
            }
            if self.over.load(Ordering::Relaxed) {
                return false;
            }
            thread::yield_now();
        }
    }
}

fn pair(
    kernel: &dyn Kernel,
    options: &MeasureOptions,
    a: CpuId,
    b: CpuId,
) -> Result<Samples, MeasureStepError> {
    let ball = Ball::default();
    thread::scope(|scope| {
        let _over = OverOnDrop(&ball);
        let start = |cpu: CpuId| thread::Builder::new().name(format!("measure-{cpu}"));
        let answering = start(b).spawn_scoped(scope, || {
            let _over = OverOnDrop(&ball);
            bind(kernel, b)?;
            while ball.play(1, 0) {}
            Ok(())
        })?;
        let serving = start(a).spawn_scoped(scope, || {
            let _over = OverOnDrop(&ball);
            bind(kernel, a)?;
            serve(&ball, options)
        })?;
        let served = serving.join().unwrap_or(Err(MeasureStepError::Ended));
        answering.join().unwrap_or(Err(MeasureStepError::Ended))?;
        served
    })
}

/// ns one way, per batch; the first batch warms up and determines the number of rounds of the others.
fn serve(ball: &Ball, options: &MeasureOptions) -> Result<Samples, MeasureStepError> {
    let start = Instant::now();
    let rounds = warm_up(ball);
    let mut times = Vec::new();
    while times.len() < BATCHES && start.elapsed() < PAIR_TIME_MAX {
        let before = Instant::now();
        if !(0..rounds).all(|_| ball.play(0, 1)) {
            break;
        }
        times.push(before.elapsed().as_nanos() as f64 / f64::from(2 * rounds));
        if options.is_cancelled() {
            return Err(MeasureStepError::Cancelled);
        }
    }
    if times.len() < BATCHES_MIN {
        return Err(MeasureStepError::Starved);
    }
    Samples::new(times).ok_or(MeasureStepError::Starved)
}

/// Runs a batch for at most [`BATCH_TIME_MAX`] if cpus are busy with other work; returns the rounds done, at least
/// one.
fn warm_up(ball: &Ball) -> u32 {
    let start = Instant::now();
    let more = |_: &u32| start.elapsed() < BATCH_TIME_MAX && ball.play(0, 1);
    (0..ROUNDS).take_while(more).count().max(1) as u32
}

#[cfg(test)]
mod tests {
    use atoll_testkit::machines;

    use super::*;

    #[test]
    fn all_cpus_are_paired_up_to_the_bound_and_evenly_spaced_cores_beyond_it() {
        let machine = machines::two_nodes();
        let chosen = |pairs_max| {
            let mut notes = Vec::new();
            let options = MeasureOptions { pairs_max, ..MeasureOptions::quick() };
            let cpus = cpus(&machine, &options, &mut notes);
            (cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>(), notes.len())
        };
        assert_eq!(chosen(120), ((0..16).collect(), 0));
        assert_eq!(chosen(119), (vec![0, 2, 4, 6, 8, 10, 12, 14], 1));
        assert_eq!(chosen(6), (vec![0, 4, 8, 12], 1));
        assert_eq!(chosen(0), (vec![0, 8], 1));
    }
}
