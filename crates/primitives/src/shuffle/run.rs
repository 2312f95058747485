//! Runs a schedule with a closure for each visit.

use std::future::poll_fn;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Instant;

use atoll_runtime::{
    Cancelled, Coordination, StepOutcome, StepReport, Task, TaskContext, WorkerId,
};

use super::{Moved, Schedule, ShuffleReport, Shuffled, Visit};
use crate::{Context, PrimitiveError};

/// State that all tasks of a shuffle share.
struct ShuffleRun<S, V> {
    schedule: Schedule,
    visit: V,
    /// State of each actor; None during its visit.
    states: Vec<Mutex<Option<S>>>,
    places: WorkerPlaces,
}

/// Positions of the threads.
struct WorkerPlaces {
    /// Threads at each worker's place.
    present: Vec<AtomicU32>,
    convoys: AtomicU64,
}

impl Schedule {
    /// Makes all visits, each once: `visit` gets the state of the worker whose turn it is ([`Visit::actor`]), the visit
    /// and the task's context, and processes the piece. It calls [`TaskContext::check`] before each block and reports
    /// what it reads with [`TaskContext::count_read`]; it runs on the node of [`Visit::place`].
    ///
    /// Each worker makes its visits one after another, in the order of the steps. Tight: a step starts when the one
    /// before has ended. Loose: no waiting. When threads move, the state moves from place to place.
    ///
    /// # Errors
    /// The first error of a visit, after which no visit starts; [`PrimitiveError::Cancelled`];
    /// [`PrimitiveError::Shape`] if the numbers of the schedule, the states and the context's workers differ.
    pub async fn run<S, V>(
        &self,
        context: &Context,
        name: &str,
        states: Vec<S>,
        visit: V,
    ) -> Result<Shuffled<S>, PrimitiveError>
    where
        S: Send + 'static,
        V: Fn(&mut S, &Visit, &TaskContext) -> Result<(), PrimitiveError> + Send + Sync + 'static,
    {
        let expected = self.workers();
        check("states of a shuffle", states.len(), expected)?;
        check("workers of a shuffle", context.runtime().worker_count(), expected)?;
        let states = states.into_iter().map(|state| Mutex::new(Some(state))).collect();
        let places = WorkerPlaces::new(expected);
        let run = Arc::new(ShuffleRun { schedule: self.clone(), visit, states, places });
        let start = Instant::now();
        let steps = match (self.shuffle().coordination, self.shuffle().moved) {
            (Coordination::Tight, _) => tight(context, name, &run).await?,
            (Coordination::Loose, Moved::Threads) => {
                vec![one_step(context, name, tasks(&run, travels)).await?]
            }
            (Coordination::Loose, _) => vec![one_step(context, name, tasks(&run, stays)).await?],
        };
        let convoys = run.places.convoys.load(Ordering::Relaxed);
        let report = ShuffleReport { time: start.elapsed(), steps, convoys };
        Ok(Shuffled { states: run.take_states()?, report })
    }
}

fn check(what: &str, found: usize, expected: usize) -> Result<(), PrimitiveError> {
    if found == expected {
        return Ok(());
    }
    let (what, found, expected) = (what.to_owned(), found.to_string(), expected.to_string());
    Err(PrimitiveError::Shape { what, found, expected })
}

impl<S, V> ShuffleRun<S, V>
where
    V: Fn(&mut S, &Visit, &TaskContext) -> Result<(), PrimitiveError>,
{
    fn take(&self, actor: WorkerId) -> Result<S, PrimitiveError> {
        let state =
            self.states[actor.index()].lock().unwrap_or_else(PoisonError::into_inner).take();
        // Missing only if a visit of the same worker has failed.
        state.ok_or(PrimitiveError::Cancelled(Cancelled))
    }

    fn put(&self, actor: WorkerId, state: S) {
        let mut slot = self.states[actor.index()].lock().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(state);
    }

    fn take_states(&self) -> Result<Vec<S>, PrimitiveError> {
        (0..self.states.len() as u32).map(|worker| self.take(WorkerId(worker))).collect()
    }

    /// One visit, on the calling thread.
    fn visit(
        &self,
        state: &mut S,
        visit: &Visit,
        context: &TaskContext,
    ) -> Result<(), PrimitiveError> {
        context.check()?;
        (self.visit)(state, visit, context)
    }
}

/// One step for each of the schedule's, with each visit as a task at its place.
async fn tight<S, V>(
    context: &Context,
    name: &str,
    run: &Arc<ShuffleRun<S, V>>,
) -> Result<Vec<StepReport>, PrimitiveError>
where
    S: Send + 'static,
    V: Fn(&mut S, &Visit, &TaskContext) -> Result<(), PrimitiveError> + Send + Sync + 'static,
{
    let mut reports = Vec::with_capacity(run.schedule.workers());
    for step in 0..run.schedule.workers() {
        let tasks = run.schedule.step(step).map(|visit| {
            let run = Arc::clone(run);
            Task::on_worker(visit.place, async move |context: TaskContext| {
                let mut state = run.take(visit.actor)?;
                run.visit(&mut state, &visit, &context)?;
                run.put(visit.actor, state);
                Ok(())
            })
        });
        let name = format!("{name} {}/{}", step + 1, run.schedule.workers());
        reports.push(one_step(context, &name, tasks.collect()).await?);
    }
    Ok(reports)
}

async fn one_step(
    context: &Context,
    name: &str,
    tasks: Vec<Task<(), PrimitiveError>>,
) -> Result<StepReport, PrimitiveError> {
    let step = context.runtime().step(name, tasks).cancel(context.cancel());
    let StepOutcome { result, report } = step.run().await;
    result?;
    Ok(report)
}

/// One task for each worker, which makes all of its visits.
fn tasks<S, V, F, R>(run: &Arc<ShuffleRun<S, V>>, work: F) -> Vec<Task<(), PrimitiveError>>
where
    S: Send + 'static,
    V: Send + Sync + 'static,
    F: Fn(Arc<ShuffleRun<S, V>>, WorkerId, TaskContext) -> R + Copy + Send + 'static,
    R: Future<Output = Result<(), PrimitiveError>> + Send + 'static,
{
    let workers = (0..run.schedule.workers() as u32).map(WorkerId);
    let task = |actor| {
        let run = Arc::clone(run);
        Task::on_worker(actor, move |context| work(run, actor, context))
    };
    workers.map(task).collect()
}

/// All visits of a worker, on its own node.
async fn stays<S, V>(
    run: Arc<ShuffleRun<S, V>>,
    actor: WorkerId,
    context: TaskContext,
) -> Result<(), PrimitiveError>
where
    S: Send + 'static,
    V: Fn(&mut S, &Visit, &TaskContext) -> Result<(), PrimitiveError> + Send + Sync + 'static,
{
    let mut state = run.take(actor)?;
    for step in 0..run.schedule.workers() {
        run.visit(&mut state, &run.schedule.visit(actor, step), &context)?;
        give_way().await;
    }
    run.put(actor, state);
    Ok(())
}

/// All visits of a worker, each at its place: the state moves there and comes back.
async fn travels<S, V>(
    run: Arc<ShuffleRun<S, V>>,
    actor: WorkerId,
    context: TaskContext,
) -> Result<(), PrimitiveError>
where
    S: Send + 'static,
    V: Fn(&mut S, &Visit, &TaskContext) -> Result<(), PrimitiveError> + Send + Sync + 'static,
{
    for step in 0..run.schedule.workers() {
        let visit = run.schedule.visit(actor, step);
        let (there, told) = (Arc::clone(&run), context.clone());
        run.places.arrive(visit.place);
        let away = context.runtime().spawn_on(visit.place, async move {
            let mut state = there.take(actor)?;
            there.visit(&mut state, &visit, &told)?;
            there.put(actor, state);
            Ok(())
        });
        let back = away.await;
        run.places.leave(visit.place);
        back.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(PrimitiveError::Cancelled(Cancelled)),
        })?;
    }
    Ok(())
}

impl WorkerPlaces {
    fn new(workers: usize) -> Self {
        let present = (0..workers).map(|_| AtomicU32::new(0)).collect();
        Self { present, convoys: AtomicU64::new(0) }
    }

    fn arrive(&self, place: WorkerId) {
        if self.present[place.index()].fetch_add(1, Ordering::Relaxed) > 0 {
            self.convoys.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn leave(&self, place: WorkerId) {
        self.present[place.index()].fetch_sub(1, Ordering::Relaxed);
    }
}

/// Yields once to other tasks of this worker.
async fn give_way() {
    let mut gave = false;
    poll_fn(|cx| match std::mem::replace(&mut gave, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}
