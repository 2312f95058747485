//! Runs the tasks of one or several steps to their join.
//!
//! Every group gets runners, tokio tasks that take job after job from the queues until none is
//! left within reach. A runner never waits for another one; only the future returned by
//! [`run`] waits, at the join. States and races: `README.md` of this crate.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::StepError;
use super::address::DealtStep;
use super::queues::Queues;
use super::report::{StepReport, StepTally};
use super::steal::Steal;
use super::task::{RunnerShared, TaskBody, TaskContext, TaskFuture};
use crate::error::panic_message;
use crate::{ByteCounters, CancelToken, Runtime, WorkerId};

/// A runner lets others on its worker run after this long. tokio polls its drivers at every such
/// yield, which costs about a microsecond: less than a percent of it.
const YIELD_AFTER: Duration = Duration::from_micros(200);

/// Options of a step or a sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct StepSettings {
    pub(super) steal: Steal,
    pub(super) cancel: CancelToken,
}

/// The result: results by step and task, or an error; a report of each step in any case.
pub(super) struct BatchEnd<T, E> {
    pub(super) result: Result<Vec<Vec<T>>, StepError<E>>,
    pub(super) reports: Vec<StepReport>,
}

/// A waiting task.
struct QueuedTask<T, E> {
    step: usize,
    task: usize,
    body: TaskBody<T, E>,
}

/// The unit of work of a runner: a task, and those of the same worker in later steps.
struct RunnerJob<T, E> {
    first: QueuedTask<T, E>,
    rest: Vec<QueuedTask<T, E>>,
}

struct StepBatch<T, E> {
    queues: Queues<RunnerJob<T, E>>,
    /// The caller's token.
    outside: CancelToken,
    /// Its child, raised when a task fails.
    stop: CancelToken,
    /// Puts failures in order: a task that fails takes its number before it raises `stop`, so what
    /// fails because of the stop has a larger one.
    failures: AtomicUsize,
    submitted: Instant,
}

/// The result of a runner at the join.
struct RunnerEnd<T, E> {
    results: Vec<(usize, usize, T)>,
    failures: Vec<(usize, TaskFailure<E>)>,
    tallies: Vec<StepTally>,
}

struct TaskFailure<E> {
    step: usize,
    task: usize,
    cause: FailureCause<E>,
}

enum FailureCause<E> {
    Error(E),
    Panic(String),
}

/// Cancels the tasks when the future that waits for them is dropped.
struct CancelTasksOnDrop(CancelToken);

impl Drop for CancelTasksOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs the steps' tasks, all at once, and returns when the last has ended.
pub(super) async fn run<T, E>(
    runtime: &Runtime,
    settings: &StepSettings,
    mut steps: Vec<DealtStep<T, E>>,
) -> BatchEnd<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    let sizes: Vec<usize> = steps.iter().map(|step| step.tasks.len()).collect();
    let counters = Arc::new(steps.iter().map(|_| ByteCounters::new(runtime.machine())).collect());
    let stop = settings.cancel.child();
    let _stop_on_drop = CancelTasksOnDrop(stop.clone());
    let workers: Vec<usize> = runtime.groups().iter().map(|group| group.workers().len()).collect();
    let victims = settings.steal.victims(runtime);
    let batch = Arc::new(StepBatch {
        queues: Queues::new(&workers, victims, jobs(&mut steps)),
        outside: settings.cancel.clone(),
        stop,
        failures: AtomicUsize::new(0),
        submitted: Instant::now(),
    });
    let end = join(runtime, &batch, &counters).await;
    let reports = reports(&steps, &sizes, &end.tallies, &counters);
    BatchEnd { result: result(end, &reports, &sizes), reports }
}

/// Makes jobs from tasks: one per task, or one for all tasks of a worker over several steps.
fn jobs<T, E>(steps: &mut [DealtStep<T, E>]) -> Vec<(usize, RunnerJob<T, E>)> {
    let chained = steps.len() > 1;
    let mut jobs: Vec<(usize, RunnerJob<T, E>)> = Vec::new();
    let mut chains: HashMap<WorkerId, usize> = HashMap::new();
    for (step, dealt) in steps.iter_mut().enumerate() {
        for (task, dealt) in dealt.tasks.drain(..).enumerate() {
            let work = QueuedTask { step, task, body: dealt.body };
            let chain = dealt.worker.filter(|_| chained);
            match chain.and_then(|worker| chains.get(&worker)) {
                Some(at) => jobs[*at].1.rest.push(work),
                None => {
                    chains.extend(chain.map(|worker| (worker, jobs.len())));
                    jobs.push((dealt.group, RunnerJob { first: work, rest: Vec::new() }));
                }
            }
        }
    }
    jobs
}

async fn join<T, E>(
    runtime: &Runtime,
    batch: &Arc<StepBatch<T, E>>,
    counters: &Arc<Vec<ByteCounters>>,
) -> RunnerEnd<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    let mut handles = Vec::new();
    for group in 0..runtime.groups().len() {
        for _ in 0..batch.queues.runners(group) {
            let shared = Arc::new(RunnerShared {
                runtime: runtime.clone(),
                group,
                token: batch.stop.child(),
                counters: counters.clone(),
            });
            handles.push(runtime.group(group).handle().spawn(runner(batch.clone(), shared)));
        }
    }
    join_all(handles, RunnerEnd::new(counters.len())).await
}

/// Waits for every runner. A runner catches its tasks' panics; what still panics in it is a value
/// that was dropped unused, and that panic goes on in the caller when all have ended.
async fn join_all<T, E>(
    handles: Vec<JoinHandle<RunnerEnd<T, E>>>,
    mut end: RunnerEnd<T, E>,
) -> RunnerEnd<T, E> {
    let mut panic = None;
    for handle in handles {
        match handle.await {
            Ok(other) => end.add(other),
            Err(error) => panic = panic.or(error.try_into_panic().ok()),
        }
    }
    match panic {
        Some(panic) => resume_unwind(panic),
        None => end,
    }
}

async fn runner<T, E>(batch: Arc<StepBatch<T, E>>, shared: Arc<RunnerShared>) -> RunnerEnd<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    let mut end = RunnerEnd::new(shared.counters.len());
    let mut yielded = Instant::now();
    let mut first = true;
    while let Some((home, job)) = batch.queues.take(shared.group, std::mem::take(&mut first)) {
        for work in std::iter::once(job.first).chain(job.rest) {
            if shared.token.is_cancelled() {
                break;
            }
            let ended = run_task(&batch, &shared, home, work, &mut end).await;
            if ended.duration_since(yielded) >= YIELD_AFTER {
                tokio::task::yield_now().await;
                yielded = Instant::now();
            }
        }
    }
    end
}

/// Runs a task to its end, whatever that is, and records when it arrived.
async fn run_task<T, E>(
    batch: &StepBatch<T, E>,
    shared: &Arc<RunnerShared>,
    home: usize,
    work: QueuedTask<T, E>,
    end: &mut RunnerEnd<T, E>,
) -> Instant {
    let QueuedTask { step, task, body } = work;
    let context = TaskContext { shared: shared.clone(), step, task };
    let start = Instant::now();
    let result = caught(move || body(context)).await;
    let ended = Instant::now();
    let tally = &mut end.tallies[step];
    tally.ran(start - batch.submitted, ended - batch.submitted);
    tally.took(&shared.runtime, home, shared.group);
    match result {
        Ok(Ok(value)) => {
            tally.finished += 1;
            end.results.push((step, task, value));
        }
        Ok(Err(error)) => batch.fail(end, step, task, FailureCause::Error(error)),
        Err(message) => {
            tally.panics += 1;
            batch.fail(end, step, task, FailureCause::Panic(message));
        }
    }
    ended
}

/// Runs a task's body and future; a panic in either is returned as its message.
async fn caught<T, E>(body: impl FnOnce() -> TaskFuture<T, E>) -> Result<Result<T, E>, String> {
    let mut future: Pin<Box<_>> = guarded(body)?;
    std::future::poll_fn(|cx| match guarded(|| future.as_mut().poll(cx)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
        Err(message) => Poll::Ready(Err(message)),
    })
    .await
}

/// What a panic may leave half done is the task's own and is not used again.
fn guarded<R>(call: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panic_message(&*panic))
}

impl StepTally {
    fn took(&mut self, runtime: &Runtime, home: usize, group: usize) {
        self.stolen += usize::from(home != group);
        let remote = runtime.group(home).node() != runtime.group(group).node();
        self.stolen_remote += usize::from(remote);
    }
}

impl<T, E> StepBatch<T, E> {
    /// Notes a failure and stops the batch. An error after the caller's cancel is the cancel's
    /// consequence, not a failure; a panic always is one.
    fn fail(&self, end: &mut RunnerEnd<T, E>, step: usize, task: usize, cause: FailureCause<E>) {
        if matches!(cause, FailureCause::Panic(_)) || !self.outside.is_cancelled() {
            let order = self.failures.fetch_add(1, Ordering::SeqCst);
            end.failures.push((order, TaskFailure { step, task, cause }));
        }
        self.stop.cancel();
    }
}

impl<T, E> RunnerEnd<T, E> {
    fn new(steps: usize) -> Self {
        let tallies = vec![StepTally::default(); steps];
        Self { results: Vec::new(), failures: Vec::new(), tallies }
    }

    fn add(&mut self, other: Self) {
        self.results.extend(other.results);
        self.failures.extend(other.failures);
        for (tally, other) in self.tallies.iter_mut().zip(&other.tallies) {
            tally.add(other);
        }
    }
}

fn reports<T, E>(
    steps: &[DealtStep<T, E>],
    sizes: &[usize],
    tallies: &[StepTally],
    counters: &[ByteCounters],
) -> Vec<StepReport> {
    let seen = steps.iter().zip(sizes).zip(tallies.iter().zip(counters));
    seen.map(|((step, tasks), (tally, counters))| {
        tally.report(step.name.clone(), *tasks, step.rehomed, counters.snapshot())
    })
    .collect()
}

/// Results in the order of steps and tasks, or the first failure, or the cancellation.
fn result<T, E>(
    end: RunnerEnd<T, E>,
    reports: &[StepReport],
    sizes: &[usize],
) -> Result<Vec<Vec<T>>, StepError<E>> {
    let first = end.failures.into_iter().min_by_key(|(order, _)| *order);
    if let Some((_, TaskFailure { step, task, cause })) = first {
        let step = reports[step].name.clone();
        return Err(match cause {
            FailureCause::Error(error) => StepError::Failed { step, task, error },
            FailureCause::Panic(message) => StepError::Panicked { step, task, message },
        });
    }
    if let Some(report) = reports.iter().find(|report| report.tasks_finished < report.tasks) {
        let StepReport { tasks, tasks_finished: finished, .. } = *report;
        return Err(StepError::Cancelled { step: report.name.clone(), finished, tasks });
    }
    Ok(in_order(end.results, sizes))
}

fn in_order<T>(mut results: Vec<(usize, usize, T)>, sizes: &[usize]) -> Vec<Vec<T>> {
    results.sort_unstable_by_key(|(step, task, _)| (*step, *task));
    let mut steps: Vec<Vec<T>> = sizes.iter().map(|size| Vec::with_capacity(*size)).collect();
    for (step, _, value) in results {
        steps[step].push(value);
    }
    steps
}
