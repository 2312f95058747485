use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_runtime::{
    CancelToken, Coordination, SequenceOutcome, StepError, Task, TaskContext, WorkerId,
};
use atoll_topology::{Bytes, NodeId};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::support::{even, machine, node, run, start};

/// (step, worker) of a task, noted as it runs.
type Note = (usize, u32);

/// Runs one task per worker in each of so many steps; returns the notes in their order, and what the
/// sequence came to.
fn noted(
    coordination: Coordination,
    steps: usize,
) -> (Vec<Note>, SequenceOutcome<u32, Infallible>) {
    let runtime = start(machine([node(0, 2, 1), node(1, 1, 2)]));
    let workers = runtime.worker_count() as u32;
    let notes = Arc::new(Mutex::new(Vec::new()));
    let sequence = (0..steps).fold(runtime.sequence(coordination), |sequence, step| {
        let tasks = (0..workers).map(|worker| {
            let notes = notes.clone();
            Task::on_worker(WorkerId(worker), async move |context: TaskContext| {
                context.count_read(NodeId(0), Bytes(step as u64));
                notes.lock().push((step, worker));
                tokio::task::yield_now().await;
                Ok::<_, Infallible>(worker)
            })
        });
        sequence.then(format!("ring {step}"), tasks.collect())
    });
    let outcome = run(&runtime, sequence.run());
    let notes = notes.lock().clone();
    (notes, outcome)
}

#[test]
fn results_and_reports_come_by_step_and_task() {
    for coordination in [Coordination::Tight, Coordination::Loose] {
        let (_, SequenceOutcome { result, reports }) = noted(coordination, 5);
        assert_eq!(result, Ok(vec![vec![0, 1, 2, 3]; 5]));
        for (step, report) in reports.iter().enumerate() {
            assert_eq!(report.name, format!("ring {step}"));
            assert_eq!(report.bytes.total(), Bytes(4 * step as u64));
            assert_eq!(report.tasks_finished, 4);
        }
        assert_eq!(reports.len(), 5);
    }
}

#[test]
fn tight_starts_a_step_when_the_one_before_has_ended() {
    let (notes, _) = noted(Coordination::Tight, 20);
    assert!(notes.is_sorted_by_key(|(step, _)| *step), "{notes:?}");
}

#[test]
fn loose_keeps_the_order_of_each_workers_tasks() {
    let (notes, _) = noted(Coordination::Loose, 50);
    for worker in 0..4 {
        let steps = notes.iter().filter(|note| note.1 == worker).map(|(step, _)| *step);
        assert_eq!(steps.collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    }
}

#[test]
fn loose_lets_a_worker_run_ahead_of_another() {
    // Worker 0 waits in step 0 for worker 1's task of step 1: tight coordination would never end.
    let runtime = start(even(2, 1));
    let ahead = Arc::new(Semaphore::new(0));
    let (wait, tell) = (ahead.clone(), ahead);
    let nothing = |worker| Task::on_worker(WorkerId(worker), async |_| Ok::<_, Infallible>(()));
    let waits = Task::on_worker(WorkerId(0), async move |_| {
        wait.acquire().await.expect("open").forget();
        Ok(())
    });
    let tells = Task::on_worker(WorkerId(1), async move |_| {
        tell.add_permits(1);
        Ok(())
    });
    let sequence = runtime.sequence(Coordination::Loose);
    let sequence = sequence.then("0", vec![waits, nothing(1)]).then("1", vec![nothing(0), tells]);
    assert_eq!(run(&runtime, sequence.run()).result, Ok(vec![vec![(), ()], vec![(), ()]]));
}

#[test]
fn loose_never_starts_a_workers_task_before_the_one_of_the_step_before_has_ended() {
    // Two workers in one group. Worker 0's first task ends when worker 1 is through with its second,
    // so worker 1's thread passes by where worker 0's second task would wait.
    let runtime = start(even(1, 2));
    let order = Arc::new(Mutex::new(Vec::new()));
    let through = Arc::new(Semaphore::new(0));
    let noting = |worker, step, wait: bool, tell: bool| {
        let (order, through) = (order.clone(), through.clone());
        Task::on_worker(WorkerId(worker), async move |_| {
            if wait {
                through.acquire().await.expect("open").forget();
            }
            order.lock().push((step, worker));
            through.add_permits(usize::from(tell));
            Ok::<_, Infallible>(())
        })
    };
    let sequence = runtime
        .sequence(Coordination::Loose)
        .then("0", vec![noting(0, 0, true, false), noting(1, 0, false, false)])
        .then("1", vec![noting(0, 1, false, false), noting(1, 1, false, true)]);
    assert!(run(&runtime, sequence.run()).result.is_ok());
    assert_eq!(*order.lock(), [(0, 1), (1, 1), (0, 0), (1, 0)]);
}

#[test]
fn the_first_failure_ends_the_sequence() {
    for (coordination, started) in [(Coordination::Tight, 2), (Coordination::Loose, 3)] {
        let runtime = start(even(1, 1));
        let ran = Arc::new(AtomicUsize::new(0));
        let sequence = (0..3).fold(runtime.sequence(coordination), |sequence, step| {
            let ran = ran.clone();
            let task = Task::on_worker(WorkerId(0), async move |_| {
                ran.fetch_add(1, Ordering::SeqCst);
                if step == 1 { Err(format!("step {step} is bad")) } else { Ok(()) }
            });
            sequence.then(format!("step {step}"), vec![task])
        });
        let outcome = run(&runtime, sequence.run());
        let error =
            StepError::Failed { step: "step 1".into(), task: 0, error: "step 1 is bad".into() };
        assert_eq!(outcome.result, Err(error));
        assert_eq!((ran.load(Ordering::SeqCst), outcome.reports.len()), (2, started));
    }
}

#[test]
fn a_cancel_between_steps_ends_the_sequence() {
    for coordination in [Coordination::Tight, Coordination::Loose] {
        let runtime = start(even(1, 1));
        let token = CancelToken::new();
        let cancel = token.clone();
        let cancels = Task::on_worker(WorkerId(0), async move |_| {
            cancel.cancel();
            Ok::<_, Infallible>(())
        });
        let never = Task::on_worker(WorkerId(0), async |_| panic!("ran after the cancel"));
        let sequence =
            runtime.sequence(coordination).then("a", vec![cancels]).then("b", vec![never]);
        let outcome = run(&runtime, sequence.cancel(&token).run());
        let error = StepError::Cancelled { step: "b".to_owned(), finished: 0, tasks: 1 };
        assert_eq!(outcome.result, Err(error));
    }
}

#[test]
fn a_wrong_address_in_a_later_step_is_told_before_the_first_runs() {
    let runtime = start(even(1, 1));
    let never = Task::on_worker(WorkerId(0), async |_| -> Result<(), Infallible> { panic!("ran") });
    let lost = Task::on_node(NodeId(3), async |_| Ok(()));
    let sequence =
        runtime.sequence(Coordination::Tight).then("a", vec![never]).then("b", vec![lost]);
    let outcome = run(&runtime, sequence.run());
    assert!(matches!(outcome.result, Err(StepError::NoSuchNode { node: NodeId(3), .. })));
    assert!(outcome.reports.is_empty());
}

#[test]
fn an_empty_sequence_ends_at_once() {
    for coordination in [Coordination::Tight, Coordination::Loose] {
        let runtime = start(even(1, 1));
        let outcome = run(&runtime, runtime.sequence::<(), Infallible>(coordination).run());
        assert_eq!(outcome.result, Ok(vec![]));
        assert!(outcome.reports.is_empty());
    }
}
