//! Worker threads that load memory while a lead thread measures their progress.
//!
//! Each worker binds itself to its cpu, verifies it, reports, and then works in a loop, adding its progress to its own
//! counter, until the stop flag is set. The lead starts when all have reported, lets them warm up, and reads all
//! counters at two points in time. So every worker is counted over the same time, in a steady state: fixed work would
//! include the time in which only stragglers run. There is no barrier that could hang: a worker that cannot start or
//! bind makes the whole measurement an error, and the stop flag is set however the lead ends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use atoll_placement::{Kernel, verify_thread};
use atoll_topology::{CpuId, CpuSet};
use crossbeam_utils::CachePadded;

use crate::MeasureStepError;
use crate::options::{MeasureOptions, STARVED};
use crate::stream::ThreadJob;

/// Maximum time between checks of the cancel flag.
const NAP: Duration = Duration::from_millis(10);

/// Blocks between reads of the clock, each of which costs a small fraction of a block.
const BLOCKS_A_LOOK: u64 = 1024;

/// A thread to start.
#[derive(Debug)]
pub(crate) struct WorkerSpec<'a> {
    pub(crate) cpu: CpuId,
    pub(crate) job: ThreadJob<'a>,
    /// Time between two blocks.
    pub(crate) pause: Duration,
}

/// Bytes that each thread has worked on.
#[derive(Debug)]
pub(crate) struct Counters(Vec<CachePadded<AtomicU64>>);

impl Counters {
    fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| CachePadded::default()).collect())
    }

    /// Bytes done by the first `flow` threads, and by the others.
    pub(crate) fn read(&self, flow: usize) -> (u64, u64) {
        // Relaxed: only counts; a block more or less does not matter.
        let sum = |counters: &[CachePadded<AtomicU64>]| {
            counters.iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
        };
        let (flow, others) = self.0.split_at(flow.min(self.0.len()));
        (sum(flow), sum(others))
    }

    /// Whether a side with threads has made no progress since then.
    pub(crate) fn is_idle(&self, flow: usize, before: (u64, u64)) -> bool {
        let now = self.read(flow);
        let flow = flow.min(self.0.len());
        (flow > 0 && now.0 == before.0) || (flow < self.0.len() && now.1 == before.1)
    }
}

struct StopThreadsOnDrop<'a>(&'a AtomicBool);

impl Drop for StopThreadsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the workers, and `lead` on the calling thread as soon as all of them work; all have ended when it returns. They
/// also end after `life`, well after the lead should be done: under a real-time scheduler (`chrt`) workers on all cpus
/// could otherwise starve it forever.
pub(crate) fn with_crew<T>(
    kernel: &dyn Kernel,
    life: Duration,
    workers: Vec<WorkerSpec<'_>>,
    lead: impl FnOnce(&Counters) -> Result<T, MeasureStepError>,
) -> Result<T, MeasureStepError> {
    let counters = Counters::new(workers.len());
    let stop = CachePadded::new(AtomicBool::new(false));
    let expected = workers.len();
    let end = Instant::now() + life;
    thread::scope(|scope| {
        let _stopper = StopThreadsOnDrop(&stop);
        let (ready, reports) = mpsc::channel();
        for (worker, counter) in workers.into_iter().zip(&counters.0) {
            let (ready, stop) = (ready.clone(), &*stop);
            let name = format!("measure-{}", worker.cpu);
            thread::Builder::new().name(name).spawn_scoped(scope, move || {
                let bound = bind(kernel, worker.cpu);
                let is_bound = bound.is_ok();
                let _ = ready.send(bound);
                drop(ready);
                if is_bound {
                    work(worker, counter, stop, end);
                }
            })?;
        }
        drop(ready);
        let reports = reports.into_iter().collect::<Result<Vec<()>, MeasureStepError>>()?;
        if reports.len() < expected {
            return Err(MeasureStepError::Ended);
        }
        lead(&counters)
    })
}

fn work(mut worker: WorkerSpec<'_>, counter: &AtomicU64, stop: &AtomicBool, end: Instant) {
    let (mut total, mut blocks) = (0, 0_u64);
    worker.job.run(worker.pause, |bytes| {
        total += bytes as u64;
        blocks += 1;
        counter.store(total, Ordering::Relaxed);
        let is_late = blocks.is_multiple_of(BLOCKS_A_LOOK) && Instant::now() > end;
        is_late || stop.load(Ordering::Relaxed)
    });
}

/// Runs `task` on a new thread bound to the cpu.
pub(crate) fn on_cpu<T: Send>(
    kernel: &dyn Kernel,
    cpu: CpuId,
    task: impl FnOnce() -> Result<T, MeasureStepError> + Send,
) -> Result<T, MeasureStepError> {
    thread::scope(|scope| {
        let name = format!("measure-{cpu}");
        let thread = thread::Builder::new().name(name).spawn_scoped(scope, || {
            bind(kernel, cpu)?;
            task()
        })?;
        thread.join().unwrap_or(Err(MeasureStepError::Ended))
    })
}

/// Binds the calling thread to one cpu and checks that it runs there.
pub(crate) fn bind(kernel: &dyn Kernel, cpu: CpuId) -> Result<(), MeasureStepError> {
    let wanted = CpuSet::from_iter([cpu]);
    kernel.bind_thread(&wanted)?;
    let report = verify_thread(kernel, &wanted)?;
    if report.is_bound() && report.is_inside() {
        return Ok(());
    }
    let (current, allowed) = (report.current, report.allowed);
    Err(MeasureStepError::NotBound { wanted: cpu, current, allowed })
}

/// GB/s of the first `flow` threads and of the others, in each repetition.
pub(crate) fn rates(
    counters: &Counters,
    flow: usize,
    options: &MeasureOptions,
) -> Result<Vec<(f64, f64)>, MeasureStepError> {
    nap(options.warm_up, options)?;
    let mut before = (counters.read(flow), Instant::now());
    let mut rates = Vec::new();
    for _ in 0..options.repetitions {
        nap(options.window, options)?;
        while counters.is_idle(flow, before.0) && before.1.elapsed() < STARVED {
            nap(options.window.min(NAP), options)?;
        }
        let after = (counters.read(flow), Instant::now());
        let time = after.1 - before.1;
        rates.push((rate(after.0.0 - before.0.0, time), rate(after.0.1 - before.0.1, time)));
        before = after;
    }
    Ok(rates)
}

/// GB/s.
pub(crate) fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / (time.as_nanos() as f64).max(1.0)
}

/// Sleeps until the time is over or the measurement is cancelled.
fn nap(time: Duration, options: &MeasureOptions) -> Result<(), MeasureStepError> {
    let end = Instant::now() + time;
    loop {
        if options.is_cancelled() {
            return Err(MeasureStepError::Cancelled);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(NAP));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use atoll_testkit::kernel::SimulatedKernel;
    use atoll_testkit::machines;

    use super::*;

    fn readers(bytes: &[u8], cpus: &[u32]) -> Vec<WorkerSpec<'static>> {
        let bytes: &'static [u8] = bytes.to_vec().leak();
        let worker = |cpu: &u32| WorkerSpec {
            cpu: CpuId(*cpu),
            job: ThreadJob::Read(bytes),
            pause: Duration::ZERO,
        };
        cpus.iter().map(worker).collect()
    }

    const LONG: Duration = Duration::from_secs(600);

    fn kernel() -> SimulatedKernel {
        SimulatedKernel::new(Arc::new(machines::one_node()))
    }

    #[test]
    fn threads_work_until_the_lead_returns_and_are_counted_apart() {
        let workers = readers(&[1; 1 << 16], &[0, 3]);
        let (first, others) = with_crew(&kernel(), LONG, workers, |counters| {
            while counters.read(1).0 == 0 || counters.read(1).1 == 0 {
                thread::yield_now();
            }
            Ok(counters.read(1))
        })
        .unwrap();
        assert!(first > 0 && others > 0);
    }

    #[test]
    fn workers_end_by_themselves_when_the_lead_is_kept_from_stopping_them() {
        let bytes = [1; 1 << 16];
        let (counter, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let cpu = CpuId(0);
        let worker = WorkerSpec { cpu, job: ThreadJob::Read(&bytes), pause: Duration::ZERO };
        work(worker, &counter, &stop, Instant::now());
        assert!(counter.into_inner() > 0);
    }

    #[test]
    fn one_thread_that_cannot_be_bound_is_an_error_and_all_threads_end() {
        let workers = readers(&[1; 1 << 16], &[0, 99, 1]);
        let result = with_crew(&kernel(), LONG, workers, |_| Ok(()));
        assert!(matches!(result, Err(MeasureStepError::Kernel(_))), "{result:?}");
    }

    #[test]
    fn an_error_of_the_lead_ends_the_threads_too() {
        let workers = readers(&[1; 1 << 16], &[0, 1, 2, 3]);
        let result: Result<(), _> =
            with_crew(&kernel(), LONG, workers, |_| Err(MeasureStepError::Starved));
        assert!(matches!(result, Err(MeasureStepError::Starved)));
    }
}
