use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_runtime::{CancelToken, Cancelled, StepError, StepOutcome, Task, TaskContext, WorkerId};
use atoll_topology::NodeId;

use crate::support::{even, run, start};

/// Tasks that are running; the highest it has been, and how many have started.
#[derive(Clone, Default)]
struct Running(Arc<(AtomicUsize, AtomicUsize)>);

struct Entered(Running);

impl Running {
    fn enter(&self) -> Entered {
        self.0.0.fetch_add(1, Ordering::SeqCst);
        self.0.1.fetch_add(1, Ordering::SeqCst);
        Entered(self.clone())
    }

    fn now(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    fn started(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Debug, PartialEq, thiserror::Error)]
enum TaskError {
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    #[error("bad block {0}")]
    Block(usize),
}

/// Checks its token before each block, forever.
fn endless(node: u32, running: &Running) -> Task<(), TaskError> {
    let running = running.clone();
    Task::on_node(NodeId(node), async move |context: TaskContext| {
        let _entered = running.enter();
        loop {
            context.check()?;
            tokio::task::yield_now().await;
        }
    })
}

/// Does this once as many tasks are running as said.
fn after(
    started: usize,
    running: &Running,
    act: impl FnOnce() -> Result<(), TaskError> + Send + 'static,
) -> Task<(), TaskError> {
    let running = running.clone();
    Task::on_node(NodeId(0), async move |_| {
        while running.started() < started {
            tokio::task::yield_now().await;
        }
        act()
    })
}

#[test]
fn a_panic_becomes_an_error_and_the_other_tasks_are_cancelled_and_joined() {
    let runtime = start(even(2, 2));
    let running = Running::default();
    let mut tasks = vec![after(3, &running, || panic!("row {} is missing", 7))];
    tasks.extend([0, 1, 1].map(|node| endless(node, &running)));
    let StepOutcome { result, report } = run(&runtime, runtime.step("scan", tasks).run());
    let message = "row 7 is missing".to_owned();
    assert_eq!(result, Err(StepError::Panicked { step: "scan".to_owned(), task: 0, message }));
    assert_eq!(running.now(), 0, "a task is still running after the step has returned");
    assert_eq!((report.tasks, report.tasks_finished, report.panics), (4, 0, 1));
}

#[test]
fn panics_of_every_kind_are_caught() {
    let runtime = start(even(1, 1));
    let panics: Vec<(Task<(), TaskError>, &str)> = vec![
        (Task::on_node(NodeId(0), async |_| panic!("in the future")), "in the future"),
        (
            Task::on_node(NodeId(0), |_| -> std::future::Ready<Result<(), TaskError>> {
                panic!("before the future")
            }),
            "before the future",
        ),
        (
            Task::on_node(NodeId(0), async |_| {
                tokio::task::yield_now().await;
                panic!("after an await")
            }),
            "after an await",
        ),
        (
            Task::on_node(NodeId(0), async |_| std::panic::panic_any(17)),
            "a panic without a message",
        ),
    ];
    for (task, expected) in panics {
        let outcome = run(&runtime, runtime.step("panic", vec![task]).run());
        assert!(
            matches!(&outcome.result, Err(StepError::Panicked { message, .. }) if message == expected),
            "{:?}",
            outcome.result
        );
    }
    let alive = runtime.spawn_on(WorkerId(0), async { 1 });
    assert_eq!(run(&runtime, alive).expect("the worker lives on"), 1);
}

#[test]
fn an_error_becomes_the_steps_error_and_not_those_it_caused() {
    let runtime = start(even(3, 1));
    let running = Running::default();
    let mut tasks: Vec<_> = [1, 2].map(|node| endless(node, &running)).into();
    tasks.push(after(2, &running, || Err(TaskError::Block(3))));
    let StepOutcome { result, report } = run(&runtime, runtime.step("load", tasks).run());
    let error = result.expect_err("block 3");
    assert_eq!(error.to_string(), "task 2 of step 'load' failed: bad block 3");
    assert_eq!(
        error,
        StepError::Failed { step: "load".to_owned(), task: 2, error: TaskError::Block(3) }
    );
    assert_eq!((running.now(), report.panics), (0, 0));
}

#[test]
fn after_a_failure_waiting_tasks_never_start() {
    let runtime = start(even(1, 1));
    let running = Running::default();
    let mut tasks = vec![after(0, &running, || Err(TaskError::Block(0)))];
    tasks.extend((0..100).map(|_| endless(0, &running)));
    let outcome = run(&runtime, runtime.step("one worker", tasks).run());
    assert!(matches!(outcome.result, Err(StepError::Failed { task: 0, .. })));
    assert_eq!(running.started(), 0);
}

#[test]
fn a_cancel_in_the_middle_ends_every_task_at_its_next_block() {
    for nodes in [1, 2, 8] {
        let runtime = start(even(nodes, 2));
        let running = Running::default();
        let token = CancelToken::new();
        let mut tasks: Vec<_> = (0..nodes).map(|node| endless(node, &running)).collect();
        let cancel = token.clone();
        tasks.push(after(nodes as usize, &running, move || {
            cancel.cancel();
            Ok(())
        }));
        let step = runtime.step("scan", tasks).cancel(&token);
        let StepOutcome { result, report } = run(&runtime, step.run());
        let (step, tasks) = ("scan".to_owned(), nodes as usize + 1);
        assert_eq!(result, Err(StepError::Cancelled { step, finished: 1, tasks }));
        assert_eq!((running.now(), report.tasks_finished), (0, 1));
    }
}

#[test]
fn a_step_cancelled_before_it_runs_starts_nothing() {
    let runtime = start(even(2, 1));
    let running = Running::default();
    let token = CancelToken::new();
    token.cancel();
    let tasks = vec![endless(0, &running), endless(1, &running)];
    let outcome = run(&runtime, runtime.step("late", tasks).cancel(&token).run());
    assert!(matches!(outcome.result, Err(StepError::Cancelled { finished: 0, tasks: 2, .. })));
    assert_eq!(running.started(), 0);
}

#[test]
fn a_cancel_that_comes_after_all_tasks_have_finished_changes_nothing() {
    let runtime = start(even(1, 1));
    let token = CancelToken::new();
    let cancel = token.clone();
    let last = Task::on_node(NodeId(0), async move |_| {
        cancel.cancel();
        Ok::<_, TaskError>(5)
    });
    let outcome = run(&runtime, runtime.step("done", vec![last]).cancel(&token).run());
    assert_eq!(outcome.result, Ok(vec![5]));
}

#[test]
fn a_failed_step_leaves_its_callers_token_alone() {
    let runtime = start(even(1, 1));
    let token = CancelToken::new();
    let tasks = vec![after(0, &Running::default(), || Err(TaskError::Block(1)))];
    assert!(run(&runtime, runtime.step("bad", tasks).cancel(&token).run()).result.is_err());
    assert!(!token.is_cancelled());
}

#[test]
fn a_panic_after_a_cancel_is_still_reported() {
    let runtime = start(even(1, 1));
    let token = CancelToken::new();
    let cancel = token.clone();
    let task: Task<(), TaskError> = Task::on_node(NodeId(0), async move |_| {
        cancel.cancel();
        panic!("while cleaning up")
    });
    let outcome = run(&runtime, runtime.step("bad", vec![task]).cancel(&token).run());
    assert!(matches!(outcome.result, Err(StepError::Panicked { .. })), "{:?}", outcome.result);
}

#[test]
fn a_task_that_waits_for_what_never_comes_can_be_cancelled() {
    let runtime = start(even(2, 1));
    let running = Running::default();
    let inside = running.clone();
    let waits: Task<(), TaskError> = Task::on_node(NodeId(1), async move |context: TaskContext| {
        let _entered = inside.enter();
        context.cancel_token().cancelled().await;
        Ok(context.cancel_token().check()?)
    });
    let fails = after(1, &running, || Err(TaskError::Block(2)));
    let outcome = run(&runtime, runtime.step("wait", vec![waits, fails]).run());
    assert!(matches!(outcome.result, Err(StepError::Failed { task: 1, .. })));
    assert_eq!(running.now(), 0);
}

#[test]
fn dropping_a_steps_future_cancels_its_tasks() {
    let runtime = start(even(2, 1));
    let running = Running::default();
    let tasks = vec![endless(0, &running), endless(1, &running)];
    let step = runtime.step("dropped", tasks).run();
    run(&runtime, async {
        tokio::select! {
            _ = step => panic!("an endless step has ended"),
            () = async { while running.started() < 2 { tokio::task::yield_now().await } } => {}
        }
        while running.now() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_value_that_panics_while_it_is_dropped_reaches_the_caller_after_the_join() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let runtime = start(even(1, 1));
    let bomb = Bomb;
    let tasks: Vec<Task<(), TaskError>> = vec![
        Task::on_node(NodeId(0), async |_| Err(TaskError::Block(0))),
        Task::on_node(NodeId(0), async move |_| {
            let _bomb = &bomb;
            Ok(())
        }),
    ];
    let step = std::panic::AssertUnwindSafe(|| run(&runtime, runtime.step("bomb", tasks).run()));
    let panic = std::panic::catch_unwind(step).expect_err("the bomb goes off");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"dropped"));
}
